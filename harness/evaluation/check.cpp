#include "harness/evaluation/check.h"

#include <cmath>
#include <random>
#include <stdexcept>
#include <utility>

#include "harness/base/text.h"

namespace rekernel {

namespace {

/// Memory of a program of the harness itself: its workspaces, beside the given buffers.
Bindings bind_workspaces(const Program& program, Bindings bindings,
                         std::vector<DeviceBuffer>& storage) {
  for (const Workspace& workspace : program.workspaces) {
    storage.emplace_back(workspace.bytes);
    bindings[workspace.name] = {storage.back().get(), workspace.bytes};
  }
  return bindings;
}

std::unique_ptr<Runnable> own_runnable(const Program& program, const CompiledProgram& compiled,
                                       const Bindings& bindings, const DeviceProperties& device) {
  Result<std::unique_ptr<Runnable>> runnable = make_runnable(program, compiled, bindings, device);
  if (!runnable) throw std::runtime_error(runnable.error().message);
  return std::move(*runnable);
}

std::string number(double value) { return printed("%.3g", value); }

std::string describe_failing(const ErrorStats& stats, const Tensor& output) {
  std::string index;
  std::int64_t rest = stats.first_failing;
  for (std::size_t axis = output.shape.size(); axis-- > 0;) {
    index = std::to_string(rest % output.shape[axis]) + (index.empty() ? "" : ", ") + index;
    rest /= output.shape[axis];
  }
  std::string text = std::to_string(stats.failing) + " of " + std::to_string(output.elements()) +
                     " elements outside the tolerance; first " + output.name + "[" + index +
                     "] = " + number(stats.first_value) + ", expected " + number(stats.first_truth);
  if (stats.unwritten > 0) {
    text += "; " + std::to_string(stats.unwritten) + " elements were never written";
  }
  return text;
}

}  // namespace

Checker::Checker(const Problem& problem, const InputBuffers& inputs, const DeviceTools& tools,
                 const CompiledProgram& oracle, const std::vector<CompiledInvariant>& invariants,
                 const DeviceProperties& device, const Stream& stream)
    : problem_(problem),
      tools_(tools),
      stream_(stream),
      snapshot_(problem.output().bytes()),
      truth_(problem.output().elements() * size_in_bytes(DType::f64)),
      violation_(size_in_bytes(DType::f64)),
      salt_(std::uint64_t{std::random_device()()} << 32 | std::random_device()()) {
  Bindings bindings = inputs.bindings();
  bindings[problem.output().name] = snapshot();
  bindings["truth"] = {truth_.get(), truth_.bytes()};
  bindings["violation"] = {violation_.get(), violation_.bytes()};
  oracle_ =
      own_runnable(problem.device_oracle, oracle,
                   bind_workspaces(problem.device_oracle, bindings, oracle_workspaces_), device);
  for (const CompiledInvariant& one : invariants) {
    const Program& program = one.invariant->program;
    invariants_.emplace_back(
        one.invariant,
        own_runnable(program, one.compiled, bind_workspaces(program, bindings, oracle_workspaces_),
                     device));
  }
}

void Checker::compute_truth() {
  if (has_truth_) return;
  oracle_->enqueue(stream_.get());
  stream_.synchronize();
  has_truth_ = true;
}

void Checker::destroy_truth() {
  if (inputs_stay_) return;
  has_truth_ = false;
  // A context that fails here fails at its next use, where that can be told.
  driver().cuMemsetD8Async(truth_.get(), poison_byte, static_cast<std::size_t>(truth_.bytes()),
                           stream_.get());
}

ErrorStats Checker::measure_errors() {
  compute_truth();
  const ErrorStats stats =
      tools_.compare(snapshot(), problem_.output().dtype, {truth_.get(), truth_.bytes()},
                     problem_.tolerance, 1.0, stream_);
  destroy_truth();
  return stats;
}

std::optional<Rejection> Checker::judge(const SubjectBuffers& subject, const StressCase* stress,
                                        std::optional<ErrorStats>* stats) {
  if (auto name = subject.find_damaged_guard(tools_, stream_)) {
    return Rejection{Status::out_of_bounds_write, "wrote past the bounds of '" + *name + "'"};
  }
  compute_truth();
  const BufferView truth{truth_.get(), truth_.bytes()};
  // On stress inputs the absolute part of the tolerance follows the size of the results.
  const double scale = stress ? tools_.root_mean_square(truth, stream_) : 1.0;
  const ErrorStats found = tools_.compare(snapshot(), problem_.output().dtype, truth,
                                          problem_.tolerance, scale, stream_);
  if (stats) *stats = found;
  std::optional<Rejection> rejection = judge_values(found, problem_, stress);
  if (!rejection) rejection = judge_invariants();
  destroy_truth();
  return rejection;
}

std::optional<Rejection> judge_values(const ErrorStats& stats, const Problem& problem,
                                      const StressCase* stress) {
  if (stats.failing > 0) {
    return Rejection{Status::wrong_result, describe_failing(stats, problem.output()),
                     stats.unwritten > 0 ? "unwritten elements" : "tolerance of an element"};
  }
  const Tolerance& tolerance = problem.tolerance;
  // These bounds are drawn for the problem's own inputs. On stress inputs an honest FP32 kernel can
  // be further off (the mean of a layer norm at 1000 ± 0.1), and the scaled tolerance has decided.
  if (stress) return std::nullopt;
  if (!(stats.rms <= tolerance.rms_error_over_rms * stats.truth_rms)) {
    return Rejection{Status::wrong_result,
                     "rms error " + number(stats.rms) + " at rms(truth) " +
                         number(stats.truth_rms) + ": expected a ratio of at most " +
                         number(tolerance.rms_error_over_rms),
                     "rms error"};
  }
  if (!(stats.max_abs <= tolerance.max_error_over_rms * stats.truth_rms)) {
    return Rejection{Status::wrong_result,
                     "largest error " + number(stats.max_abs) + " at rms(truth) " +
                         number(stats.truth_rms) + ": expected a ratio of at most " +
                         number(tolerance.max_error_over_rms),
                     "largest error"};
  }
  return std::nullopt;
}

double strict_share(const ErrorStats& stats, const ErrorStats* library) {
  constexpr double allowed_library_errors = 2.0;
  if (!library) return stats.worst_strict_ratio;
  const auto share = [](double error, double of_library) {
    return error > 0 ? error / (allowed_library_errors * of_library) : 0.0;
  };
  return std::min(stats.worst_strict_ratio,
                  std::max(share(stats.max_abs, library->max_abs), share(stats.rms, library->rms)));
}

std::optional<Rejection> Checker::judge_invariants() {
  for (const auto& [invariant, runnable] : invariants_) {
    runnable->enqueue(stream_.get());
    stream_.synchronize();
    double violation = 0;
    REKERNEL_CUDA(cuMemcpyDtoH(&violation, violation_.get(), sizeof violation));
    if (!(violation <= invariant->bound)) {
      return Rejection{Status::wrong_result,
                       invariant->name + ": violated by " + number(violation) +
                           ", expected at most " + number(invariant->bound),
                       invariant->name};
    }
  }
  return std::nullopt;
}

}  // namespace rekernel
