#include "harness/claims/claim_judge.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "harness/base/files.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/capture/capture.h"
#include "harness/capture/gpu_turn.h"
#include "harness/gpu/identity.h"
#include "harness/measuring/place.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// Of a library's ways of a large convolution in FP32, which are timed first, some take seconds.
constexpr std::chrono::seconds startup_deadline{180};

/// A place for one claim at a time.
class ClaimPlace {
 public:
  ClaimPlace(int device, const ClaimToolsOptions& options) : place_(device), options_(options) {}

  EvaluationReport evaluate(const Candidate& candidate) {
    const std::lock_guard lock(mutex_);
    const Problem& problem = *find_problem(candidate.problem);
    EvaluateOptions evaluate;
    evaluate.samples = options_.samples;
    evaluate.device = place_.device();
    evaluate.startup_deadline = startup_deadline;
    evaluate.references = library_reference_ids(candidate.problem);
    std::optional<WhoseText> pytorch;
    if (options_.pytorch) {
      evaluate.external_references = pytorch_ids(problem, options_.compiled_pytorch);
      leave_time_for_torch_compile(evaluate);
      pytorch = whose_text(is_strangers(problem));
    }
    if (Result<Ok> begun = place_.begin(pytorch); !begun) {
      EvaluationReport report;
      report.failure = begun.error().message;
      return report;
    }
    return place_.launcher().evaluate(candidate, evaluate);
  }

 private:
  std::mutex mutex_;
  MeasuringPlace place_;
  const ClaimToolsOptions options_;
};

/// A GPU that several of our programs use at a time, and nobody else.
class SharedGpu {
 public:
  explicit SharedGpu(int device) : device_(device) {}

  /// Waits until fewer than `most_at_once` have a share. The GPU is ours as long as one lives.
  Result<std::shared_ptr<void>> share() {
    constexpr int most_at_once = 4;  // each with inputs and outputs of its own
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return shares_ < most_at_once; });
    if (shares_ == 0) {
      const Result<GpuIdentity> gpu = identify_gpu(device_);
      if (!gpu) return gpu.error();
      Result<std::shared_ptr<void>> free = take_alone(gpu->uuid, {}, {})();
      if (!free) return free.error();
      held_ = std::move(*free);
    }
    ++shares_;
    return std::shared_ptr<void>(this, [this](void*) { leave(); });
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--shares_ == 0) held_.reset();
    changed_.notify_all();
  }

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int shares_ = 0;
  std::shared_ptr<void> held_;
};

Result<CaptureRequest> request_for(const ClaimToolsOptions& options, const Claim& claim,
                                   const fs::path& program, const fs::path& folder, int device) {
  const Result<std::vector<std::string>> given =
      filled_command(claim.arguments, claim_words(claim, options, program, folder));
  if (!given) return Error{"arguments: " + given.error().message};
  const Result<Arch> arch = newest_arch_on(device);
  if (!arch) return arch.error();
  CaptureRequest request;
  request.program = program;
  request.arguments = *given;
  request.recorder = options.recorder;
  std::error_code none;
  if (fs::is_directory(claim_compiled(folder), none)) request.compiled = claim_compiled(folder);
  if (!claim.function.empty()) request.function = claim.function;
  request.name = claim.name;
  request.arch = *arch;
  request.device = device;
  request.deadline = options.capture_deadline;
  return request;
}

Result<Capture> captured(const CaptureRequest& request, const Problem& problem,
                         const fs::path& folder) {
  Result<Capture> capture = capture_program(request, problem);
  if (!capture) return capture;
  // Whoever keeps the folder can judge it again.
  if (auto kept = write_file_atomically(folder / "problem.json", problem.text); !kept) {
    return kept.error();
  }
  const fs::path into = folder / "captured" / request.name;
  if (auto kept = write_candidate(into, capture->candidate); !kept) return kept.error();
  return capture;
}

}  // namespace

struct ClaimJudge::Parts {
  explicit Parts(ClaimToolsOptions options) : options(std::move(options)) {}

  ClaimPlace& place(int device) {
    const std::lock_guard lock(mutex_);
    return places_.try_emplace(device, device, options).first->second;
  }

  SharedGpu& shared(int device) {
    const std::lock_guard lock(mutex_);
    return shared_.try_emplace(device, device).first->second;
  }

  void keep(const std::string& claim, Capture capture) {
    const std::lock_guard lock(mutex_);
    rehearsed_.insert_or_assign(claim, std::move(capture));
  }

  /// What was captured as the claim's program was rehearsed, once.
  std::optional<Capture> take_rehearsed(const std::string& claim) {
    const std::lock_guard lock(mutex_);
    auto node = rehearsed_.extract(claim);
    if (!node) return std::nullopt;
    return std::move(node.mapped());
  }

  const ClaimToolsOptions options;
  std::mutex mutex_;  ///< of what follows
  std::map<std::string, Capture> rehearsed_;
  std::map<int, ClaimPlace> places_;
  std::map<int, SharedGpu> shared_;
};

ClaimJudge::ClaimJudge(ClaimToolsOptions options)
    : parts_(std::make_unique<Parts>(std::move(options))) {}

ClaimJudge::~ClaimJudge() = default;

void ClaimJudge::judge(const Claim& claim, const fs::path& program, const fs::path& folder,
                       int device, ClaimRow& row) {
  const auto failed = [&](ClaimOutcome outcome, const std::string& reason) {
    row.outcome = outcome;
    row.reason = reason;
  };
  const Result<const Problem*> problem =
      claimed_problem(claim, parts_->options.claims_folder, parts_->options.sources);
  if (!problem) return failed(ClaimOutcome::not_evaluated, problem.error().message);
  std::optional<Capture> capture = parts_->take_rehearsed(claim.name);
  if (!capture) {
    const Result<CaptureRequest> request =
        request_for(parts_->options, claim, program, folder, device);
    if (!request) return failed(ClaimOutcome::not_captured, request.error().message);
    Result<Capture> alone = captured(*request, **problem, folder);
    if (!alone) return failed(ClaimOutcome::not_captured, alone.error().message);
    capture = std::move(*alone);
    row.own_call_ns = capture->median_call_ns();
    row.own_device_ns = capture->median_device_ns();
  }
  row.note = one_line(capture->candidate.origin.note, 1000);
  const EvaluationReport report = parts_->place(device).evaluate(capture->candidate);
  if (!report.failure.empty()) return failed(ClaimOutcome::not_evaluated, report.failure);
  take_evaluation(report.evaluation, row);
}

void ClaimJudge::rehearse(const Claim& claim, const fs::path& program, const fs::path& folder,
                          int device) {
  const auto problem =
      claimed_problem(claim, parts_->options.claims_folder, parts_->options.sources);
  Result<CaptureRequest> request = request_for(parts_->options, claim, program, folder, device);
  if (!problem || !request) return;
  request->take_gpu = [&shared = parts_->shared(device)] { return shared.share(); };
  request->samples = 1;
  Result<Capture> capture = captured(*request, **problem, folder);
  if (capture) parts_->keep(claim.name, std::move(*capture));
}

}  // namespace rekernel
