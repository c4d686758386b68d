#include "harness/claims/claim_tools.h"

#include <boost/json.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <sstream>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/capture/capture.h"
#include "harness/evaluation/launcher.h"
#include "harness/evaluation/statistics.h"
#include "harness/gpu/exclusive.h"
#include "harness/gpu/identity.h"
#include "harness/measuring/references.h"
#include "harness/problem_import/imported_problem.h"
#include "harness/problems/catalog.h"
#include "harness/process/sandbox.h"
#include "reference/pytorch.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// What programs include, so that no source tree is needed beside this program.
constexpr char marks_header[] =
#include "rekernel_marks.inc"
    ;

constexpr std::int64_t max_built_bytes = std::int64_t{1} << 30;

std::map<std::string, std::string> words_of(const Claim& claim, const ClaimToolsOptions& options,
                                            const fs::path& source, const fs::path& folder) {
  std::map<std::string, std::string> words = {
      {"source", source.string()},
      {"program", (folder / claim.name).string()},
      {"sources", fs::absolute(options.sources).lexically_normal().string()},
      {"claims", options.claims_folder.string()},
      {"marks", (folder / "marks").string()}};
  for (const auto& [axis, size] : claim.axes) words[axis] = std::to_string(size);
  return words;
}

/// The first line of a compiler's log that is about an error, else the last one.
std::string reason_in(const fs::path& log) {
  const Result<std::string> text = read_file(log);
  if (!text) return "it wrote no log";
  std::istringstream lines(*text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("error") != std::string::npos || line.find("undefined") != std::string::npos) {
      return one_line(line, 300);
    }
    if (!line.empty()) last = line;
  }
  return one_line(last, 300);
}

/// In the sandbox, without a GPU, with `folder` to write in.
Result<ChildOutcome> run_compiler(const ClaimToolsOptions& options,
                                  const std::vector<std::string>& command,
                                  const std::map<std::string, std::string>& words,
                                  const fs::path& folder, std::vector<std::string> variables) {
  if (const Result<std::string> found = sandbox(); !found && !sandbox_is_refused()) {
    return Error{"strangers' programs are built in the sandbox alone, and there is none: " +
                 found.error().message +
                 "; REKERNEL_SANDBOX=off in the environment builds them with all of your rights"};
  }
  ChildCommand child;
  // What the compiler says goes into a file: the line with the reason is rarely the last one.
  child.arguments = {
      "/usr/bin/env", "-C", folder.string(), "/bin/sh", "-c", "exec \"$@\" > build.log 2>&1", "sh"};
  child.arguments.insert(child.arguments.end(), command.begin(), command.end());
  child.deadline = options.compile_deadline;
  child.exit_deadline = options.compile_deadline;
  child.limits.processor_time = 4 * options.compile_deadline;
  child.limits.file_bytes = max_built_bytes;
  child.limits.open_files = 4096;
  SandboxAdditions additions;
  additions.tools = true;
  additions.readable = {words.at("sources"), words.at("claims")};
  additions.writable = {folder.string()};
  additions.variables = std::move(variables);
  additions.variables.push_back("TMPDIR=" + folder.string());
  additions.variables.push_back("HOME=" + folder.string());
  return run_sandboxed(std::move(child), SandboxDevices::none, additions);
}

/// Loads a Python program once, so that what it compiles is there when it is captured.
constexpr char load_program[] = R"(import importlib.util, os, sys
sys.path.insert(0, os.path.dirname(sys.argv[1]))
specification = importlib.util.spec_from_file_location("captured_program", sys.argv[1])
specification.loader.exec_module(importlib.util.module_from_spec(specification))
)";

/// CaptureRequest::compiled of a claim.
fs::path compiled_in(const fs::path& folder) { return folder / "compiled"; }

