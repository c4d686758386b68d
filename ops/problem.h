#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ops/program.h"

namespace rekernel {

enum class Role { input, output };

/// How an input's elements are drawn. Every element is a pure function of (seed, tensor, index).
struct Distribution {
  enum class Kind { normal, uniform, constant };
  Kind kind = Kind::normal;
  double a = 0.0;  ///< normal: mean; uniform: lower bound; constant: the value
  double b = 1.0;  ///< normal: standard deviation; uniform: upper bound; constant: unused

  /// One row, which the seed chooses, is drawn normally in its own way; a deviation of 0 makes it
  /// constant.
  struct OddRow {
    std::int64_t rows = 0;      ///< from the start of the tensor, of which one is odd
    std::int64_t elements = 0;  ///< of a row
    double mean = 0.0;
    double deviation = 1.0;
  };
  std::optional<OddRow> odd_row = {};
  /// Of each stretch of so many elements, a power of two of at least 4, one has this value, at a
  /// place that the seed chooses.
  struct Outliers {
    std::int64_t stretch = 0;
    double value = 0.0;
  };
  std::optional<Outliers> outliers = {};
};

/// "normal", "uniform", "constant"
const char* to_string(Distribution::Kind kind);

struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< row-major, outermost first
  Role role = Role::input;
  Distribution distribution;

  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * size_in_bytes(dtype); }
};

/// A size or constant that the device code sees in `problem.h`.
struct Attribute {
  std::string name;
  std::variant<std::int64_t, double> value;
};

/// What "correct" means for a problem. `absolute` and `relative` are the published tolerance, held
/// by every element; the other two are relative to the truth's root mean square, since a kernel
/// that writes zeros passes the first where outputs are small.
struct Tolerance {
  double absolute = 1e-2;
  double relative = 1e-2;
  double rms_error_over_rms = 0;  ///< bound on ‖err‖ / ‖truth‖
  double max_error_over_rms = 0;  ///< bound on max|err| / rms(truth)
};

/// Inputs outside N(0,1) that the `robust` badge asks for: distributions by input name. Inputs that
/// are not named keep their own.
struct StressCase {
  std::string name;
  std::map<std::string, Distribution> inputs;
};

/// A property of the output that holds whatever the inputs are. The program sees the problem's
/// tensors and the float64 truth, as `truth`, and writes one float64, the violation, to the buffer
/// `violation`.
struct Invariant {
  std::string name;
  Program program;
  double bound = 0;
};

/// Input values by tensor name, already rounded to the tensor's dtype.
using HostInputs = std::map<std::string, std::vector<double>>;

/// One benchmark problem at fixed sizes. Everything is data, so that a problem is one file and one
/// line in the catalog.
struct Problem {
  std::string id;
  std::string title;
  std::vector<Tensor> tensors;  ///< any number of inputs, exactly one output
  std::vector<Attribute> attributes;
  Tolerance tolerance;
  std::vector<StressCase> stress_cases;
  std::vector<Invariant> invariants;

  std::int64_t min_bytes = 0;   ///< each input read once, the output written once
  std::int64_t operations = 0;  ///< multiplications and additions of the definition
  /// FP16 matrix products that the tolerance needs per product of the definition; 0 where no matrix
  /// unit is involved. The ceiling counts operations × this over the FP16 matrix rate.
  int matrix_products = 0;
  /// The fewest multiplications and additions of the matrix unit with which a method is known to
  /// give the output, at the rate of FP16; 0 where no such number bounds the time. What the speed
  /// of light counts: here, and not in `operations`, stands what Strassen's and Winograd's methods
  /// save. One product is counted whatever the tolerance needs. Types of 8 bits are twice as fast,
  /// and take two products at the least to meet any tolerance of the catalog: no less time.
  std::int64_t fewest_matrix_operations = 0;

  /// The definition as an expression of PyTorch's (`torch`, `F` for torch.nn.functional), of the
  /// inputs and attributes by name: what the references from PyTorch time.
  std::string pytorch;

  /// Float64 truth on the host, for small sizes.
  std::function<std::vector<double>(const Problem&, const HostInputs&)> host_oracle;
  /// Float64 truth on the device at any size: reads the inputs, writes float64 to the buffer
  /// `truth` (the output's shape). Sizes reach the source through `problem.h`.
  Program device_oracle;
  /// The definition as a correct, slow candidate: what `rekernel new` starts a kernel from.
  Program scaffold;

  const Tensor& output() const;
  const Tensor* find_tensor(const std::string& name) const;
  std::int64_t attribute(const std::string& name) const;  ///< integer attributes; throws if absent
  double real_attribute(const std::string& name) const;
};

/// The text of the header `problem.h` for this problem:
/// `namespace problem { inline constexpr long long batch = 100; … }`. Integers are `int` where they
/// fit, else `long long`; reals are `double`. Tensor element counts appear as `<name>_elements`.
std::string problem_header(const Problem& problem);

}  // namespace rekernel
