#include "harness/evaluation/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "harness/base/text.h"
#include "harness/evaluation/setup_failure.h"

namespace rekernel {

namespace {

std::string number(double value) { return printed("%.3g", value); }

std::string describe_failing(const ErrorStats& stats, const Tensor& output) {
  std::string index;
  std::int64_t rest = stats.first_failing;
  for (std::size_t axis = output.shape.size(); axis-- > 0;) {
    index = std::to_string(rest % output.shape[axis]) + (index.empty() ? "" : ", ") + index;
    rest /= output.shape[axis];
  }
  const bool close = output.comparison == Comparison::close;
  std::string text = std::to_string(stats.failing) + " of " + std::to_string(output.elements()) +
                     (close ? " elements outside the tolerance" : " elements are wrong") +
                     "; first " + output.name + "[" + index + "] = " + number(stats.first_value) +
                     ", expected " + number(stats.first_truth);
  if (stats.unwritten > 0) {
    text += "; " + std::to_string(stats.unwritten) + " elements were never written";
  }
  return text;
}

double share_of(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
}

/// How much of the bounds relative to the size of the results the errors take.
double share_of_bounds(const ErrorStats& stats, const Tolerance& tolerance) {
  return std::max(share_of(stats.rms, tolerance.rms_error_over_rms * stats.truth_rms),
                  share_of(stats.max_abs, tolerance.max_error_over_rms * stats.truth_rms));
}

std::optional<Rejection> judge_size(const std::string& what, double error, double truth_rms,
                                    double bound) {
  if (error <= bound * truth_rms) return std::nullopt;
  return Rejection{Status::wrong_result,
                   what + " " + number(error) + " at rms(truth) " + number(truth_rms) +
                       ": expected a ratio of at most " + number(bound),
                   what};
}

}  // namespace

Checker::Checker(const Problem& problem, const InputBuffers& inputs, const DeviceTools& tools,
                 const TruthSource& truth, const std::vector<CompiledInvariant>& invariants,
                 const DeviceProperties& device, const Stream& stream)
    : problem_(problem),
      tools_(tools),
      stream_(stream),
      violation_(size_in_bytes(DType::f64)),
      salt_(std::uint64_t{std::random_device()()} << 32 | std::random_device()()) {
  Bindings bindings = inputs.bindings();
  for (const Tensor* tensor : problem.outputs()) {
    const std::string name = truth_buffer(tensor->name);
    // Another process can write what lies in pages of its own.
    truths_.add(name, tensor->elements() * size_in_bytes(DType::f64),
                problem.program ? Surroundings::hole : Surroundings::nothing);
    outputs_.push_back({tensor, DeviceBuffer(tensor->bytes()), truths_.bindings().at(name)});
    snapshots_[tensor->name] = bindings[tensor->name] = outputs_.back().snapshot_view();
    bindings[name] = outputs_.back().truth;
  }
  bindings["violation"] = {violation_.get(), violation_.bytes()};
  if (!problem.program) {
    truth_ = std::make_unique<DefinitionTruth>(problem, *truth.oracle, bindings, device);
  } else if (truth.program) {
    truth_ = std::make_unique<ProgramTruth>(problem, inputs, truths_, *truth.program);
  } else {
    throw SetupFailure("'" + problem.id +
                       "' has a program in place of a definition: its truth is not to be had here");
  }
  for (const CompiledInvariant& one : invariants) {
    invariants_.emplace_back(one.invariant,
                             OwnProgram(one.invariant->program, one.compiled, bindings, device));
  }
}

InputBuffers::ProgramDraws Checker::program_draws() const {
  auto* program = dynamic_cast<ProgramTruth*>(truth_.get());
  if (!program) return {};
  return [program](std::uint64_t seed) { program->draw(seed); };
}

void Checker::compute_truth(const StressCase* stress) {
  if (has_truth_) return;
  truth_->compute(stream_);
  if (!stress && truth_->has_nan()) {
    throw SetupFailure("the truth of '" + problem_.id + "' has NaN");
  }
  has_truth_ = true;
}

void Checker::destroy_truth() {
  if (inputs_stay_) return;
  has_truth_ = false;
  for (const Judged& output : outputs_) {
    // A context that fails here fails at its next use, where that can be told.
    driver().cuMemsetD8Async(output.truth.pointer, poison_byte,
                             static_cast<std::size_t>(output.truth.bytes), stream_.get());
  }
}

std::uint64_t Checker::digest() const {
  std::uint64_t all = 0;
  std::uint64_t salt = salt_;
  for (const Judged& output : outputs_) {
    // Each output has another salt, so that outputs cannot change places.
    all = std::rotl(all, 1) + tools_.digest(output.snapshot_view(), salt, stream_);
    salt += 0x9e3779b97f4a7c15ull;
  }
  return all;
}

std::optional<std::vector<double>> Checker::scales(const StressCase* stress) const {
  std::vector<double> scales(outputs_.size(), 1.0);
  if (!stress) return scales;
  // On stress inputs the absolute part of the tolerance follows the size of the results.
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    scales[i] = tools_.root_mean_square(outputs_[i].truth, stream_);
    if (!std::isfinite(scales[i])) return std::nullopt;
  }
  return scales;
}