Result<Ok> prepare(const ClaimToolsOptions& options, const Claim& claim, const fs::path& program,
                   const fs::path& folder) {
  // A program that is the problem is imported here, where nobody waits for a GPU.
  const auto problem = claimed_problem(claim, options.claims_folder, options.sources);
  if (!problem) return problem.error();
  if (options.extension_archs.empty()) return Ok{};
  const fs::path extensions = compiled_in(folder) / "extensions";
  std::error_code ignored;
  fs::create_directories(extensions, ignored);
  static_cast<void>(run_compiler(
      options, {"python3", "-c", load_program, program.string()},
      words_of(claim, options, program, folder), folder,
      {"TORCH_EXTENSIONS_DIR=" + extensions.string(),
       "TORCH_CUDA_ARCH_LIST=" + options.extension_archs, "PYTHONDONTWRITEBYTECODE=1"}));
  return Ok{};
}

Result<fs::path> built(const ClaimToolsOptions& options, const Claim& claim, const fs::path& source,
                       const fs::path& folder) {
  const auto words = words_of(claim, options, source, folder);
  Result<std::vector<std::string>> command = filled_command(claim.compile, words);
  if (!command) return Error{"compile: " + command.error().message};
  std::error_code status;
  fs::create_directories(folder / "marks", status);
  if (Result<Ok> written =
          write_file_atomically(folder / "marks" / "rekernel_marks.h", marks_header);
      !written) {
    return written.error();
  }
  const Result<ChildOutcome> outcome = run_compiler(options, *command, words, folder, {});
  if (!outcome) return outcome.error();
  if (outcome->end != ChildOutcome::End::exited || outcome->code != 0) {
    const std::string what = outcome->end == ChildOutcome::End::deadline
                                 ? "was not done in time"
                                 : "failed with status " + std::to_string(outcome->code);
    return Error{command->front() + " " + what + ": " + reason_in(folder / "build.log")};
  }
  const fs::path program = words.at("program");
  if (!fs::is_regular_file(program, status)) {
    return Error{command->front() + " made no program (-o {program})"};
  }
  return program;
}

CaptureRequest request_of(const ClaimToolsOptions& options, const Claim& claim,
                          const fs::path& program, const fs::path& folder, int device) {
  CaptureRequest request;
  request.program = program;
  request.recorder = options.recorder;
  std::error_code none;
  if (fs::is_directory(compiled_in(folder), none)) request.compiled = compiled_in(folder);
  if (!claim.function.empty()) request.function = claim.function;
  request.name = claim.name;
  request.device = device;
  request.deadline = options.capture_deadline;
  return request;
}

std::int64_t median_of(const std::vector<std::int64_t>& times) {
  return times.empty() ? 0 : summarise(times).median_ns;
}

/// A GPU, its judge and its PyTorch, which stay from claim to claim.
class ClaimPlace {
 public:
  ClaimPlace(int device, const ClaimToolsOptions& options) : device_(device), options_(options) {}

  EvaluationReport evaluate(const Candidate& candidate) {
    const std::lock_guard lock(mutex_);
    const Problem& problem = *find_problem(candidate.problem);
    EvaluateOptions evaluate;
    evaluate.samples = options_.samples;
    evaluate.device = device_;
    evaluate.references = library_reference_ids(candidate.problem);
    if (options_.pytorch) {
      evaluate.external_references = pytorch_ids(problem);
      if (!options_.compiled_pytorch) {
        std::erase(evaluate.external_references, std::string("pytorch_compile"));
      }
      leave_time_for_torch_compile(evaluate);
    }
    if (Result<Ok> begun = begin(whose_text(is_strangers(problem))); !begun) {
      EvaluationReport report;
      report.failure = begun.error().message;
      return report;
    }
    return launcher_->evaluate(candidate, evaluate);
  }

 private:
  /// Again, where PyTorch's process ended, or runs another's text.
  Result<Ok> begin(WhoseText text) {
    if (launcher_ && (!pytorch_ || (text == text_ && pytorch_->descriptors()))) return Ok{};
    launcher_.reset();
    pytorch_.reset();
    if (options_.pytorch) {
      auto spawned = PytorchProcess::spawn(text);
      if (!spawned) return spawned.error();
      pytorch_ = std::move(*spawned);
      text_ = text;
    }
    launcher_ = std::make_unique<LocalLauncher>(pytorch_.get());
    return Ok{};
  }

