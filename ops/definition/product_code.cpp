#include "ops/definition/product_code.h"

#include <algorithm>
#include <utility>

#include "ops/definition/expression_code.h"
#include "ops/definition/factors.h"
#include "ops/gemm.h"

namespace rekernel::definition {

namespace {

/// Plain kernels do what is smaller in a few milliseconds.
constexpr double least_terms = 2e9;
constexpr std::int64_t most_bytes_of_a_factor = std::int64_t{1} << 29;
constexpr std::int64_t most_grid = 65535;
constexpr std::int64_t copy_threads = 256;

class ProductWriter {
 public:
  ProductWriter(const Definition& definition, const CheckedStatement& checked,
                const Portions& portions, bool in_portions, Contraction contraction)
      : definition_(definition),
        statement_(checked.statement),
        portions_(portions),
        in_portions_(in_portions),
        c_(std::move(contraction)) {}

  std::optional<ProductCode> write() {
    if (wants_exchange()) {
      std::swap(c_.rows, c_.columns);
      std::swap(c_.left, c_.right);
    }
    made_.rows = size_of(c_.rows);
    made_.columns = size_of(c_.columns);
    made_.depth = size_of(c_.sum->indices);
    made_.matrices = size_of(c_.batch);
    const std::optional<FactorConditions> conditions = conditions_of_factors(c_);
    if (!conditions || !fits()) return std::nullopt;
    made_.left = write_copy("left", c_.left, conditions->left, c_.rows, c_.sum->indices, false);
    made_.right =
        write_copy("right", c_.right, conditions->right, c_.sum->indices, c_.columns, true);
    write_product();
    return std::move(made_);
  }

 private:
  /// The left copy has the depth innermost, the right one its columns: factors that lie so are
  /// copied in order. Only columns are cut where a copy is too large.
  bool wants_exchange() const {
    const std::int64_t left_bytes = padded_rows(size_of(c_.rows)) *
                                    padded_depth(size_of(c_.sum->indices)) *
                                    std::int64_t{sizeof(double)};
    if (left_bytes > most_bytes_of_a_factor) return size_of(c_.rows) > size_of(c_.columns);
    const int in_order =
        (ends_in_depth(c_, c_.left) ? 1 : 0) + (ends_in_depth(c_, c_.right) ? 0 : 1);
    if (in_order == 1) return size_of(c_.rows) > size_of(c_.columns);
    return in_order == 0;
  }

  bool fits() {
    if (in_portions_) {
      // Items are the outermost matrices.
      if (!has_items_outermost(c_, statement_, portions_)) return false;
      made_.matrices /= portions_.items;
    }
    const std::int64_t bytes = sizeof(double);
    const std::int64_t left = padded_rows(made_.rows) * padded_depth(made_.depth) * bytes;
    const std::int64_t column_tile = padded_columns(1);
    const std::int64_t right_tile = padded_depth(made_.depth) * column_tile * bytes;
    if (left > 2 * most_bytes_of_a_factor || right_tile > most_bytes_of_a_factor) return false;
    const std::int64_t tiles = padded_columns(made_.columns) / column_tile;
    const std::int64_t tiles_at_once = std::min(tiles, most_bytes_of_a_factor / right_tile);
    made_.columns_at_once = std::min(made_.columns, tiles_at_once * column_tile);
    const std::int64_t all =
        in_portions_ ? made_.matrices * portions_.items_at_once : made_.matrices;
    made_.matrices_at_once = 1;
    if (tiles_at_once == tiles) {
      made_.matrices_at_once = std::clamp<std::int64_t>(
          most_bytes_of_a_factor / std::max(left, right_tile * tiles), 1, std::min(all, most_grid));
    }
    made_.left_bytes = left * made_.matrices_at_once;
    made_.right_bytes = right_tile * tiles_at_once * made_.matrices_at_once;
    return (made_.columns_at_once + column_tile - 1) / column_tile < (std::int64_t{1} << 31) &&
           padded_rows(made_.rows) / 128 <= most_grid;
  }