std::vector<ErrorStats> Checker::compared(const std::vector<double>& scales) const {
  std::vector<ErrorStats> stats;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    stats.push_back(tools_.compare(outputs_[i].snapshot_view(), *outputs_[i].tensor,
                                   outputs_[i].truth, problem_.tolerance, scales[i], stream_));
  }
  return stats;
}

ErrorStats Checker::measure_errors() {
  compute_truth(nullptr);
  const std::vector<ErrorStats> stats = compared(*scales(nullptr));
  destroy_truth();
  return combined(stats, problem_.tolerance);
}

Judgement Checker::judge(const SubjectBuffers& subject, const StressCase* stress) {
  Judgement judgement;
  if (auto name = subject.find_damaged_guard(tools_, stream_)) {
    judgement.rejection =
        Rejection{Status::out_of_bounds_write, "wrote past the bounds of '" + *name + "'"};
    return judgement;
  }
  compute_truth(stress);
  const std::optional<std::vector<double>> scale = scales(stress);
  judgement.has_finite_truth = scale.has_value();
  if (scale) judge_compared(*scale, stress, judgement);
  destroy_truth();
  return judgement;
}

void Checker::judge_compared(const std::vector<double>& scales, const StressCase* stress,
                             Judgement& judgement) const {
  const std::vector<ErrorStats> stats = compared(scales);
  judgement.stats = combined(stats, problem_.tolerance);
  for (std::size_t i = 0; i < stats.size() && !judgement.rejection; ++i) {
    judgement.rejection = judge_values(stats[i], problem_, *outputs_[i].tensor, stress);
  }
  if (!judgement.rejection) judgement.rejection = judge_invariants();
}

std::optional<Rejection> judge_values(const ErrorStats& stats, const Problem& problem,
                                      const Tensor& output, const StressCase* stress) {
  if (stats.failing > 0) {
    return Rejection{Status::wrong_result, describe_failing(stats, output),
                     stats.unwritten > 0 ? "unwritten elements" : "tolerance of an element"};
  }
  // These bounds are drawn for the problem's own inputs. On stress inputs an honest FP32 kernel can
  // be further off (the mean of a layer norm at 1000 ± 0.1), and the scaled tolerance has decided.
  if (stress) return std::nullopt;
  std::optional<Rejection> rejection = judge_sizes(stats, problem.tolerance);
  if (rejection && problem.outputs().size() > 1) {
    rejection->message = output.name + ": " + rejection->message;
  }
  return rejection;
}

std::optional<Rejection> judge_sizes(const ErrorStats& stats, const Tolerance& tolerance) {
  auto rejection =
      judge_size("rms error", stats.rms, stats.truth_rms, tolerance.rms_error_over_rms);
  if (rejection) return rejection;
  return judge_size("largest error", stats.max_abs, stats.truth_rms, tolerance.max_error_over_rms);
}

ErrorStats combined(const std::vector<ErrorStats>& stats, const Tolerance& tolerance) {
  ErrorStats all = *std::max_element(
      stats.begin(), stats.end(), [&](const ErrorStats& one, const ErrorStats& other) {
        return share_of_bounds(one, tolerance) < share_of_bounds(other, tolerance);
      });
  all.failing = all.unwritten = 0;
  all.first_failing = -1;
  all.first_value = all.first_truth = 0;
  for (const ErrorStats& one : stats) {
    all.failing += one.failing;
    all.unwritten += one.unwritten;
    all.worst_tolerance_ratio = std::max(all.worst_tolerance_ratio, one.worst_tolerance_ratio);
    all.worst_strict_ratio = std::max(all.worst_strict_ratio, one.worst_strict_ratio);
    if (all.first_failing != -1 || one.first_failing == -1) continue;
    all.first_failing = one.first_failing;
    all.first_value = one.first_value;
    all.first_truth = one.first_truth;
  }
  return all;
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

std::optional<Rejection> Checker::judge_invariants() const {
  for (const auto& [invariant, program] : invariants_) {
    program.enqueue(stream_);
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
