#include "ops/definition/cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "ops/definition/scalar.h"

namespace rekernel::definition {

namespace {

/// Below this, a matrix unit has nothing to gain in a direction.
constexpr std::int64_t smallest_side = 8;
/// Levels of Strassen's method are taken while blocks stay this large (ops/gemm.h).
constexpr double smallest_block = 512;
constexpr int samples = 4096;

using Extents = std::map<std::string, std::int64_t, std::less<>>;

bool is_of_indices_alone(const Expression& e) {
  bool alone = true;
  for_each(e, [&](const Expression& x) {
    alone &= x.op != Operator::read && x.op != Operator::reduction;
  });
  return alone;
}

/// A read at plain indices.
bool is_plain(const Expression& e) {
  return e.op == Operator::read &&
         std::all_of(e.operands.begin(), e.operands.end(),
                     [](const Expression& place) { return place.op == Operator::name; });
}

using Places = std::map<std::string, double, std::less<>>;

/// The value of an expression of indices, which have these values, axes and constants.
double value_at(const Expression& e, const Places& places, const Definition& definition) {
  const auto of = [&](std::size_t i) { return value_at(e.operands[i], places, definition); };
  switch (e.op) {
    case Operator::name: {
      const auto found = places.find(e.name);
      return found != places.end() ? found->second : constant_value(e, definition);
    }
    case Operator::number:
      return e.value;
    case Operator::negate:
      return -of(0);
    case Operator::logical_not:
      return of(0) == 0;
    case Operator::call: {
      std::vector<double> operands;
      for (std::size_t i = 0; i < e.operands.size(); ++i) operands.push_back(of(i));
      return value_of(e.name, operands);
    }
    default:
      return value_of(e.op, of(0), of(1));
  }
}

/// The share of its indices' values for which a condition on indices alone holds: exact where it
/// compares two indices of one extent, else of points spread evenly (a Kronecker sequence).
class Share {
 public:
  Share(const Expression& condition, const Extents& extents, const Definition& definition)
      : condition_(condition), definition_(definition) {
    for_each(condition, [&](const Expression& e) {
      const auto found = e.op == Operator::name ? extents.find(e.name) : extents.end();
      if (found != extents.end()) used_[e.name] = found->second;
    });
  }

  double value() {
    if (const std::optional<double> exact = of_triangle()) return *exact;
    double held = 0;
    double total = 1;
    for (const auto& [name, extent] : used_) total *= static_cast<double>(extent);
    const bool all = total <= samples * 4;
    const int points = all ? static_cast<int>(total) : samples;
    for (int point = 0; point < points; ++point) {
      long long rest = point;
      double root = 2;
      for (const auto& [name, extent] : used_) {
        if (all) {
          places_[name] = static_cast<double>(rest % extent);
          rest /= extent;
        } else {
          double whole;
          places_[name] = std::floor(std::modf((point + 0.5) * std::sqrt(root), &whole) *
                                     static_cast<double>(extent));
          root = next_prime(root);
        }
      }
      held += value_at(condition_, places_, definition_) != 0 ? 1 : 0;
    }
    return held / points;
  }

 private:
  static double next_prime(double prime) {
    static const std::array<double, 8> primes = {2, 3, 5, 7, 11, 13, 17, 19};
    const auto* found = std::upper_bound(primes.begin(), primes.end(), prime);
    return found == primes.end() ? prime + 2 : *found;
  }

  std::optional<double> of_triangle() const {
    if (used_.size() != 2) return std::nullopt;
    const auto first = used_.begin(), second = std::next(first);
    if (first->second != second->second) return std::nullopt;
    const std::optional<Bound> bound = bound_of(condition_, first->first);
    if (!bound || bound->bound->op != Operator::name) return std::nullopt;
    const auto n = static_cast<double>(first->second);
    const bool strict = bound->op == Operator::less || bound->op == Operator::greater;
    return (strict ? n - 1 : n + 1) / (2 * n);
  }

