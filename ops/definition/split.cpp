#include "ops/definition/split.h"

#include <algorithm>
#include <utility>

#include "ops/gemm.h"

namespace rekernel::definition {

namespace {

/// A lane that adds up more terms than this one after the other loses digits in FP32, and time.
constexpr std::int64_t terms_of_a_slice = std::int64_t{1} << 17;
/// With so many elements at work at once, a device is full.
constexpr std::int64_t enough_elements = std::int64_t{1} << 11;
constexpr std::int64_t least_terms_of_a_slice = std::int64_t{1} << 13;
constexpr std::int64_t most_slices = std::int64_t{1} << 13;

void collect(const Expression& e, std::vector<const Expression*>& found) {
  if (e.op == Operator::reduction) {
    found.push_back(&e);
    return;
  }
  for (const Expression& operand : e.operands) collect(operand, found);
}

std::int64_t terms_of(const Expression& reduction) {
  std::int64_t terms = 1;
  for (const Index& index : reduction.indices) terms *= index.extent;
  return terms;
}

Expression leaf(Operator op, const std::string& name, double value, Interval interval) {
  Expression e;
  e.op = op;
  e.name = name;
  e.value = value;
  e.type = Type::integer;
  e.interval = interval;
  return e;
}

Expression joined(Operator op, Expression left, Expression right, Type type, Interval interval) {
  Expression e;
  e.op = op;
  e.type = type;
  e.interval = interval;
  e.operands = {std::move(left), std::move(right)};
  return e;
}

void replace_name(Expression& e, const std::string& name, const Expression& by) {
  if (e.op == Operator::name && e.name == name) {
    e = by;
    return;
  }
  for (Expression& operand : e.operands) replace_name(operand, name, by);
}

/// Into how many slices a reduction of a statement with so many elements is cut; 1 leaves it whole.
std::int64_t slices_of(const Expression& reduction, std::int64_t elements) {
  const bool can_be = reduction.type == Type::real && reduction.name != "argmax" &&
                      reduction.name != "argmin" && reduction.operands.size() == 1;
  const std::int64_t terms = terms_of(reduction);
  if (!can_be || terms < 2 * least_terms_of_a_slice) return 1;
  if (terms <= terms_of_a_slice && elements >= enough_elements / 8) return 1;
  const std::int64_t to_fill = ceil_div(enough_elements, elements);
  const std::int64_t wanted = std::max(to_fill, ceil_div(terms, terms_of_a_slice));
  return std::clamp<std::int64_t>(wanted, 1, std::min(most_slices, terms / least_terms_of_a_slice));
}

}  // namespace

std::vector<const Expression*> top_level_reductions(const Expression& expression) {
  std::vector<const Expression*> found;
  collect(expression, found);
  return found;
}

std::int64_t top_level_terms(const Expression& expression) {
  std::int64_t terms = 0;
  for (const Expression* reduction : top_level_reductions(expression))
    terms += terms_of(*reduction);
  return terms;
}

namespace {

/// Cuts the first of a statement's long reductions, if there is one.
class Slicer {
 public:
  Slicer(Definition& definition, CheckedStatement& checked)
      : definition_(definition), checked_(checked) {}

  /// The statement of the slices; none where nothing is long.
  std::optional<CheckedStatement> cut() {
    std::int64_t elements = 1;
    for (const Index& index : checked_.statement.indices) elements *= index.extent;
    if (checked_.scan || checked_.recurrence) return std::nullopt;
    return cut_in(checked_.statement.right, elements);
  }

 private:
  std::optional<CheckedStatement> cut_in(Expression& e, std::int64_t elements) {
    if (e.op == Operator::reduction) {
      const std::int64_t slices = slices_of(e, elements);
      if (slices < 2) return std::nullopt;
      return cut_reduction(e, slices);
    }
    for (Expression& operand : e.operands) {
      if (auto made = cut_in(operand, elements)) return made;
    }
    return std::nullopt;
  }

