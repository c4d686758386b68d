#pragma once

#include <compare>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/model/prompt_text.h"
#include "replay/search/reply.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// A kernel whose source a prompt shows.
struct ShownKernel {
  std::string id;       ///< "r2.i1.b1", "seed.1" or a library name
  std::string caption;  ///< its outcome in one line, or the library's note
  std::string plan;
  std::string source;
  std::string profile;  ///< lines on what a profiler says of it; empty if none was asked
};

/// One candidate of the past.
struct HistoryEntry {
  std::string id;
  std::string idea_title;
  bool passed = false;
  std::string outcome;  ///< outcome_line
  std::string log;      ///< of the compiler, shortened; empty if there was nothing to say
};

/// The bytes of the longest prompt.
std::size_t most_prompt_bytes(const Settings& settings);

/// Everything that was tried, the oldest first, as prompts list it. Of each kind of line (failed
/// candidates, correct ones, compiler logs) it keeps those that a prompt can show: a line is left
/// out of every prompt, and only counted here, once more bytes of its kind follow it than a whole
/// prompt has.
class PromptHistory {
 public:
  /// For prompts of at most so many bytes.
  explicit PromptHistory(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void add(const HistoryEntry& entry);
  std::size_t kept_bytes() const;  ///< of the lines

 private:
  friend class PromptWriter;
  struct Line {
    std::size_t candidate = 0;     ///< how many were added before its own
    std::size_t bytes_before = 0;  ///< of all lines of its kind that came before it
    std::string text;
  };
  struct Lines {
    std::deque<Line> kept;
    std::size_t gone = 0;   ///< how many are only counted
    std::size_t bytes = 0;  ///< of all of them

    void add(std::size_t candidate, std::string text, std::size_t most_bytes);
    std::size_t kept_bytes() const;
    std::size_t bytes_without(std::size_t left_out) const;
    /// How many must go, the oldest first, until `size`, which counts all of them, is at most
    /// `limit`; takes them from `size`. Those that are only counted go first.
    std::size_t drop(std::size_t limit, std::size_t& size) const;
  };

  std::size_t most_bytes_;
  std::size_t added_ = 0;
  Lines logs_, failed_, passed_;
};

/// What a prompt is made of beside the header. A prompt is a pure function of both.
struct PromptParts {
  std::vector<ShownKernel> survivors;  ///< the fastest first
  std::vector<ShownKernel> bank;       ///< the fastest first
  std::vector<ShownKernel> library;
  const PromptHistory* history = nullptr;  ///< null: nothing was tried
};

/// The kernels that a prompt shows, in its order.
std::vector<std::string> ids_of(const PromptParts& parts);

/// Writes the prompts of a round. Both kinds keep settings.prompt_tokens (by estimated_tokens).
/// Where everything would be too long, these go, one after the other, until it fits: compiler logs,
/// the oldest first; failed candidates, the oldest first; bank kernels, the slowest first; correct
/// candidates, the oldest first; survivors but the fastest, the slowest first; library kernels, the
/// last first; the fastest survivor.
///
/// The cost of a prompt is that of what it shows, whatever is left out; prompts that show the same
/// share it.
class PromptWriter {
 public:
  /// Both must outlive the writer.
  PromptWriter(const Header& header, const PromptParts& parts);

  PromptText ideas(int idea_count) const;
  PromptText kernel(const Idea& idea, int branch);

 private:
  /// How many go of each kind, in the order in which they go.
  struct LeftOut {
    std::size_t logs = 0;
    std::size_t failed = 0;
    std::size_t bank = 0;
    std::size_t passed = 0;
    std::size_t survivors = 0;  ///< all but the fastest, the slowest first
    std::size_t library = 0;
    bool fastest = false;
    auto operator<=>(const LeftOut&) const = default;
  };
  struct Piece {
    std::string text;
    bool is_placeholder = false;  ///< then the text is its name
  };
  /// The kernel template with everything filled in but idea and branch: up to the first of them,
  /// and from there.
  struct Frame {
    std::shared_ptr<const PromptText::Beginning> beginning;
    std::vector<Piece> rest;
  };

  /// What must go so that a prompt keeps its limit whose other parts have so many bytes.
  LeftOut left_out(std::size_t other_bytes) const;
  std::string seeds_text(const LeftOut& left_out) const;
  std::string history_text(const LeftOut& left_out) const;
  Frame make_frame(const LeftOut& left_out) const;

  const Header& header_;
  const PromptHistory& history_;
  std::vector<std::string> survivors_, bank_, library_;  ///< as sections
  std::size_t kernel_bytes_ = 0;  ///< of the template without idea, branch, seeds and history
  std::map<LeftOut, Frame> frames_;
};

}  // namespace rekernel