  const int device_;
  const ClaimToolsOptions options_;
  std::mutex mutex_;
  std::unique_ptr<PytorchProcess> pytorch_;  ///< outlives the launcher
  WhoseText text_ = WhoseText::own;
  std::unique_ptr<LocalLauncher> launcher_;
};

/// A GPU that several of our programs use at a time, and nobody else.
class SharedGpu {
 public:
  /// As long as one of these lives, the GPU is ours.
  class Share {
   public:
    explicit Share(SharedGpu& gpu) : gpu_(gpu) {}
    ~Share() { gpu_.leave(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    SharedGpu& gpu_;
  };

  explicit SharedGpu(int device) : device_(device) {}

  /// Waits until fewer than `most_at_once` have a share. Null where the GPU cannot be had.
  std::unique_ptr<Share> share() {
    constexpr int most_at_once = 4;  // each with inputs and outputs of its own
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return shares_ < most_at_once; });
    if (shares_ == 0) {
      const Result<GpuIdentity> gpu = identify_gpu(device_);
      if (!gpu) return nullptr;
      Result<GpuLock> free = GpuLock::acquire(gpu->uuid, {}, {});
      if (!free) return nullptr;
      gpu_lock_ = std::move(*free);
    }
    ++shares_;
    return std::make_unique<Share>(*this);
  }

 private:
  void leave() {
    const std::lock_guard lock(mutex_);
    if (--shares_ == 0) gpu_lock_.reset();
    changed_.notify_all();
  }

  const int device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int shares_ = 0;
  std::optional<GpuLock> gpu_lock_;
};

class Judging {
 public:
  explicit Judging(ClaimToolsOptions options) : options_(std::move(options)) {}

  void judge(const Claim& claim, const fs::path& program, const fs::path& folder, int device,
             ClaimRow& row) {
    const auto failed = [&](ClaimOutcome outcome, const std::string& reason) {
      row.outcome = outcome;
      row.reason = reason;
    };
    const Result<const Problem*> problem =
        claimed_problem(claim, options_.claims_folder, options_.sources);
    if (!problem) return failed(ClaimOutcome::not_evaluated, problem.error().message);
    const Result<CaptureRequest> request = request_for(claim, program, folder, device);
    if (!request) return failed(ClaimOutcome::not_captured, request.error().message);
    const Result<Capture> capture = captured(*request, **problem, folder);
    if (!capture) return failed(ClaimOutcome::not_captured, capture.error().message);
    row.own_call_ns = median_of(capture->call_ns);
    row.own_device_ns = median_of(capture->device_ns);
    row.note = one_line(capture->candidate.origin.note, 1000);
    const EvaluationReport report = place(device).evaluate(capture->candidate);
    if (!report.failure.empty()) return failed(ClaimOutcome::not_evaluated, report.failure);
    take_evaluation(report.evaluation, row);
  }

  void rehearse(const Claim& claim, const fs::path& program, const fs::path& folder, int device) {
    const auto problem = claimed_problem(claim, options_.claims_folder, options_.sources);
    Result<CaptureRequest> request = request_for(claim, program, folder, device);
    if (!problem || !request) return;
    const std::unique_ptr<SharedGpu::Share> share = shared(device).share();
    if (!share) return;
    request->gpu_is_ours = true;
    request->samples = 1;
    static_cast<void>(capture_program(*request, **problem));
  }

 private:
  Result<CaptureRequest> request_for(const Claim& claim, const fs::path& program,
                                     const fs::path& folder, int device) const {
    const Result<std::vector<std::string>> given =
        filled_command(claim.arguments, words_of(claim, options_, program, folder));
    if (!given) return Error{"arguments: " + given.error().message};
    const Result<GpuIdentity> gpu = identify_gpu(device);
    if (!gpu) return gpu.error();
    const std::vector<Arch> archs = archs_on(gpu->capability);
    if (archs.empty()) return Error{"this GPU is older than sm_80"};
    CaptureRequest request = request_of(options_, claim, program, folder, device);
    request.arguments = *given;
    request.arch = archs.back();
    return request;
  }

