#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/device/launch.h"
#include "harness/gpu/cuda.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// Times a reference that lives in another process, in blocks between the candidate's own.
class ExternalReference {
 public:
  virtual ~ExternalReference() = default;
  virtual Result<std::vector<std::int64_t>> time_block(int samples, std::uint64_t seed) = 0;
  virtual std::string details() const = 0;
};

/// Makes a library reference that reads and writes the bindings; see make_reference.
using ReferenceMaker = std::function<Result<std::unique_ptr<Runnable>>(
    const std::string& id, const Problem&, const Bindings&, const Device&)>;

/// Where an evaluation gets its references from. The harness does not know the libraries.
struct ReferenceSource {
  ReferenceMaker make;
  /// Loads the library of a reference, if there is one, which takes a while and needs no GPU.
  std::function<void(const std::string& id)> load;
  /// Over copies of the descriptors of an ExternalSession, which the reference closes.
  std::function<Result<std::unique_ptr<ExternalReference>>(
      const std::string& id, const Problem&, const std::array<int, 2>& descriptors, int device)>
      make_external;
  /// The id under which `make` knows the largest matrix rate, for matrix_rate_product(); empty:
  /// none.
  std::string matrix_rate_reference;
};

}  // namespace rekernel
