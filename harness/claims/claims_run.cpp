#include "harness/claims/claims_run.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/utf8.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_reason = 500;
/// On one GPU, where they take turns: one program's PyTorch is imported while others are judged.
constexpr int judged_at_once = 3;
constexpr std::string_view own_prefix = "rekernel: ";

/// A claim's own folder, emptied, with the program's text in it, and its wrapper beside that.
/// Returns what is compiled or run.
Result<fs::path> write_source(const Claim& claim, const ClaimsFile& file,
                              const ClaimsOptions& options, const fs::path& folder) {
  const Result<std::string> text = source_of(claim, options.sources);
  if (!text) return text.error();
  std::error_code status;
  fs::remove_all(folder, status);
  fs::create_directories(folder, status);
  if (status) return Error{folder.string() + ": " + status.message()};
  // A program from a line of JSON is Python: those that ship so are.
  const std::string ending =
      claim.source.line != 0 ? ".py" : fs::path(claim.source.file).extension().string();
  const fs::path own = folder / (claim.name + ending);
  const fs::path source = claim.wrapper.empty() ? own : folder / "claimed_program.py";
  if (Result<Ok> written = write_file_atomically(source, *text); !written) return written.error();
  if (claim.wrapper.empty()) return source;
  const Result<std::string> wrapper = read_file(file.folder / claim.wrapper);
  if (!wrapper) return Error{"wrapper: " + wrapper.error().message};
  if (Result<Ok> written = write_file_atomically(own, *wrapper); !written) return written.error();
  return own;
}

class ClaimsRun {
 public:
  ClaimsRun(const ClaimsFile& file, ClaimsRecord record, const ClaimsOptions& options,
            const ClaimTools& tools)
      : file_(file), options_(options), tools_(tools), record_(std::move(record)) {
    record_.file = file;
    record_.file.claims.clear();
    record_.file.compile.clear();
  }

  Result<ClaimsRecord> run() {
    choose();
    {
      std::vector<std::jthread> threads;
      compiling_ = std::max(1u, options_.compilers);
      for (unsigned i = 0; i < std::max(1u, options_.compilers); ++i) {
        threads.emplace_back([this] { compile_all(); });
      }
      for (const int device : tools_.judge ? options_.devices : std::vector<int>{}) {
        for (int i = 0; i < judged_at_once; ++i) {
          threads.emplace_back([this, device] { judge_all(device); });
        }
      }
    }
    if (failure_) return *failure_;
    in_order();
    return std::move(record_);
  }

 private:
  struct Built {
    const Claim* claim = nullptr;
    fs::path program;
    ClaimRow row;
  };

  bool wanted(const Claim& claim) const {
    const std::vector<std::string>& only = options_.only;
    return only.empty() || std::find(only.begin(), only.end(), claim.name) != only.end();
  }

  /// Rows of claims that are not in the file any more go, and those that have no answer.
  void choose() {
    std::vector<ClaimRow> kept;
    for (const Claim& claim : file_.claims) {
      const auto row = std::find_if(record_.rows.begin(), record_.rows.end(),
                                    [&](const auto& one) { return one.claim.name == claim.name; });
      const bool answered = row != record_.rows.end() && row->answer == answer_to(claim) &&
                            row->outcome != ClaimOutcome::missing &&
                            row->outcome != ClaimOutcome::not_evaluated;
      const bool repeated = wanted(claim) && (options_.again || !answered);
      if (row != record_.rows.end() && !repeated) kept.push_back(*row);
      if (repeated) waiting_.push_back(&claim);
    }
    record_.rows = std::move(kept);
    total_ = waiting_.size();
  }

  std::string answer_to(const Claim& claim) const {
    return claim_digest(claim, options_.judge_of ? options_.judge_of(claim) : "");
  }

  ClaimRow blank_row(const Claim& claim) const {
    ClaimRow row;
    row.claim = claim;
    row.claim.compile.clear();
    row.claim.arguments.clear();
    row.answer = answer_to(claim);
    return row;
  }