  const Expression& condition_;
  const Definition& definition_;
  Extents used_;
  Places places_;
};

/// The same of a conjunction, without its parts on values. Parts that have no index in common are
/// independent of each other.
double share_of(const Expression& condition, const Extents& extents, const Definition& definition) {
  double product = 1;
  bool apart = true;
  std::set<std::string> seen;
  for (const Expression* part : conjuncts(condition)) {
    if (!is_of_indices_alone(*part)) continue;
    product *= Share(*part, extents, definition).value();
    for (const auto& [name, extent] : extents) {
      if (mentions(*part, name)) apart &= seen.insert(name).second;
    }
  }
  return apart || !is_of_indices_alone(condition) ? product
                                                  : Share(condition, extents, definition).value();
}

/// Operations of one evaluation of an expression, conditions counted by their share.
class Counter {
 public:
  /// `needed`: the share of the statement's elements that outputs depend on.
  Counter(const Definition& definition, const CheckedStatement& checked, double needed)
      : definition_(definition),
        checked_(checked),
        needed_(needed),
        contraction_(contraction_of(checked)) {
    for (const Index& index : checked.statement.indices) {
      extents_[index.name] = index.extent;
      elements_ *= static_cast<double>(index.extent);
    }
  }

  void add_to(Cost& cost, std::size_t number) {
    double operations = elements_ * of(checked_.statement.right, 1.0);
    if (checked_.scan) operations = elements_ * (1.0 + body_of_scan());
    cost.operations += operations;
    if (operations > cost.worst) {
      cost.worst = operations;
      cost.worst_statement = number;
    }
    if (!contraction_) return;
    cost.matrix_operations += elements_ * matrix_terms_ * matrix_share_ * 2.0;
    cost.fewest_matrix_operations += fewest();
  }

 private:
  double body_of_scan() {
    const Expression& reduction = checked_.statement.right;
    for (const Index& index : reduction.indices) extents_[index.name] = index.extent;
    return of(reduction.operands[0], 1.0);
  }

  double of(const Expression& e, double share) {
    switch (e.op) {
      // NOLINTNEXTLINE(bugprone-branch-clone): what is free, and what memory costs
      case Operator::number:
      case Operator::name:
        return 0;
      case Operator::read:
        return 0;
      case Operator::reduction:
        return of_reduction(e, share);
      case Operator::call: {
        if (e.name == "where" && is_of_indices_alone(e.operands[0])) {
          const double held = share_of(e.operands[0], extents_, definition_);
          return held * of(e.operands[1], share * held) +
                 (1 - held) * of(e.operands[2], share * (1 - held));
        }
        double sum = e.name == "where" ? 0 : 1;
        for (const Expression& operand : e.operands) sum += of(operand, share);
        return sum;
      }
      default: {
        if (e.type != Type::real) return 0;  // what indices cost is no work of the definition
        double sum = 1;
        for (const Expression& operand : e.operands) sum += of(operand, share);
        return sum;
      }
    }
  }

  double of_reduction(const Expression& e, double share) {
    double terms = 1;
    for (const Index& index : e.indices) {
      extents_[index.name] = index.extent;
      terms *= static_cast<double>(index.extent);
    }
    if (e.operands.size() > 1) terms *= share_of(e.operands[1], extents_, definition_);
    const double result = terms * (1.0 + of(e.operands[0], share * terms));
    if (contraction_ && contraction_->sum == &e) {
      matrix_terms_ = terms;
      matrix_share_ = share;
    }
    for (const Index& index : e.indices) extents_.erase(index.name);
    return result;
  }

  /// Strassen's method for a product of plain matrices; of a convolution's taps, which stand in a
  /// subscript with an index of the left side, Winograd's leaves one of each stride.
  double fewest() const {
    const Contraction& c = *contraction_;
    // Where both are less than 1, it is the same mask, or one within the other.
    double operations = elements_ * matrix_terms_ * std::min(matrix_share_, needed_) * 2.0;
    bool plain = c.sum->operands.size() == 1;
    for (const Index& index : c.sum->indices) {
      const std::optional<std::int64_t> shared = shares_of_tap(index);
      if (!shared) continue;
      plain = false;
      operations *=
          static_cast<double>(std::min(*shared, index.extent)) / static_cast<double>(index.extent);
    }
    for (const Expression* factor : c.left) plain &= is_plain(*factor);
    for (const Expression* factor : c.right) plain &= is_plain(*factor);
    if (depends_on_values()) return 0;
    if (!plain) return operations;
    const auto size = [](const std::vector<Index>& indices) {
      double product = 1;
      for (const Index& index : indices) product *= static_cast<double>(index.extent);
      return product;
    };
    const double least = std::min({size(c.rows), size(c.columns), size(c.sum->indices)});
    for (double block = least; block / 2 >= smallest_block; block /= 2)
      operations = std::floor(operations / 8) * 7;
    return operations;
  }

