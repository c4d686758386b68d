#include "ops/definition/tile_code.h"

#include <utility>

#include "ops/definition/expression_code.h"
#include "ops/definition/factors.h"
#include "ops/gemm.h"

namespace rekernel::definition {

namespace {

/// What is smaller takes a plain kernel no time.
constexpr double least_tile_terms = 1e9;
constexpr std::int64_t tile = 64;  ///< of multiply_tiles
constexpr std::int64_t threads = 256;
constexpr std::int64_t most_tile_grid = 65535;
/// Tiles pay where each element of a factor is used often.
constexpr std::int64_t least_side = 16;

class TileWriter {
 public:
  TileWriter(const Definition& definition, const Statement& statement, const Portions& portions,
             bool in_portions, const Contraction& contraction, const FactorConditions& conditions)
      : statement_(statement),
        in_portions_(in_portions),
        c_(contraction),
        conditions_(conditions),
        code_(definition, statement, Purpose::candidate, portions) {}

  std::string kernel(const std::string& name) {
    code_.replace(*c_.sum, "sum_");
    code_.line(
        "const long long matrix_ = blockIdx.z" +
        std::string(in_portions_ ? " + first_item * " + std::to_string(matrices_of_an_item) : "") +
        ";");
    decode_indices(code_, c_.batch, "matrix_");
    write_factor("left", c_.left, conditions_.left, c_.rows, c_.sum->indices, "row_", "depth_");
    write_factor("right", c_.right, conditions_.right, c_.sum->indices, c_.columns, "depth_",
                 "column_");
    write_store();
    const auto along = [&](const std::vector<const Expression*>& factors) {
      return std::string(ends_in_depth(c_, factors) ? "true" : "false");
    };
    code_.line("multiply_tiles<" + along(c_.left) + ", " + along(c_.right) + ">(" +
               product(c_.rows) + ", " + product(c_.columns) + ", " + product(c_.sum->indices) +
               ", left, right, store);");
    return "\n// " + statement_.text + "\nextern \"C\" __global__ void __launch_bounds__(256) " +
           name + "(" + parameters() + ") {\n  using namespace problem;\n" + code_.lines() + "}\n";
  }

  std::vector<Argument> arguments() const {
    std::vector<Argument> arguments = code_.arguments(reads());
    arguments.push_back(BufferArgument{code_.target(statement_.name)});
    if (code_.has_wide_copy(statement_.name))
      arguments.push_back(BufferArgument{statement_.name + "_wide"});
    return arguments;
  }

  std::int64_t matrices_of_an_item = 1;

 private:
  static std::string product(const std::vector<Index>& indices) {
    std::string text = "1ll";
    for (const Index& index : indices) text += " * " + index.extent_text;
    return text;
  }

  void write_factor(const std::string& name, const std::vector<const Expression*>& factors,
                    const std::vector<const Expression*>& conditions,
                    const std::vector<Index>& down, const std::vector<Index>& across,
                    const std::string& first, const std::string& second) {
    code_.line("const auto " + name + " = [&](long long " + first + ", long long " + second +
               ") -> real {");
    code_.open();
    decode_indices(code_, down, first);
    decode_indices(code_, across, second);
    for (const Expression* one : conditions)
      code_.line("if (!" + code_.expression(*one) + ") return 0;");
    std::string value;
    for (const Expression* factor : factors)
      value += (value.empty() ? "" : " * ") + code_.real(*factor);
    code_.line("return " + value + ";");
    code_.close();
    code_.end_statement();
  }

  void write_store() {
    code_.line("const auto store = [&](long long row_, long long column_, real sum_) {");
    code_.open();
    decode_indices(code_, c_.rows, "row_");
    decode_indices(code_, c_.columns, "column_");
    const std::string value = code_.expression(statement_.right);
    std::vector<std::string> places;
    for (const Index& index : statement_.indices) places.push_back(index.name);
    const std::string at = "[" + code_.place(statement_.name, places) + "]";
    code_.line(code_.target(statement_.name) + at + " = " + code_.stored(statement_.name, value) +
               ";");
    if (code_.has_wide_copy(statement_.name))
      code_.line(statement_.name + "_wide" + at + " = " + value + ";");
    code_.close();
    code_.end_statement();
  }

  std::vector<std::string> reads() const {
    return tensors_read({&statement_.right}, statement_.name);
  }

  std::string parameters() const {
    std::string text = code_.parameters(reads());
    text += (text.empty() ? "" : ", ") + code_.target_type(statement_.name) + "* " +
            code_.target(statement_.name);
    if (code_.has_wide_copy(statement_.name)) text += ", real* " + statement_.name + "_wide";
    if (in_portions_) text += ", long long first_item";
    return text;
  }

  const Statement& statement_;
  bool in_portions_;
  const Contraction& c_;
  const FactorConditions& conditions_;
  ExpressionCode code_;
};

}  // namespace

std::optional<TileCode> tile_code(const Definition& definition, const CheckedStatement& checked,
                                  const Portions& portions, bool in_portions,
                                  const std::string& kernel, std::string& source) {
  const std::optional<Contraction> contraction = contraction_of(checked);
  if (!contraction) return std::nullopt;
  const std::int64_t rows = size_of(contraction->rows), columns = size_of(contraction->columns);
  const std::int64_t matrices = size_of(contraction->batch);
  const double terms = static_cast<double>(size_of(checked.statement.indices)) *
                       static_cast<double>(size_of(contraction->sum->indices));
  const std::optional<FactorConditions> conditions = conditions_of_factors(*contraction);
  const bool fits = rows >= least_side && columns >= least_side &&
                    ceil_div(rows, tile) <= most_tile_grid && matrices <= most_tile_grid &&
                    terms >= least_tile_terms;
  if (!conditions || !fits) return std::nullopt;
  if (in_portions && !has_items_outermost(*contraction, checked.statement, portions))
    return std::nullopt;
  TileWriter writer(definition, checked.statement, portions, in_portions, *contraction,
                    *conditions);
  TileCode tiles;
  tiles.matrices = in_portions ? matrices / portions.items : matrices;
  writer.matrices_of_an_item = tiles.matrices;
  source += writer.kernel(kernel);
  tiles.launch = simple_launch(kernel, ceil_div(columns, tile), ceil_div(rows, tile), threads,
                               writer.arguments());
  return tiles;
}

}  // namespace rekernel::definition
