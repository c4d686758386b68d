#include "ops/definition/portions.h"

#include <algorithm>
#include <set>

namespace rekernel::definition {

namespace {

class Cutter {
 public:
  Cutter(const Definition& definition, std::int64_t element_bytes, std::int64_t bytes)
      : definition_(definition), element_bytes_(element_bytes), bytes_(bytes) {}

  Portions cut() {
    Portions whole;
    if (intermediate_bytes() <= bytes_) return whole;
    find_range();
    Portions best;
    for (std::size_t indices = 1; shares(indices); ++indices) {
      best = of(indices);
      if (best.items_at_once > 0) return best;
    }
    if (best.indices > 0) best.items_at_once = 1;
    return best;
  }

 private:
  bool is_intermediate(const std::string& name) const {
    return definition_.find(name)->role == TensorInfo::Role::intermediate;
  }

  std::int64_t intermediate_bytes() const {
    std::int64_t total = 0;
    for (const TensorInfo& tensor : definition_.tensors()) {
      if (tensor.role == TensorInfo::Role::intermediate)
        total += tensor.elements() * element_bytes_;
    }
    return total;
  }

  /// From the first statement that makes something large to the last one that reads what is made
  /// between them.
  void find_range() {
    const auto& statements = definition_.statements();
    first_ = statements.size();
    for (std::size_t i = 0; i < statements.size(); ++i) {
      const TensorInfo& made = *definition_.find(statements[i].statement.name);
      const bool is_large =
          is_intermediate(made.name) && made.elements() * element_bytes_ > bytes_ / 16;
      if (is_large && first_ == statements.size()) first_ = i;
      if (first_ == statements.size()) continue;
      for (std::size_t j = first_; j < i; ++j) {
        const std::string& name = statements[j].statement.name;
        if (mentions(statements[i].statement.right, name)) end_ = i + 1;
      }
    }
  }

  /// Whether all statements of the range have the same outermost indices, and read what the range
  /// makes at the same ones.
  bool shares(std::size_t indices) const {
    const auto& statements = definition_.statements();
    if (first_ >= end_) return false;
    std::set<std::string> made;
    const std::vector<Index>& pattern = statements[first_].statement.indices;
    if (pattern.size() < indices) return false;
    for (std::size_t i = first_; i < end_; ++i) {
      const CheckedStatement& checked = statements[i];
      const std::vector<Index>& own = checked.statement.indices;
      if (own.size() < indices) return false;
      for (std::size_t k = 0; k < indices; ++k) {
        if (own[k].extent != pattern[k].extent) return false;
        if (checked.scan == k || checked.recurrence == k) return false;
      }
      bool same = true;
      made.insert(checked.statement.name);
      for_each(checked.statement.right, [&](const Expression& e) {
        if (e.op != Operator::read || !made.contains(e.name)) return;
        for (std::size_t k = 0; k < indices; ++k) {
          same &= k < e.operands.size() && e.operands[k].op == Operator::name &&
                  e.operands[k].name == own[k].name;
        }
      });
      if (!same) return false;
    }
    for (std::size_t i = end_; i < statements.size(); ++i) {
      for (const std::string& name : made) {
        if (is_intermediate(name) && mentions(statements[i].statement.right, name)) return false;
      }
    }
    return true;
  }

  Portions of(std::size_t indices) const {
    const auto& statements = definition_.statements();
    Portions portions;
    portions.first_statement = first_;
    portions.end_statement = end_;
    portions.indices = indices;
    portions.items = 1;
    for (std::size_t k = 0; k < indices; ++k) {
      portions.items *= statements[first_].statement.indices[k].extent;
    }
    std::int64_t item_bytes = 0;
    for (std::size_t i = first_; i < end_; ++i) {
      const TensorInfo& tensor = *definition_.find(statements[i].statement.name);
      if (tensor.role != TensorInfo::Role::intermediate) continue;
      const std::int64_t elements = tensor.elements() / portions.items;
      portions.tensors.emplace_back(tensor.name, elements);
      item_bytes += elements * element_bytes_;
    }
    portions.items_at_once =
        std::min(portions.items, bytes_ / std::max<std::int64_t>(item_bytes, 1));
    return portions;
  }

  const Definition& definition_;
  std::int64_t element_bytes_;
  std::int64_t bytes_;
  std::size_t first_ = 0;
  std::size_t end_ = 0;
};

}  // namespace

std::int64_t Portions::item_elements(const std::string& tensor) const {
  for (const auto& [name, elements] : tensors) {
    if (name == tensor) return elements;
  }
  return 0;
}

Portions portions_of(const Definition& definition, std::int64_t element_bytes, std::int64_t bytes) {
  return Cutter(definition, element_bytes, bytes).cut();
}

}  // namespace rekernel::definition