  CheckedStatement cut_reduction(Expression& reduction, std::int64_t slices) {
    auto longest =
        std::max_element(reduction.indices.begin(), reduction.indices.end(),
                         [](const Index& a, const Index& b) { return a.extent < b.extent; });
    const std::int64_t extent = longest->extent;
    const std::int64_t chunk = ceil_div(extent, std::min(slices, extent));
    slices = ceil_div(extent, chunk);

    Index slice;
    slice.name = fresh("slice");
    slice.extent = slices;
    slice.extent_text = std::to_string(slices);
    const std::string whole_name = longest->name;
    Index part = *longest;
    part.name = fresh("part");
    part.extent = chunk;
    part.extent_text = std::to_string(chunk);

    // The old index is slice * chunk + part, as far as it goes.
    const Interval range{0, extent - 1};
    const Expression place =
        joined(Operator::add,
               joined(Operator::multiply, leaf(Operator::name, slice.name, 0, {0, slices - 1}),
                      leaf(Operator::number, "", static_cast<double>(chunk), {chunk, chunk}),
                      Type::integer, range),
               leaf(Operator::name, part.name, 0, {0, chunk - 1}), Type::integer, range);
    Expression body = reduction;
    for (Expression& operand : body.operands) replace_name(operand, whole_name, place);
    body.indices[static_cast<std::size_t>(longest - reduction.indices.begin())] = part;
    if (extent % chunk != 0) {
      const Expression end =
          leaf(Operator::number, "", static_cast<double>(extent), {extent, extent});
      body.operands.push_back(joined(
          Operator::less, leaf(Operator::name, part.name, 0, {0, chunk - 1}),
          joined(Operator::subtract, end,
                 joined(Operator::multiply, leaf(Operator::name, slice.name, 0, {0, slices - 1}),
                        leaf(Operator::number, "", static_cast<double>(chunk), {chunk, chunk}),
                        Type::integer, range),
                 Type::integer, {0, extent}),
          Type::boolean, {0, 1}));
    }

    CheckedStatement of_slices;
    of_slices.statement.name = fresh("slices_of_" + checked_.statement.name);
    of_slices.statement.indices = checked_.statement.indices;
    of_slices.statement.indices.push_back(slice);
    of_slices.statement.right = std::move(body);
    of_slices.statement.text = text_of(of_slices.statement);
    TensorInfo tensor;
    tensor.name = of_slices.statement.name;
    tensor.type = Type::real;
    for (const Index& index : of_slices.statement.indices) {
      tensor.extents.push_back(index.extent);
      tensor.extent_texts.push_back(index.extent_text);
    }
    (void)definition_.add_tensor(tensor).ok();

    Expression read;
    read.op = Operator::read;
    read.name = tensor.name;
    for (const Index& index : of_slices.statement.indices) {
      read.operands.push_back(leaf(Operator::name, index.name, 0, {0, index.extent - 1}));
    }
    reduction.indices = {slice};
    reduction.operands = {std::move(read)};
    return of_slices;
  }

  /// A name that nothing has yet.
  std::string fresh(const std::string& like) const {
    std::string name = like;
    for (int i = 2; !definition_.check_name(name) || is_index(name); ++i)
      name = like + std::to_string(i);
    return name;
  }

  bool is_index(const std::string& name) const {
    bool found = name == checked_.statement.name;
    const auto look = [&](const std::vector<Index>& indices) {
      for (const Index& index : indices) found |= index.name == name;
    };
    look(checked_.statement.indices);
    for_each(checked_.statement.right, [&](const Expression& e) { look(e.indices); });
    return found;
  }

  Definition& definition_;
  CheckedStatement& checked_;
};

}  // namespace

Definition with_slices(const Definition& definition) {
  Definition result = definition;
  std::vector<CheckedStatement> statements;
  for (CheckedStatement checked : definition.statements()) {
    while (auto slices = Slicer(result, checked).cut()) statements.push_back(std::move(*slices));
    statements.push_back(std::move(checked));
  }
  result.replace_statements(std::move(statements));
  return result;
}

}  // namespace rekernel::definition
