#include <algorithm>
#include <map>
#include <utility>

#include "reference/recognition.h"

namespace rekernel {

namespace {

using definition::CheckedStatement;
using definition::Expression;
using definition::Index;
using definition::Operator;

/// A sum, under no condition, of products of two inputs' elements at indices alone.
struct PlainSum {
  const CheckedStatement* statement = nullptr;
  const Expression* sum = nullptr;
  const Expression *first = nullptr, *second = nullptr;  ///< the reads
};

bool reads_at_indices(const RecognisedProblem& subject, const Expression& e) {
  return e.op == Operator::read && !e.has_otherwise && subject.input(e.name) &&
         std::all_of(e.operands.begin(), e.operands.end(),
                     [](const Expression& subscript) { return subscript.op == Operator::name; });
}

std::optional<PlainSum> find_plain_sum(const RecognisedProblem& subject) {
  std::optional<PlainSum> found;
  for (const CheckedStatement& checked : subject.definition().statements()) {
    if (checked.statement.indices.size() != subject.output().shape.size()) continue;
    definition::for_each(checked.statement.right, [&](const Expression& e) {
      if (found || e.op != Operator::reduction || e.name != "sum" || e.operands.size() != 1) return;
      const Expression& body = e.operands[0];
      if (body.op != Operator::multiply || !reads_at_indices(subject, body.operands[0]) ||
          !reads_at_indices(subject, body.operands[1])) {
        return;
      }
      found = PlainSum{&checked, &e, &body.operands[0], &body.operands[1]};
    });
  }
  return found;
}

/// Index names and how far apart their elements are in a packed tensor. None if one stands twice.
using Strides = std::map<std::string, std::int64_t>;
std::optional<Strides> strides_of(const Tensor& tensor, const std::vector<std::string>& names) {
  Strides strides;
  std::int64_t stride = 1;
  for (std::size_t i = names.size(); i-- > 0;) {
    if (!strides.emplace(names[i], stride).second) return std::nullopt;
    stride *= tensor.shape[i];
  }
  return strides;
}

std::vector<std::string> names_of(const std::vector<Index>& indices) {
  std::vector<std::string> names;
  for (const Index& index : indices) names.push_back(index.name);
  return names;
}

std::vector<std::string> names_of(const Expression& read) {
  std::vector<std::string> names;
  for (const Expression& subscript : read.operands) names.push_back(subscript.name);
  return names;
}

/// The stride of several indices as one, of which the last runs fastest; 0 of none.
std::optional<std::int64_t> joined(const std::vector<Index>& group, const Strides& strides) {
  std::int64_t stride = 0, extent = 1;
  for (std::size_t i = group.size(); i-- > 0;) {
    if (group[i].extent == 1) continue;
    const auto own = strides.find(group[i].name);
    const std::int64_t next = own == strides.end() ? 0 : own->second;
    if (stride != 0 && next != stride * extent) return std::nullopt;
    if (stride == 0) stride = next;
    extent *= group[i].extent;
  }
  return stride;
}

std::int64_t size_of(const std::vector<Index>& group) {
  std::int64_t size = 1;
  for (const Index& index : group) size *= index.extent;
  return size;
}

/// Indices by where they stand.
struct Groups {
  std::vector<Index> batch, rows, columns, depth;
};

struct Operands {
  Strides a, b, c;
};

std::optional<Groups> group(const PlainSum& sum, const Operands& strides) {
  Groups groups;
  for (const Index& index : sum.statement->statement.indices) {
    const bool in_a = strides.a.contains(index.name), in_b = strides.b.contains(index.name);
    if (!in_a && !in_b) return std::nullopt;
    (in_a && in_b ? groups.batch : in_a ? groups.rows : groups.columns).push_back(index);
  }
  for (const Index& index : sum.sum->indices) {
    if (!strides.a.contains(index.name) || !strides.b.contains(index.name)) return std::nullopt;
    groups.depth.push_back(index);
  }
  return groups;
}

/// Each group as one index, where strides allow it; the product then is complete but for names.
std::optional<MatrixProduct> join(const Groups& groups, const Operands& strides) {
  const auto a_rows = joined(groups.rows, strides.a), a_depth = joined(groups.depth, strides.a);
  const auto b_depth = joined(groups.depth, strides.b);
  const auto b_columns = joined(groups.columns, strides.b);
  const auto c_rows = joined(groups.rows, strides.c), c_columns = joined(groups.columns, strides.c);
  const auto a_batch = joined(groups.batch, strides.a), b_batch = joined(groups.batch, strides.b);
  const auto c_batch = joined(groups.batch, strides.c);
  if (!a_rows || !a_depth || !b_depth || !b_columns || !c_rows || !c_columns || !a_batch ||
      !b_batch || !c_batch) {
    return std::nullopt;
  }
  // One of a matrix's strides must be 1, or its extent be 1: libraries know no other layout.
  const auto is_plain = [](std::int64_t row, std::int64_t column) {
    return row <= 1 || column <= 1;
  };
  if (!is_plain(*a_rows, *a_depth) || !is_plain(*b_depth, *b_columns) ||
      !is_plain(*c_rows, *c_columns)) {
    return std::nullopt;
  }
  return MatrixProduct{.m = size_of(groups.rows),
                       .n = size_of(groups.columns),
                       .k = size_of(groups.depth),
                       .batch = size_of(groups.batch),
                       .a = {"", *a_rows, *a_depth, *a_batch},
                       .b = {"", *b_depth, *b_columns, *b_batch},
                       .c = {"", *c_rows, *c_columns, *c_batch}};
}

/// Where rows or columns cannot be joined, some of the outermost may be batches of which the other
/// factor is one matrix.
std::optional<MatrixProduct> join_with_batches(const Groups& groups, const Operands& strides) {
  if (auto product = join(groups, strides)) return product;
  if (!groups.batch.empty()) return std::nullopt;
  for (auto side : {&Groups::rows, &Groups::columns}) {
    const std::vector<Index>& all = groups.*side;
    for (std::size_t split = 1; split < all.size(); ++split) {
      Groups moved = groups;
      const auto middle = all.begin() + static_cast<std::ptrdiff_t>(split);
      moved.batch.assign(all.begin(), middle);
      (moved.*side).assign(middle, all.end());
      if (auto product = join(moved, strides)) return product;
    }
  }
  return std::nullopt;
}

bool has_types(const MatrixProduct& product) {
  const DType type = product.type, result = product.result_type;
  if (type == DType::f32) return result == DType::f32;
  if (type == DType::f16 || type == DType::bf16) return result == type || result == DType::f32;
  return type == DType::f8e4m3 &&
         (result == DType::bf16 || result == DType::f16 || result == DType::f32);
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Whether the product, by a number and perhaps by rows and columns, is all that there is.
bool confirm(const RecognisedProblem& subject, const PlainSum& sum, const Groups& groups,
             MatrixProduct& product) {
  const std::string left =
      product.c.tensor + "[" + joined_names(names_of(sum.statement->statement.indices)) + "]";
  const auto term = [](const Expression& read) {
    return read.name + "[" + joined_names(names_of(read)) + "]";
  };
  const std::string body = " * (sum(" + joined_names(names_of(sum.sum->indices)) + ") " +
                           term(*sum.first) + " * " + term(*sum.second) + ")";
  product.scale = subject.coefficient().value_or(1);
  const std::string scale = number(product.scale);
  if (subject.is({left + " = " + scale + body})) return true;
  // Scales are the library's own for types of 8 bits alone.
  if (product.type != DType::f8e4m3 || groups.rows.size() != 1 || groups.columns.size() != 1) {
    return false;
  }
  for (const Tensor* rows : subject.inputs()) {
    for (const Tensor* columns : subject.inputs()) {
      if (rows->dtype != DType::f32 || columns->dtype != DType::f32) continue;
      if (!subject.is({left + " = " + scale + " * " + rows->name + "[" + groups.rows[0].name +
                       "] * " + columns->name + "[" + groups.columns[0].name + "]" + body})) {
        continue;
      }
      product.row_scale = rows->name;
      product.column_scale = columns->name;
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<MatrixProduct> find_matrix_product(const RecognisedProblem& subject) {
  const std::optional<PlainSum> sum = find_plain_sum(subject);
  if (!sum) return std::nullopt;
  const Tensor& a = *subject.input(sum->first->name);
  const Tensor& b = *subject.input(sum->second->name);
  const Tensor& c = subject.output();
  const auto of_a = strides_of(a, names_of(*sum->first));
  const auto of_b = strides_of(b, names_of(*sum->second));
  const auto of_c = strides_of(c, names_of(sum->statement->statement.indices));
  if (!of_a || !of_b || !of_c) return std::nullopt;
  const Operands strides{*of_a, *of_b, *of_c};
  const std::optional<Groups> groups = group(*sum, strides);
  if (!groups) return std::nullopt;
  std::optional<MatrixProduct> product = join_with_batches(*groups, strides);
  if (!product || a.dtype != b.dtype) return std::nullopt;
  product->type = a.dtype;
  product->result_type = c.dtype;
  product->a.tensor = a.name;
  product->b.tensor = b.name;
  product->c.tensor = c.name;
  if (!has_types(*product) || !confirm(subject, *sum, *groups, *product)) return std::nullopt;
  return product;
}

}  // namespace rekernel
