#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ops/program.h"

namespace rekernel {

namespace definition {
class Definition;
}

enum class Role { input, output };

/// How an input's elements are drawn. Every element is a pure function of (seed, tensor, index).
struct Distribution {
  enum class Kind { normal, uniform, constant, integers, choice };
  Kind kind = Kind::normal;
  /// normal: mean; uniform: lower bound; constant: the value; integers: the least
  double a = 0.0;
  /// normal: standard deviation; uniform: upper bound; integers: one more than the largest
  double b = 1.0;
  /// For a choice: the values, each as likely as another, at most max_choices.
  std::vector<double> choices = {};
  static constexpr std::size_t max_choices = 16;

  /// One row, which the seed chooses, is drawn normally in its own way; a deviation of 0 makes it
  /// constant.
  struct OddRow {
    std::int64_t rows = 0;      ///< from the start of the tensor, of which one is odd
    std::int64_t elements = 0;  ///< of a row
    double mean = 0.0;
    double deviation = 1.0;
  };
  std::optional<OddRow> odd_row = {};
  /// One in each stretch of so many elements, a power of two of at least 4, has this value, at a
  /// place that the seed chooses.
  struct Outliers {
    std::int64_t stretch = 0;
    double value = 0.0;
  };
  std::optional<Outliers> outliers = {};
  /// The last element of each row has this value.
  struct Ends {
    std::int64_t row = 0;  ///< elements of a row, at least 2
    double value = 0.0;
  };
  std::optional<Ends> ends = {};
};

/// "normal", "uniform", "constant", "integers", "choice"
const char* to_string(Distribution::Kind kind);

/// How an output is compared with its truth.
enum class Comparison {
  /// Within the tolerance.
  close,
  /// Equal: integers and conditions.
  equal,
  /// Indices of extremes: the element there is compared with the extreme, and equal ones are as
  /// good.
  extreme,
};

struct Tensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< row-major, outermost first
  Role role = Role::input;
  Distribution distribution;  ///< of an input
  bool is_made = false;  ///< of an input: `Problem::making` or `program` changes what was drawn
  Comparison comparison = Comparison::close;  ///< of an output
  /// Of an input: how much of it a method has to read on average, where values decide.
  double read_share = 1;

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

/// A property of the outputs that holds whatever the inputs are. The program sees the problem's
/// tensors and the float64 truths, as `truth_<output>`, and writes one float64, the violation, to
/// the buffer `violation`.
struct Invariant {
  std::string name;
  Program program;
  double bound = 0;
};

/// Input values by tensor name, already rounded to the tensor's dtype.
using HostInputs = std::map<std::string, std::vector<double>>;

/// Somebody else's program that gives a problem's truth in place of a definition.
struct TruthProgram {
  std::string json;  ///< `program` of the problem's file: what runs it reads it
  std::string text;  ///< its source
  /// Inputs that its own get_inputs() draws, under new seeds, or that have the file's values under
  /// every seed. Their distributions are like what they then hold.
  std::vector<std::string> draws;

  bool draws_input(const std::string& name) const;
};

/// Where a problem comes from.
struct Source {
  std::string benchmark;  ///< "KernelBench level 1 at 423217d"; empty: from here
  int number = 0;
};

/// One benchmark problem at fixed sizes, made of its file (harness/problems/).
struct Problem {
  std::string id;
  std::string group;  ///< the folder of its file, "published" say
  std::string title;
  Source source;
  std::vector<Tensor> tensors;  ///< any number of inputs and of outputs, in order
  std::vector<Attribute> attributes;
  std::vector<std::string> formula;  ///< the definition's statements
  std::string text;                  ///< of its file
  /// Which other sizes have to work: axes from a smallest to a largest size, as far as the
  /// constraints hold.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> other_sizes;
  Tolerance tolerance;
  std::vector<StressCase> stress_cases;
  std::vector<Invariant> invariants;

  /// Each input read once, or its share, each output written once.
  std::int64_t min_bytes = 0;
  /// The bytes that no method can do without: where which elements are read depends on values, or
  /// not all of them are read, a tensor counts as nothing.
  std::int64_t least_bytes = 0;
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

  /// Null where a definition gives the truth. Else there are no statements, no `making` and no
  /// oracle, and the scaffold writes nothing.
  std::shared_ptr<const TruthProgram> program;
  /// What its statements were found to be.
  std::shared_ptr<const definition::Definition> definition;

  /// The definition as an expression of PyTorch's (`torch`, `F` for torch.nn.functional), of the
  /// inputs and attributes by name: what the references from PyTorch time. Several outputs are a
  /// tuple. Empty where a program is there.
  std::string pytorch;

  /// Float64 truth on the host, for small sizes: the values of every output by name.
  std::function<HostInputs(const HostInputs&)> host_oracle;
  /// Float64 truth on the device at any size: reads the inputs, writes float64 to the buffers
  /// `truth_<output>`. Sizes reach the source through `problem.h`.
  Program device_oracle;
  /// Changes drawn inputs in place; no steps where they stay as drawn. On the host: `made`.
  Program making;
  std::function<HostInputs(const HostInputs&)> made;
  /// The definition as a correct, slow candidate: what `rekernel new` starts a kernel from.
  Program scaffold;

  std::vector<const Tensor*> inputs() const;
  std::vector<const Tensor*> outputs() const;
  std::int64_t tensor_bytes() const;  ///< of all inputs and outputs together
  /// The one with the most bytes, the first of several.
  const Tensor& largest(Role role) const;
  const Tensor* find_tensor(const std::string& name) const;
  std::int64_t attribute(const std::string& name) const;  ///< integer attributes; throws if absent
  double real_attribute(const std::string& name) const;
};

/// Whether the badge `strict`, which is about errors in FP32, means something: there is an output
/// in FP32, and those of other types are exact.
bool has_fp32_outputs(const Problem& problem);

/// Where the float64 truth of an output lies: "truth_y".
std::string truth_buffer(const std::string& output);

/// The text of the header `problem.h` for this problem:
/// `namespace problem { inline constexpr long long batch = 100; … }`. Integers are `int` where they
/// fit, else `long long`; reals are `double`. Tensor element counts appear as `<name>_elements`.
std::string problem_header(const Problem& problem);

}  // namespace rekernel