  bool depends_on_values() const {
    bool depends = false;
    const auto look = [&](const Expression& e) {
      if (e.op != Operator::read) return;
      for (const Expression& place : e.operands) {
        for_each(place, [&](const Expression& x) { depends |= x.op == Operator::read; });
      }
    };
    for_each(*contraction_->sum, look);
    if (contraction_->sum->operands.size() > 1)
      depends |= !is_of_indices_alone(contraction_->sum->operands[1]);
    return depends;
  }

  /// For an index that stands in a subscript with others: how many of it one output of Winograd's
  /// method still costs, which is the step of the left side's index there.
  std::optional<std::int64_t> shares_of_tap(const Index& tap) const {
    std::optional<std::int64_t> shares;
    for_each(*contraction_->sum, [&](const Expression& e) {
      if (e.op != Operator::read) return;
      for (const Expression& place : e.operands) {
        if (place.op == Operator::name || !mentions(place, tap.name)) continue;
        const std::int64_t step = step_in(place);
        shares = std::min(shares.value_or(step), step);
      }
    });
    return shares;
  }

  /// What a product with an index of the left side steps by; 1 where nothing is seen.
  std::int64_t step_in(const Expression& place) const {
    std::int64_t step = 1;
    for_each(place, [&](const Expression& e) {
      if (e.op != Operator::multiply) return;
      for (int i = 0; i < 2; ++i) {
        const Expression& index = e.operands[static_cast<std::size_t>(i)];
        const Expression& by = e.operands[static_cast<std::size_t>(1 - i)];
        const bool of_left = std::any_of(
            checked_.statement.indices.begin(), checked_.statement.indices.end(),
            [&](const Index& one) { return index.op == Operator::name && index.name == one.name; });
        if (of_left && by.interval.low == by.interval.high && by.interval.low > 0)
          step = by.interval.low;
      }
    });
    return step;
  }

