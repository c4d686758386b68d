#include "harness/project/scaffold_in_axes.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <vector>

#include "harness/base/json.h"
#include "harness/problems/other_sizes.h"
#include "ops/definition/cost.h"
#include "ops/definition/definition.h"
#include "ops/definition/expression_code.h"

namespace rekernel {

namespace {

namespace json = boost::json;
using definition::CheckedStatement;
using definition::Definition;
using definition::Expression;
using definition::Index;

/// What the made code's blocks do: so many elements each, by how many threads share one.
constexpr std::array<std::int64_t, 3> elements_of_a_block = {1, 8, 256};
/// And so many rows and columns of a product.
constexpr std::int64_t tile = 64;
/// Sizes at which the made code is compared with that of the problem's own.
constexpr std::size_t compared_sizes = 24;

std::int64_t ceil_divided(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

/// A number of elements, here and at any sizes.
struct Count {
  std::int64_t number = 1;
  std::string text = "1";

  void times(std::int64_t factor, const std::string& factor_text) {
    const bool is_plain = factor_text.find(' ') == std::string::npos;
    const std::string written = is_plain ? factor_text : "(" + factor_text + ")";
    text = number == 1 && text == "1" ? written : text + " * " + written;
    number *= factor;
  }
};

Count product_of(const std::vector<Index>& indices, std::optional<std::size_t> without = {}) {
  Count count;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i != without) count.times(indices[i].extent, indices[i].extent_text);
  }
  return count;
}

/// How many blocks a count of things needs, if that is what the launch has.
std::optional<std::string> blocks_for(const Count& count, std::int64_t things_of_a_block,
                                      const GridExtent& grid) {
  if (grid.per_sm || ceil_divided(count.number, things_of_a_block) != grid.count) return {};
  if (things_of_a_block == 1) return count.text;
  return "ceil_div(" + count.text + ", " + std::to_string(things_of_a_block) + ")";
}

/// The grid of a launch whose threads share the elements of a statement.
std::optional<json::array> plain_grid(const CheckedStatement& checked, const KernelLaunch& launch) {
  if (launch.grid[1].count != 1 || launch.grid[2].count != 1) return {};
  const std::optional<std::size_t> along = checked.scan ? checked.scan : checked.recurrence;
  const Count elements = product_of(checked.statement.indices, along);
  for (const std::int64_t of_a_block : elements_of_a_block) {
    if (const auto text = blocks_for(elements, of_a_block, launch.grid[0])) {
      return json::array{json::string(*text)};
    }
  }
  return {};
}

/// The grid of a launch that makes a product by tiles.
std::optional<json::array> tile_grid(const CheckedStatement& checked, const KernelLaunch& launch) {
  const std::optional<definition::Contraction> product = definition::contraction_of(checked);
  if (!product) return {};
  const auto columns = blocks_for(product_of(product->columns), tile, launch.grid[0]);
  const auto rows = blocks_for(product_of(product->rows), tile, launch.grid[1]);
  const auto matrices = blocks_for(product_of(product->batch), 1, launch.grid[2]);
  if (!columns || !rows || !matrices) return {};
  return json::array{json::string(*columns), json::string(*rows), json::string(*matrices)};
}

/// One launch for each statement, in their order.
bool has_a_launch_for_each(const Program& program, const Definition& definition) {
  if (program.steps.size() != definition.statements().size()) return false;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const auto* launch = std::get_if<KernelLaunch>(&program.steps[i]);
    if (!launch || launch->kernel != "make_" + definition.statements()[i].statement.name) {
      return false;
    }
    const bool only_buffers = std::all_of(
        launch->args.begin(), launch->args.end(),
        [](const Argument& argument) { return std::holds_alternative<BufferArgument>(argument); });
    if (!only_buffers) return false;
  }
  return true;
}

