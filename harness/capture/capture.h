#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/capture/gpu_turn.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What a program is to be captured for.
struct CaptureRequest {
  std::filesystem::path program;
  /// Of a program that is no Python file and marks its work itself (rekernel_marks.h).
  std::vector<std::string> arguments;
  std::filesystem::path recorder;  ///< the library that CUDA loads into it
  /// Where PyTorch and Triton find what they compiled for the program before (`extensions`,
  /// `inductor` and `triton` below it), and write more; empty: nowhere.
  std::filesystem::path compiled;
  std::optional<std::string> function;  ///< which of the program's functions, if it has several
  std::string name;                     ///< of the candidate
  Arch arch = "sm_80";                  ///< of the device that it runs on
  int device = 0;
  int samples = 30;                    ///< of the program's own time
  std::chrono::seconds deadline{300};  ///< with a Python program's wait for the GPU
  /// Told, where others have the GPU, who: the program has it for itself.
  std::function<void(const std::string& holder)> waiting;
  TakeGpu take_gpu = nullptr;  ///< in place of taking the GPU alone
};

/// A candidate out of a program, and what the program says of itself: nothing of that decides.
struct Capture {
  Candidate candidate;
  std::string entry;                    ///< what was called
  std::string torch;                    ///< PyTorch's version; empty of a program without Python
  std::vector<std::int64_t> call_ns;    ///< of whole calls, the host's time too
  std::vector<std::int64_t> device_ns;  ///< of their part on the device

  /// 0 where a program that marks its work marked too few calls for times.
  std::int64_t median_call_ns() const;
  std::int64_t median_device_ns() const;
};

/// Whether capture hands the program to Python; others run by themselves and mark their work.
bool is_python(const std::filesystem::path& program);

/// The recorder, which the build puts beside this program, or why it is not there.
Result<std::filesystem::path> find_recorder();

/// CaptureRequest::arch for the GPU with this number.
Result<Arch> newest_arch_on(int device);

/// Everything that can be wrong with a request and be known before its program runs: the file, the
/// function, the candidate's name. Needs neither a GPU nor PyTorch.
Result<Ok> check_request(const CaptureRequest& request, const Problem& problem);

/// Runs a program in the sandbox with the recorder beside it and makes a candidate of what it
/// launched. Evaluations and captures on one GPU take turns: PyTorch is imported before, and the
/// program loaded and run when it has the GPU. Errors say what the program did that cannot be
/// captured.
Result<Capture> capture_program(const CaptureRequest& request, const Problem& problem);

}  // namespace rekernel