  const Definition& definition_;
  const CheckedStatement& checked_;
  double needed_;
  std::optional<Contraction> contraction_;
  Extents extents_;
  double elements_ = 1;
  double matrix_terms_ = 0;
  double matrix_share_ = 1;  ///< of the elements, for which the sum is taken at all
};

void collect_factors(const Expression& e, std::vector<const Expression*>& factors) {
  if (e.op == Operator::multiply) {
    for (const Expression& operand : e.operands) collect_factors(operand, factors);
    return;
  }
  factors.push_back(&e);
}

void collect_reductions(const Expression& e, std::vector<const Expression*>& found) {
  if (e.op == Operator::reduction) found.push_back(&e);
  for (const Expression& operand : e.operands) collect_reductions(operand, found);
}

bool reads_a_tensor(const Expression& e) {
  bool reads = false;
  for_each(e, [&](const Expression& x) { reads |= x.op == Operator::read; });
  return reads;
}

std::int64_t size_of(const std::vector<Index>& indices) {
  std::int64_t product = 1;
  for (const Index& index : indices) product *= index.extent;
  return product;
}

}  // namespace

Cost cost_of(const Definition& definition) {
  Cost cost;
  std::size_t number = 0;
  const auto needed = shares_needed(definition);
  for (const CheckedStatement& checked : definition.statements()) {
    Counter(definition, checked, needed.at(checked.statement.name)).add_to(cost, number++);
  }
  return cost;
}

std::optional<Contraction> contraction_of(const CheckedStatement& checked) {
  std::vector<const Expression*> reductions;
  collect_reductions(checked.statement.right, reductions);
  if (reductions.size() != 1 || reductions[0]->name != "sum" || checked.recurrence ||
      checked.scan) {
    return std::nullopt;
  }
  Contraction contraction;
  contraction.sum = reductions[0];
  std::vector<const Expression*> factors;
  collect_factors(contraction.sum->operands[0], factors);
  if (factors.size() < 2) return std::nullopt;
  const auto has = [](const std::vector<const Expression*>& group, const std::string& name) {
    return std::any_of(group.begin(), group.end(),
                       [&](const Expression* one) { return mentions(*one, name); });
  };
  // The first factor of each side decides; others join the side that has their indices.
  contraction.left = {factors[0]};
  for (std::size_t i = 1; i < factors.size(); ++i) {
    bool of_left_alone = false, of_other = false;
    for (const Index& index : checked.statement.indices) {
      if (!mentions(*factors[i], index.name)) continue;
      (mentions(*factors[0], index.name) ? of_left_alone : of_other) = true;
    }
    (of_other || (!of_left_alone && reads_a_tensor(*factors[i]) && contraction.right.empty())
         ? contraction.right
         : contraction.left)
        .push_back(factors[i]);
  }
  if (contraction.right.empty()) return std::nullopt;
  for (const Index& index : checked.statement.indices) {
    const bool left = has(contraction.left, index.name), right = has(contraction.right, index.name);
    (left && right ? contraction.batch
     : right       ? contraction.columns
                   : contraction.rows)
        .push_back(index);
  }
  // An index that neither factor has only repeats the product: no row.
  for (const Index& index : contraction.rows) {
    if (!has(contraction.left, index.name)) return std::nullopt;
  }
  if (size_of(contraction.rows) < smallest_side || size_of(contraction.columns) < smallest_side ||
      size_of(contraction.sum->indices) < smallest_side) {
    return std::nullopt;
  }
  return contraction;
}

namespace {

/// A subscript as a sum of indices, each times a whole number, which are all different, and a
/// constant.
struct LinearPlace {
  std::map<std::string, std::int64_t> factors;
  std::int64_t constant = 0;
};

/// Adds `by` times the expression; false where it is no such sum.
bool add_linear(LinearPlace& sum, const Expression& e, std::int64_t by, const Extents& extents) {
  if (e.op == Operator::name && extents.contains(e.name)) {
    return sum.factors.emplace(e.name, by).second;
  }
  const auto is_constant = [](const Expression& x) {
    return x.type == Type::integer && x.interval.low == x.interval.high;
  };
  const auto of = [&](std::size_t i, std::int64_t factor) {
    return add_linear(sum, e.operands[i], factor, extents);
  };
  if (is_constant(e)) {
    sum.constant += by * e.interval.low;
    return true;
  }
  if (e.op == Operator::add) return of(0, by) && of(1, by);
  if (e.op == Operator::subtract) return of(0, by) && of(1, -by);
  if (e.op != Operator::multiply) return false;
  const std::size_t constant = is_constant(e.operands[0]) ? 0 : 1;
  if (!is_constant(e.operands[constant])) return false;
  return of(1 - constant, by * e.operands[constant].interval.low);
}

/// Whether such a subscript has every place from 0 to the extent: where each index, taken by the
/// size of its step, goes on where the smaller ones end. False says nothing.
bool surely_reaches_all(const Expression& place, std::int64_t extent, const Extents& extents) {
  LinearPlace linear;
  if (!add_linear(linear, place, 1, extents)) return false;
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // and how often
  std::int64_t low = linear.constant;
  for (const auto& [name, factor] : linear.factors) {
    const std::int64_t times = extents.at(name) - 1;
    steps.emplace_back(std::abs(factor), times);
    if (factor < 0) low += factor * times;
  }
  std::sort(steps.begin(), steps.end());
  std::int64_t width = 1;
  for (const auto& [step, times] : steps) {
    if (step > width) return false;
    width += step * times;
  }
  return low <= 0 && low + width >= extent;
}

/// Whether a subscript has every place of a dimension as its indices run, which no other has.
bool reaches_all(const Expression& place, std::int64_t extent, const Extents& extents,
                 const Definition& definition, std::set<std::string>& taken) {
  constexpr std::int64_t most = 1 << 22;
  std::vector<std::pair<std::string, std::int64_t>> own;
  bool simple = true;
  for_each(place, [&](const Expression& e) {
    simple &= e.op != Operator::read && e.op != Operator::reduction;
    const auto found = e.op == Operator::name ? extents.find(e.name) : extents.end();
    if (found == extents.end() || !simple) return;
    for (const auto& [name, size] : own) {
      if (name == e.name) return;
    }
    simple &= taken.insert(e.name).second;
    own.emplace_back(e.name, found->second);
  });
  if (simple && surely_reaches_all(place, extent, extents)) return true;
  std::int64_t points = 1;
  for (const auto& [name, size] : own) points *= size;
  if (!simple || points > most || extent > most) return false;
  std::vector<bool> reached(static_cast<std::size_t>(extent), false);
  Places places;
  for (std::int64_t point = 0; point < points; ++point) {
    std::int64_t rest = point;
    for (const auto& [name, size] : own) {
      places[name] = static_cast<double>(rest % size);
      rest /= size;
    }
    const double at = value_at(place, places, definition);
    if (at >= 0 && at < static_cast<double>(extent)) reached[static_cast<std::size_t>(at)] = true;
  }
  return std::find(reached.begin(), reached.end(), false) == reached.end();
}

}  // namespace

namespace {

/// Of a tensor's elements, the share that a statement certainly reads.
double share_read(const Definition& definition, const CheckedStatement& checked,
                  const TensorInfo& tensor) {
  double most = 0;
  Extents extents;
  for (const Index& index : checked.statement.indices) extents[index.name] = index.extent;
  for_each(checked.statement.right, [&](const Expression& e) {
    for (const Index& index : e.indices) extents[index.name] = index.extent;
  });
  /// Of the places at which a condition holds; nobody knows how often one on values does.
  const auto held = [&](const Expression& condition) {
    return is_of_indices_alone(condition) ? share_of(condition, extents, definition) : 0.0;
  };
  const std::function<void(const Expression&, double)> look = [&](const Expression& e,
                                                                  double share) {
    if (share <= most) return;
    if (e.op == Operator::read && e.name == tensor.name) {
      std::set<std::string> taken;
      bool each = share == 1 || is_plain(e);  // elsewhere places may be had more than once
      for (std::size_t i = 0; each && i < tensor.extents.size(); ++i) {
        each = reaches_all(e.operands[i], tensor.extents[i], extents, definition, taken);
      }
      if (each) most = share;
    }
    if (e.op == Operator::call && e.name == "where") {
      const double first = held(e.operands[0]);
      look(e.operands[0], share);
      look(e.operands[1], share * first);
      if (is_of_indices_alone(e.operands[0])) look(e.operands[2], share * (1 - first));
      return;
    }
    if (e.op == Operator::reduction && e.operands.size() > 1) {
      look(e.operands[1], share);
      return look(e.operands[0], share * held(e.operands[1]));
    }
    for (const Expression& operand : e.operands) look(operand, share);
  };
  // A scan reads all of its terms for some element.
  look(checked.scan ? checked.statement.right.operands[0] : checked.statement.right, 1);
  return most;
}

}  // namespace

std::map<std::string, double, std::less<>> shares_needed(const Definition& definition) {
  std::map<std::string, double, std::less<>> shares;
  for (const TensorInfo& tensor : definition.tensors()) {
    if (tensor.role == TensorInfo::Role::output) shares[tensor.name] = 1;
  }
  // Backwards from what reads the result: what is not certainly used makes nothing certain.
  const auto& statements = definition.statements();
  for (auto checked = statements.rbegin(); checked != statements.rend(); ++checked) {
    const std::string& reader = checked->statement.name;
    // A result that nothing reads yet is what is asked for.
    const double of_reader = shares.try_emplace(reader, 1.0).first->second;
    for (const TensorInfo& tensor : definition.tensors()) {
      if (tensor.name == reader || !mentions(checked->statement.right, tensor.name)) continue;
      double& share = shares[tensor.name];
      if (share < of_reader)
        share = std::max(share, of_reader * share_read(definition, *checked, tensor));
    }
  }
  return shares;
}

}  // namespace rekernel::definition
