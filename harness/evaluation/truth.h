#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/device/buffers.h"
#include "harness/device/own_program.h"
#include "harness/process/channel.h"
#include "ops/problem.h"

namespace rekernel {

/// Where the float64 truth of the inputs that are in place comes from.
class Truth {
 public:
  virtual ~Truth() = default;
  /// Writes the truth of every output, all of it once this returns. Throws SetupFailure where there
  /// is none: that says nothing of a candidate.
  virtual void compute(const Stream& stream) = 0;
  /// Whether the last one holds a NaN.
  virtual bool has_nan() const { return false; }
};

/// From the problem's definition.
class DefinitionTruth : public Truth {
 public:
  /// `bindings` names inputs and truths.
  DefinitionTruth(const Problem& problem, const CompiledProgram& compiled, const Bindings& bindings,
                  const DeviceProperties& device)
      : oracle_(problem.device_oracle, compiled, bindings, device) {}
  void compute(const Stream& stream) override;

 private:
  OwnProgram oracle_;
};

/// From the program that a problem has in place of a definition, in a process that sees the inputs
/// and writes the truths, and has nothing else of this one's (reference/python_truth.h).
class ProgramTruth : public Truth {
 public:
  /// Lends the inputs, for reading, where the program draws inputs, and the truths, whose names are
  /// truth_buffer()'s; and waits until the program is ready. The channel must outlive it. Throws
  /// SetupFailure: what the program lacks, or that it is not ready within its deadline.
  ProgramTruth(const Problem& problem, const InputBuffers& inputs, const Buffers& truths,
               Channel& channel);
  void compute(const Stream& stream) override;
  bool has_nan() const override { return has_nan_; }
  /// What InputBuffers::draw_by wants. Throws SetupFailure.
  void draw(std::uint64_t seed);

 private:
  Fields ask(const Fields& question, std::span<const int> descriptors);

  std::string problem_;
  Channel& channel_;
  bool has_nan_ = false;
};

}  // namespace rekernel