  static std::vector<const Expression*> joined(std::vector<const Expression*> a,
                                               const std::vector<const Expression*>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  ProductCode::Part write_copy(const std::string& side,
                               const std::vector<const Expression*>& factors,
                               const std::vector<const Expression*>& conditions,
                               const std::vector<Index>& down, const std::vector<Index>& across,
                               bool moves_across) {
    ExpressionCode code(definition_, statement_, Purpose::truth, portions_);
    const std::string height = std::to_string(size_of(down)),
                      width = std::to_string(size_of(across));
    code.line("const long long id_ = 1ll * blockIdx.x * blockDim.x + threadIdx.x;");
    code.line("if (id_ >= count) return;");
    code.line("const long long column_ = id_ % pitch + " +
              std::string(moves_across ? "first_column" : "0") + ";");
    code.line("const long long row_ = id_ / pitch % padded_height;");
    code.line("const long long matrix_ = first_matrix + id_ / pitch / padded_height;");
    code.line("double value_ = 0.0;");
    code.line("if (row_ < " + height + " && column_ < " + width + ") {");
    code.open();
    decode_indices(code, c_.batch, "matrix_");
    decode_indices(code, down, "row_");
    decode_indices(code, across, "column_");
    std::string condition;
    for (const Expression* one : conditions)
      condition += (condition.empty() ? "" : " && ") + code.expression(*one);
    if (!condition.empty()) {
      code.line("if (" + condition + ") {");
      code.open();
    }
    std::string value;
    for (const Expression* factor : factors)
      value += (value.empty() ? "" : " * ") + code.real(*factor);
    code.line("value_ = " + value + ";");
    if (!condition.empty()) code.close();
    code.close();
    code.line("to[id_] = value_;");
    const std::string kernel = "copy_" + side + "_of_" + statement_.name;
    const std::vector<std::string> reads =
        tensors_read(joined(factors, conditions), statement_.name);
    std::string parameters = code.parameters(reads);
    parameters += std::string(parameters.empty() ? "" : ", ") +
                  "double* to, long long count, long long pitch, long long padded_height, long "
                  "long first_matrix, "
                  "long long first_column" +
                  (in_portions_ ? ", long long first_item" : "");
    made_.source += "\nextern \"C\" __global__ void __launch_bounds__(" +
                    std::to_string(copy_threads) + ") " + kernel + "(" + parameters +
                    ") {\n  using namespace problem;\n" + code.lines() + "}\n";
    ProductCode::Part part{kernel, code.arguments(reads)};
    part.arguments.push_back(BufferArgument{"product_" + side});
    return part;
  }

  void write_product() {
    ExpressionCode code(definition_, statement_, Purpose::truth, portions_);
    code.replace(*c_.sum, "sum_");
    code.line("const long long matrix_ = first_matrix + blockIdx.z;");
    const std::string left_pitch = std::to_string(padded_depth(made_.depth));
    const std::string left_size =
        std::to_string(padded_rows(made_.rows) * padded_depth(made_.depth));
    code.line("gemm::multiply(product_left + blockIdx.z * " + left_size + "ll, " + left_pitch +
              ", product_right + blockIdx.z * " + left_pitch + "ll * pitch, pitch, " +
              std::to_string(made_.depth) +
              ", [&](int tile_row_, int tile_column_, double sum_) {");
    code.open();
    code.line("const long long row_ = tile_row_, column_ = first_column + tile_column_;");
    code.line("if (row_ >= " + std::to_string(made_.rows) + " || column_ >= " +
              std::to_string(made_.columns) + " || tile_column_ >= pitch) return;");
    decode_indices(code, c_.batch, "matrix_");
    decode_indices(code, c_.rows, "row_");
    decode_indices(code, c_.columns, "column_");
    const std::string value = code.expression(statement_.right);
    std::vector<std::string> places;
    for (const Index& index : statement_.indices) places.push_back(index.name);
    const std::string target = code.target(statement_.name);
    code.line(target + "[" + code.place(statement_.name, places) +
              "] = " + code.stored(statement_.name, value) + ";");
    code.close();
    std::string body = code.lines();
    body.insert(body.size() - 1, ");");
    const std::vector<const Expression*> rest = reads_around(statement_.right, c_.sum);
    const std::vector<std::string> reads = tensors_read(rest, statement_.name);
    std::string parameters = code.parameters(reads);
    parameters += std::string(parameters.empty() ? "" : ", ") + code.target_type(statement_.name) +
                  "* " + target +
                  ", const double* product_left, const double* product_right, int pitch, long long "
                  "first_matrix, "
                  "long long first_column" +
                  (in_portions_ ? ", long long first_item" : "");
    made_.product.kernel = "multiply_" + statement_.name;
    made_.source += "\n// " + statement_.text +
                    "\nextern \"C\" __global__ void __launch_bounds__(gemm::threads) " +
                    made_.product.kernel + "(" + parameters + ") {\n  using namespace problem;\n" +
                    body + "}\n";
    made_.product.arguments = code.arguments(reads);
    made_.product.arguments.push_back(BufferArgument{target});
    made_.product.arguments.push_back(BufferArgument{"product_left"});
    made_.product.arguments.push_back(BufferArgument{"product_right"});
  }

  const Definition& definition_;
  const Statement& statement_;
  const Portions& portions_;
  bool in_portions_;
  Contraction c_;
  ProductCode made_;
};

KernelLaunch copy_launch(const ProductCode::Part& part, std::int64_t matrices, std::int64_t height,
                         std::int64_t pitch, std::int64_t first_matrix, std::int64_t first_column) {
  const std::int64_t count = matrices * height * pitch;
  KernelLaunch launch =
      simple_launch(part.kernel, ceil_div(count, copy_threads), 1, copy_threads, part.arguments);
  for (const std::int64_t scalar : {count, pitch, height, first_matrix, first_column}) {
    launch.args.push_back(ScalarArgument{scalar});
  }
  return launch;
}

}  // namespace

std::vector<Step> ProductCode::steps(std::int64_t first, std::int64_t end) const {
  const bool in_portions = end > first;
  const std::int64_t begin = in_portions ? first * matrices : 0;
  const std::int64_t stop = in_portions ? end * matrices : matrices;
  std::vector<Step> steps;
  const auto add = [&](KernelLaunch launch) {
    if (in_portions) launch.args.push_back(ScalarArgument{first});
    steps.emplace_back(std::move(launch));
  };
  for (std::int64_t matrix = begin; matrix < stop; matrix += matrices_at_once) {
    const std::int64_t count = std::min(matrices_at_once, stop - matrix);
    add(copy_launch(left, count, padded_rows(rows), padded_depth(depth), matrix, 0));
    for (std::int64_t column = 0; column < columns; column += columns_at_once) {
      const std::int64_t pitch = padded_columns(std::min(columns_at_once, columns - column));
      add(copy_launch(right, count, padded_depth(depth), pitch, matrix, column));
      KernelLaunch launch = gemm_launch(product.kernel, rows, pitch, count, product.arguments);
      launch.args.push_back(ScalarArgument{static_cast<std::int32_t>(pitch)});
      launch.args.push_back(ScalarArgument{matrix});
      launch.args.push_back(ScalarArgument{column});
      add(std::move(launch));
    }
  }
  return steps;
}

std::optional<ProductCode> product_code(const Definition& definition,
                                        const CheckedStatement& checked, const Portions& portions,
                                        bool in_portions) {
  std::optional<Contraction> contraction = contraction_of(checked);
  if (!contraction) return std::nullopt;
  double terms = static_cast<double>(size_of(checked.statement.indices));
  terms *= static_cast<double>(size_of(contraction->sum->indices));
  if (terms < least_terms) return std::nullopt;
  return ProductWriter(definition, checked, portions, in_portions, std::move(*contraction)).write();
}

}  // namespace rekernel::definition