  const Claim* next_to_compile() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty() || failure_) return nullptr;
    const Claim* claim = waiting_.front();
    waiting_.pop_front();
    return claim;
  }

  void compile_all() {
    while (const Claim* claim = next_to_compile()) compile(*claim);
    const std::lock_guard lock(mutex_);
    --compiling_;
    changed_.notify_all();
  }

  void compile(const Claim& claim) {
    Built built{&claim, {}, blank_row(claim)};
    const fs::path folder = options_.work / claim.name;
    Result<fs::path> program = write_source(claim, file_, options_, folder);
    if (!program) {
      finish(std::move(built.row), ClaimOutcome::missing, program.error().message);
      return;
    }
    if (!claim.compile.empty()) {
      say("compiling " + claim.name + " …");
      program = tools_.build(claim, *program, folder);
    } else if (tools_.prepare) {
      say("loading " + claim.name + " …");
      if (Result<Ok> prepared = tools_.prepare(claim, *program, folder); !prepared) {
        finish(std::move(built.row), ClaimOutcome::not_evaluated, prepared.error().message);
        return;
      }
      if (is_rehearsed()) {
        say("rehearsing " + claim.name + " …");
        tools_.rehearse(claim, *program, folder, next_device());
      }
    }
    if (!program) {
      finish(std::move(built.row), ClaimOutcome::not_built, program.error().message);
      return;
    }
    built.program = *program;
    if (!tools_.judge) {
      finish(std::move(built.row), ClaimOutcome::not_evaluated, "was only built");
      return;
    }
    const std::lock_guard lock(mutex_);
    ready_.push_back(std::move(built));
    changed_.notify_all();
  }

  bool is_rehearsed() const { return file_.rehearse && tools_.rehearse && tools_.judge; }

  /// Each in turn.
  int next_device() {
    const std::lock_guard lock(mutex_);
    return options_.devices.at(rehearsals_++ % options_.devices.size());
  }

  std::optional<Built> next_to_judge() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return (!ready_.empty() && !is_rehearsed()) || compiling_ == 0 || failure_;
    });
    if (ready_.empty() || failure_) return std::nullopt;
    Built built = std::move(ready_.front());
    ready_.pop_front();
    return built;
  }

  void judge_all(int device) {
    while (std::optional<Built> built = next_to_judge()) {
      say("judging " + built->claim->name + " on GPU " + std::to_string(device) + " …");
      const fs::path folder = options_.work / built->claim->name;
      tools_.judge(*built->claim, built->program, folder, device, built->row);
      const ClaimOutcome outcome = built->row.outcome;
      const std::string reason = built->row.reason;
      finish(std::move(built->row), outcome, reason);
    }
  }

  /// A record says nothing of where this machine built the program.
  std::string without_places(std::string reason, const std::string& claim) const {
    const std::string folder = (options_.work / claim / "").string();
    for (std::size_t at = 0; (at = reason.find(folder, at)) != std::string::npos;) {
      reason.erase(at, folder.size());
    }
    return reason.starts_with(own_prefix) ? reason.substr(own_prefix.size()) : reason;
  }

  void finish(ClaimRow row, ClaimOutcome outcome, const std::string& reason) {
    row.outcome = outcome;
    row.reason = one_line(without_places(reason, row.claim.name), longest_reason);
    const std::lock_guard lock(mutex_);
    ++done_;
    if (options_.say) {
      options_.say("[" + std::to_string(done_) + "/" + std::to_string(total_) + "] " +
                   row.claim.name + ": " + (row.status.empty() ? to_string(outcome) : row.status) +
                   (row.reason.empty() ? "" : ": " + row.reason));
    }
    record_.rows.push_back(std::move(row));
    if (!options_.arrived || failure_) return;
    if (Result<Ok> taken = options_.arrived(record_); !taken) {
      failure_ = taken.error();
      changed_.notify_all();
    }
  }

  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (options_.say) options_.say(text);
  }

  /// Rows as the file has its claims.
  void in_order() {
    std::vector<ClaimRow> ordered;
    for (const Claim& claim : file_.claims) {
      for (ClaimRow& row : record_.rows) {
        if (row.claim.name == claim.name) ordered.push_back(std::move(row));
      }
    }
    record_.rows = std::move(ordered);
  }

  const ClaimsFile& file_;
  const ClaimsOptions& options_;
  const ClaimTools& tools_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ClaimsRecord record_;
  std::deque<const Claim*> waiting_;
  std::deque<Built> ready_;
  unsigned compiling_ = 0;  ///< threads that may bring more programs
  std::size_t rehearsals_ = 0;
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  std::optional<Error> failure_;
};

}  // namespace

Result<ClaimsRecord> run_claims(const ClaimsFile& file, ClaimsRecord record,
                                const ClaimsOptions& options, const ClaimTools& tools) {
  return ClaimsRun(file, std::move(record), options, tools).run();
}

}  // namespace rekernel
