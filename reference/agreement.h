#pragma once

#include <boost/json/fwd.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "ops/problem.h"
#include "ops/result.h"
#include "reference/sandboxed_python.h"

namespace rekernel {

/// How far PyTorch's expression, in float64, is from the truth of one output.
struct Agreement {
  std::string output;
  Comparison comparison = Comparison::close;
  double largest = 0;        ///< difference, relative to the truth's root mean square
  std::int64_t unequal = 0;  ///< of integers and conditions: elements that differ
  std::int64_t elements = 0;

  /// Sums in another order differ by less. One in a thousand indices of extremes may differ:
  /// which of equal elements it names is PyTorch's choice.
  bool agrees() const;
  static constexpr double most = 1e-9;
};

/// "y: 3.1e-16 of the rms", "index: 2 of 4096 differ"
std::string to_text(const Agreement& agreement);
boost::json::object to_json(const Agreement& agreement);

/// Where the values of a problem lie in memory that PyTorch sees: its inputs, each in the type that
/// `stored` says, and its outputs' truths as float64, in the order of Problem::tensors.
struct ValuesInMemory {
  struct Place {
    DType stored = DType::f64;
    std::int64_t at = 0;  ///< bytes from the start; a multiple of 256
    std::int64_t bytes = 0;
  };
  std::vector<Place> tensors;
  std::int64_t bytes = 0;  ///< of them all
};

/// With inputs in their own types, as they lie on a device, or as float64.
enum class StoredInputs { own_types, float64 };
ValuesInMemory values_in_memory(const Problem& problem, StoredInputs inputs);

/// A `python3` in the sandbox that compares problems' PyTorch expressions with truths, one after
/// the other (agreement.py). Ended when this goes.
class AgreementProcess {
 public:
  /// Where PyTorch computes.
  enum class Place { cpu, gpu };
  /// `device` as CUDA counts. A missing python3 or PyTorch shows at the first comparison.
  static Result<std::unique_ptr<AgreementProcess>> start(Place place, int device = 0);
  ~AgreementProcess();
  AgreementProcess(const AgreementProcess&) = delete;
  AgreementProcess& operator=(const AgreementProcess&) = delete;

  /// Memory for the values of one problem, until the next call of this.
  Result<std::span<std::byte>> memory(std::int64_t bytes);

  /// Compares what lies in the memory. Errors: PyTorch is missing or refused the expression, its
  /// result has another shape, the process ended, or the deadline passed, after which there is no
  /// next comparison.
  Result<std::vector<Agreement>> compare(const Problem& problem, const ValuesInMemory& values,
                                         std::chrono::seconds deadline);

 private:
  AgreementProcess(FileDescriptor socket, FileDescriptor memory, SandboxedPython python)
      : socket_(std::move(socket)), memory_(std::move(memory)), python_(std::move(python)) {}
  void unmap();
  Result<std::string> ask(const std::string& line, std::chrono::seconds deadline);
  Error ended();

  FileDescriptor socket_;
  FileDescriptor memory_;
  SandboxedPython python_;
  std::span<std::byte> mapped_;
};

/// The same of values on the host.
Result<std::vector<Agreement>> pytorch_agreement(AgreementProcess& process, const Problem& problem,
                                                 const HostInputs& inputs, const HostInputs& truth,
                                                 std::chrono::seconds deadline);

}  // namespace rekernel