  static Result<Capture> captured(const CaptureRequest& request, const Problem& problem,
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

  ClaimPlace& place(int device) {
    const std::lock_guard lock(mutex_);
    return places_.try_emplace(device, device, options_).first->second;
  }

  SharedGpu& shared(int device) {
    const std::lock_guard lock(mutex_);
    return shared_.try_emplace(device, device).first->second;
  }

  const ClaimToolsOptions options_;
  std::mutex mutex_;
  std::map<int, ClaimPlace> places_;
  std::map<int, SharedGpu> shared_;
};

}  // namespace

Result<std::vector<std::string>> filled_command(const std::vector<std::string>& command,
                                                const std::map<std::string, std::string>& words) {
  std::vector<std::string> filled;
  for (const std::string& word : command) {
    std::string text;
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t end = word[at] == '{' ? word.find('}', at) : std::string::npos;
      if (end == std::string::npos) {
        text += word[at++];
        continue;
      }
      const auto known = words.find(word.substr(at + 1, end - at - 1));
      if (known == words.end()) {
        return Error{"unknown placeholder " + one_line(word.substr(at, end - at + 1), 64)};
      }
      text += known->second;
      at = end + 1;
    }
    filled.push_back(std::move(text));
  }
  return filled;
}

Result<const Problem*> claimed_problem(const Claim& claim, const fs::path& claims_folder,
                                       const fs::path& sources) {
  const Problem* known = find_problem(claim.problem);
  if (known && claim.axes.empty()) return known;
  std::string text;
  std::string_view group = "claims";
  if (claim.problem.ends_with(".json")) {
    const Result<std::string> read = read_file(claims_folder / claim.problem);
    if (!read) return Error{"problem: " + read.error().message};
    text = *read;
  } else if (claim.problem.ends_with(".py")) {
    const Result<std::string> made = imported_problem_text(sources / claim.problem, [] {});
    if (!made) return Error{"problem: " + made.error().message};
    text = *made;
    group = strangers_group;
  } else {
    if (!known) return Error{"problem: " + unknown_problem(claim.problem).message};
    text = known->text;
  }
  Result<json::value> value = parse_json(text, claim.problem);
  if (!value) return value.error();
  json::object* object = value->if_object();
  json::value* axes = object ? object->if_contains("axes") : nullptr;
  if (!axes || !axes->is_object()) return Error{claim.problem + ": has no axes"};
  for (const auto& [axis, size] : claim.axes) {
    json::value* of_file = axes->get_object().if_contains(axis);
    if (!of_file) return Error{claim.problem + ": has no axis \"" + axis + "\""};
    *of_file = size;
  }
  Result<NamedByContent> named = named_by_content(*object);
  if (!named) return Error{claim.problem + ": " + named.error().message};
  if (auto adopted =
          adopt_problem(joined_fields({named->id, std::string(group), named->text}), claim.problem);
      !adopted) {
    return adopted.error();
  }
  return find_problem(named->id);
}

ClaimTools claim_tools(const ClaimToolsOptions& options) {
  ClaimTools tools;
  tools.build = [options](const Claim& claim, const fs::path& source, const fs::path& folder) {
    return built(options, claim, source, folder);
  };
  tools.prepare = [options](const Claim& claim, const fs::path& program, const fs::path& folder) {
    return prepare(options, claim, program, folder);
  };
  const auto judging = std::make_shared<Judging>(options);
  tools.judge = [judging](const Claim& claim, const fs::path& program, const fs::path& folder,
                          int device,
                          ClaimRow& row) { judging->judge(claim, program, folder, device, row); };
  tools.rehearse = [judging](const Claim& claim, const fs::path& program, const fs::path& folder,
                             int device) { judging->rehearse(claim, program, folder, device); };
  return tools;
}

}  // namespace rekernel
