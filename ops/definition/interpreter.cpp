#include "ops/definition/interpreter.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "ops/definition/scalar.h"

namespace rekernel::definition {

namespace {

/// One statement, with its names looked up beforehand: indices are numbered.
class Machine {
 public:
  Machine(const Definition& definition, const CheckedStatement& checked, const Values& values)
      : definition_(definition), checked_(checked), values_(values) {
    for (const Index& index : checked.statement.indices) bind(index);
    right_ = resolved(checked.statement.right);
  }

  std::vector<double> run() {
    const std::vector<Index>& indices = checked_.statement.indices;
    std::size_t elements = 1;
    for (const Index& index : indices) elements *= static_cast<std::size_t>(index.extent);
    own_.assign(elements, 0.0);
    // Row-major order, the axis of a recurrence outermost, so that what it reads is there.
    std::vector<std::size_t> order(indices.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (checked_.recurrence)
      std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(*checked_.recurrence),
                  order.begin() + static_cast<std::ptrdiff_t>(*checked_.recurrence) + 1);
    fill(order, 0);
    return std::move(own_);
  }

 private:
  struct Node {
    Operator op = Operator::number;
    double value = 0;
    std::size_t slot = 0;
    std::string name;
    const std::vector<double>* elements = nullptr;  ///< of a read
    std::vector<std::int64_t> extents;              ///< of a read's tensor, or of the indices
    std::size_t first_slot = 0;                     ///< of a reduction's indices
    bool has_otherwise = false;
    std::vector<Node> operands;
  };

  void bind(const Index& index) {
    slots_[index.name] = places_.size();
    places_.push_back(0);
  }

  Node resolved(const Expression& e) {
    Node node;
    node.op = e.op;
    node.name = e.name;
    node.value = e.value;
    node.has_otherwise = e.has_otherwise;
    if (e.op == Operator::name) {
      const auto slot = slots_.find(e.name);
      if (slot == slots_.end()) {
        node.op = Operator::number;
        node.value = constant_value(e, definition_);
      } else {
        node.slot = slot->second;
      }
    }
    if (e.op == Operator::read) {
      const bool own = e.name == checked_.statement.name;
      node.elements = own ? &own_ : &values_.find(e.name)->second;
      node.extents = definition_.find(e.name)->extents;
    }
    if (e.op == Operator::reduction) {
      node.first_slot = places_.size();
      for (const Index& index : e.indices) {
        node.extents.push_back(index.extent);
        bind(index);
      }
    }
    for (const Expression& operand : e.operands) node.operands.push_back(resolved(operand));
    for (const Index& index : e.indices) slots_.erase(index.name);
    return node;
  }

  void fill(const std::vector<std::size_t>& order, std::size_t depth) {
    const std::vector<Index>& indices = checked_.statement.indices;
    if (depth == order.size()) {
      std::int64_t at = 0;
      for (std::size_t i = 0; i < indices.size(); ++i) at = at * indices[i].extent + places_[i];
      own_[static_cast<std::size_t>(at)] = value(right_);
      return;
    }
    const std::size_t index = order[depth];
    for (places_[index] = 0; places_[index] < indices[index].extent; ++places_[index]) {
      fill(order, depth + 1);
    }
  }

  double value(const Node& node) {
    switch (node.op) {
      case Operator::number:
        return node.value;
      case Operator::name:
        return static_cast<double>(places_[node.slot]);
      case Operator::read:
        return read(node);
      case Operator::call: {
        if (node.name == "where") {
          return value(node.operands[value(node.operands[0]) != 0 ? 1 : 2]);
        }
        std::vector<double> operands;
        for (const Node& operand : node.operands) operands.push_back(value(operand));
        return value_of(node.name, operands);
      }
      case Operator::reduction:
        return reduced(node);
      case Operator::negate:
        return -value(node.operands[0]);
      case Operator::logical_not:
        return value(node.operands[0]) == 0;
      case Operator::logical_and:
        return value(node.operands[0]) != 0 && value(node.operands[1]) != 0;
      case Operator::logical_or:
        return value(node.operands[0]) != 0 || value(node.operands[1]) != 0;
      default: {
        const double left = value(node.operands[0]);
        return value_of(node.op, left, value(node.operands[1]));
      }
    }
  }

  double read(const Node& node) {
    std::int64_t at = 0;
    bool inside = true;
    for (std::size_t i = 0; i < node.extents.size(); ++i) {
      const double place = value(node.operands[i]);
      inside &= place >= 0 && place < static_cast<double>(node.extents[i]);
      if (inside) at = at * node.extents[i] + static_cast<std::int64_t>(place);
    }
    if (inside) return (*node.elements)[static_cast<std::size_t>(at)];
    if (!node.has_otherwise) throw std::out_of_range("'" + node.name + "' is read outside of it");
    return value(node.operands.back());
  }

  double reduced(const Node& node) {
    Reduction state{node, first_value(node.name), 0, 0.0, false};
    reduce(state, 0);
    const bool of_index = node.name == "argmax" || node.name == "argmin";
    return of_index ? static_cast<double>(state.best) : state.value + state.lost;
  }

  struct Reduction {
    const Node& node;
    double value;
    std::int64_t best;
    double lost;  ///< of a sum: what its rounding lost so far (Neumaier)
    bool started;
  };

  void reduce(Reduction& state, std::size_t depth) {
    const Node& node = state.node;
    if (depth < node.extents.size()) {
      std::int64_t& place = places_[node.first_slot + depth];
      for (place = 0; place < node.extents[depth]; ++place) reduce(state, depth + 1);
      return;
    }
    if (node.operands.size() > 1 && value(node.operands[1]) == 0) return;
    take(state, value(node.operands[0]));
  }

  void take(Reduction& state, double term) {
    const std::string& reducer = state.node.name;
    if (reducer == "sum") {
      const double sum = state.value + term;
      const double lost = std::fabs(state.value) >= std::fabs(term) ? (state.value - sum) + term
                                                                    : (term - sum) + state.value;
      if (std::isfinite(sum)) state.lost += lost;
      state.value = sum;
    } else if (reducer == "argmax" || reducer == "argmin") {
      const bool better = reducer == "argmax" ? term > state.value : term < state.value;
      if (!better && state.started) return;
      state.value = term;
      state.best = places_[state.node.first_slot];
      state.started = true;
    } else {
      state.value = combined(reducer, state.value, term);
    }
  }

  const Definition& definition_;
  const CheckedStatement& checked_;
  const Values& values_;
  std::map<std::string, std::size_t> slots_;
  std::vector<std::int64_t> places_;
  std::vector<double> own_;
  Node right_;
};

}  // namespace

std::vector<double> interpret(const Definition& definition, const CheckedStatement& statement,
                              const Values& values) {
  return Machine(definition, statement, values).run();
}

Values interpret(const Definition& definition, const Values& inputs) {
  Values values = inputs;
  for (const CheckedStatement& statement : definition.statements()) {
    values[statement.statement.name] = interpret(definition, statement, values);
  }
  return values;
}

}  // namespace rekernel::definition