/// What the code that is made of an expression depends on besides its text.
void collect_guards(const Definition& definition, const Expression& e, std::vector<bool>& guards) {
  definition::for_each(e, [&](const Expression& one) {
    if (one.type == definition::Type::integer) guards.push_back(one.interval.low < 0);
    if (one.op != definition::Operator::read) return;
    const definition::TensorInfo* tensor = definition.find(one.name);
    const std::size_t subscripts = one.operands.size() - (one.has_otherwise ? 1 : 0);
    for (std::size_t i = 0; tensor && i < subscripts; ++i) {
      guards.push_back(one.operands[i].interval.low < 0);
      guards.push_back(one.operands[i].interval.high >= tensor->extents.at(i));
    }
  });
}

std::vector<bool> guards_of(const Definition& definition) {
  std::vector<bool> guards = {definition::needs_long_indices(definition)};
  for (const CheckedStatement& one : definition.statements()) {
    collect_guards(definition, one.statement.right, guards);
  }
  return guards;
}

bool is_for_other_sizes(const Problem& problem) {
  std::vector<Problem> others = drawn_instances(problem, 1, compared_sizes);
  for (Problem& one : fixed_instances(problem)) others.push_back(std::move(one));
  const std::vector<bool> guards = guards_of(*problem.definition);
  return !others.empty() && std::all_of(others.begin(), others.end(), [&](const Problem& one) {
    return guards_of(*one.definition) == guards;
  });
}

/// Bytes of a workspace: of a tensor between statements, or of a wide copy of an output.
std::optional<std::string> bytes_text(const Workspace& workspace, const Definition& definition) {
  constexpr std::string_view wide = "_wide";
  std::string name = workspace.name;
  if (!definition.find(name) && name.ends_with(wide)) name.resize(name.size() - wide.size());
  const definition::TensorInfo* tensor = definition.find(name);
  if (!tensor || workspace.bytes % tensor->elements() != 0) return {};
  const std::int64_t of_an_element = workspace.bytes / tensor->elements();
  Count bytes{of_an_element, std::to_string(of_an_element)};
  for (std::size_t i = 0; i < tensor->extents.size(); ++i) {
    bytes.times(tensor->extents[i], tensor->extent_texts[i]);
  }
  return bytes.text;
}

/// The plan, with expressions in place of its grids and workspaces.
std::optional<json::object> plan_in_axes(const Candidate& scaffold, const Definition& definition) {
  json::object plan = json::parse(candidate_json(scaffold)).as_object();
  for (std::size_t i = 0; i < scaffold.program.steps.size(); ++i) {
    const auto& launch = std::get<KernelLaunch>(scaffold.program.steps[i]);
    const CheckedStatement& checked = definition.statements()[i];
    std::optional<json::array> grid = plain_grid(checked, launch);
    if (!grid) grid = tile_grid(checked, launch);
    if (!grid) return {};
    plan["launches"].as_array()[i].as_object()["grid"] = std::move(*grid);
  }
  for (const Workspace& workspace : scaffold.program.workspaces) {
    const std::optional<std::string> bytes = bytes_text(workspace, definition);
    if (!bytes) return {};
    plan["workspace"].as_object()[workspace.name] = *bytes;
  }
  return plan;
}

}  // namespace

std::optional<Candidate> scaffold_in_axes(const Problem& problem, const std::string& name) {
  const Candidate scaffold = scaffold_candidate(problem, name);
  const Definition& definition = *problem.definition;
  if (!has_a_launch_for_each(scaffold.program, definition)) return {};
  if (!is_for_other_sizes(problem)) return {};
  const std::optional<json::object> plan = plan_in_axes(scaffold, definition);
  if (!plan) return {};
  Result<Candidate> made =
      parse_candidate(pretty_json(*plan), scaffold.program.source, "the plan in axes");
  if (!made) return {};
  // At the problem's own sizes nothing is another.
  Candidate numbers = *made;
  numbers.written.clear();
  if (candidate_json(numbers) != candidate_json(scaffold)) return {};
  return *std::move(made);
}

}  // namespace rekernel
