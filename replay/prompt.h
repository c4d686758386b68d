#pragma once

#include <string>
#include <vector>

#include "ops/problem.h"
#include "replay/header.h"
#include "replay/outcome.h"
#include "replay/reply.h"

namespace rekernel {

/// Defaults for a new search; a recorded one carries its own.
Templates default_templates();
/// Tensors, attributes, tolerance and what is timed.
std::string problem_text(const Problem& problem, const std::vector<std::string>& references);
std::string device_text(const DeviceFacts& device);
/// The candidate format with its worked example.
std::string format_text(const std::string& target);

/// The worked example that format_text shows, a correct softmax.
SeedCandidate worked_example();

/// A kernel whose source a prompt shows.
struct ShownKernel {
  std::string id;       ///< "r2.i1.b1", "seed.1" or a library name
  std::string caption;  ///< its outcome in one line, or the library's note
  std::string plan;
  std::string source;
};

/// One candidate of the past.
struct HistoryEntry {
  std::string id;
  std::string idea_title;
  bool passed = false;
  std::string outcome;  ///< outcome_line
  std::string log;      ///< of the compiler, shortened; empty if there was nothing to say
};

/// What a prompt is made of beside the header. A prompt is a pure function of both.
struct PromptParts {
  std::vector<ShownKernel> survivors;  ///< the fastest first
  std::vector<ShownKernel> bank;       ///< the fastest first
  std::vector<ShownKernel> library;
  std::vector<HistoryEntry> history;  ///< the oldest first
};

/// Both prompts keep settings.prompt_tokens (by estimated_tokens). Where everything would be too
/// long, these go, one after the other, until it fits: compiler logs, the oldest first; failed
/// candidates, the oldest first; bank kernels, the slowest first; correct candidates, the oldest
/// first; survivors but the fastest, the slowest first; library kernels, the last first; the
/// fastest survivor.
std::string ideas_prompt(const Header& header, const PromptParts& parts, int idea_count);
std::string kernel_prompt(const Header& header, const PromptParts& parts, const Idea& idea,
                          int branch);

/// Unknown or missing placeholders, and a limit that not even the shortest prompt keeps, are
/// errors.
Result<Ok> check_templates(const Header& header, const std::string& where);

}  // namespace rekernel
