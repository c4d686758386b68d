#include "ops/definition/mutants.h"

#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace rekernel::definition {

namespace {

Expression integer(std::int64_t value) {
  Expression e;
  e.value = static_cast<double>(value);
  e.type = Type::integer;
  e.interval = {value, value};
  return e;
}

Expression real(double value) {
  Expression e;
  e.value = value;
  return e;
}

Expression index(const Index& one) {
  Expression e;
  e.op = Operator::name;
  e.name = one.name;
  e.type = Type::integer;
  e.interval = {0, one.extent - 1};
  return e;
}

Expression joined(Operator op, Expression left, Expression right, Type type) {
  Expression e;
  e.op = op;
  e.type = type;
  e.interval = type == Type::boolean ? Interval{0, 1} : left.interval;
  e.operands = {std::move(left), std::move(right)};
  return e;
}

Expression called(const std::string& function, Expression operand) {
  Expression e;
  e.op = Operator::call;
  e.name = function;
  e.operands = {std::move(operand)};
  return e;
}

void add_condition(Expression& reduction, Expression condition) {
  if (reduction.operands.size() > 1) {
    condition = joined(Operator::logical_and, std::move(reduction.operands[1]),
                       std::move(condition), Type::boolean);
    reduction.operands[1] = std::move(condition);
  } else {
    reduction.operands.push_back(std::move(condition));
  }
}

/// Calls `change` with each expression of a statement's right side, one in each copy of the
/// statement.
class Maker {
 public:
  explicit Maker(const Definition& definition) : definition_(definition) {}

  std::vector<DefinitionMutant> make() {
    for (number_ = 0; number_ < definition_.statements().size(); ++number_) {
      at_each(&Maker::shorten);
      at_each(&Maker::halve);
      at_each(&Maker::drop_term);
      at_each(&Maker::turn_sign);
      at_each(&Maker::change_constant);
      at_each(&Maker::narrow_operand);
      at_each(&Maker::narrow_sum);
      at_each(&Maker::move_condition);
      at_each(&Maker::leave_choice_out);
      at_each(&Maker::change_outside);
      at_each(&Maker::read_neighbour);
      at_each(&Maker::skip_terms);
      change_result();
    }
    return std::move(mutants_);
  }

 private:
  /// A change gets the expression and which of its variants; it says whether there was one.
  using Change = bool (Maker::*)(Expression&, int);

  const Statement& original() const { return definition_.statements()[number_].statement; }

  void at_each(Change change) {
    std::size_t nodes = 0;
    for_each(original().right, [&](const Expression&) { ++nodes; });
    for (std::size_t node = 0; node < nodes; ++node) {
      for (int variant = 0; variant < 8; ++variant) {
        CheckedStatement copy = definition_.statements()[number_];
        std::size_t rest = node;
        Expression* found = nth(copy.statement.right, rest);
        kind_.clear();
        if (!found || !(this->*change)(*found, variant)) break;
        if (!kind_.empty()) keep(std::move(copy));
      }
    }
  }

  /// The expression that for_each comes to after `rest` others; null in the ends of indices, which
  /// stay as they are.
  static Expression* nth(Expression& e, std::size_t& rest) {
    if (rest == 0) return &e;
    --rest;
    for (Index& one : e.indices) {
      for (Expression& end : one.end) {
        if (nth(end, rest)) return nullptr;
      }
    }
    for (Expression& operand : e.operands) {
      if (Expression* found = nth(operand, rest)) return found;
    }
    return nullptr;
  }

  void keep(CheckedStatement changed) {
    // A scan is one by its form, which the change may have taken.
    if (changed.scan) {
      const Expression& right = changed.statement.right;
      const bool same =
          right.op == Operator::reduction && right.operands.size() == 2 &&
          bound_of(right.operands[1], right.indices[0].name) &&
          bound_of(right.operands[1], right.indices[0].name)->bound->op == Operator::name;
      if (!same) changed.scan.reset();
    }
    changed.statement.text = text_of(changed.statement);
    if (!seen_.insert(changed.statement.text).second) return;
    DefinitionMutant mutant{kind_, changed.statement.text, definition_};
    std::vector<CheckedStatement> statements = definition_.statements();
    statements[number_] = std::move(changed);
    mutant.definition.replace_statements(std::move(statements));
    mutants_.push_back(std::move(mutant));
  }

  /// Conditions would take a scan's form, and with it its speed.
  bool is_scan() const { return definition_.statements()[number_].scan.has_value(); }

  bool shorten(Expression& e, int variant) {
    if (is_scan()) return false;
    if (e.op != Operator::reduction || static_cast<std::size_t>(variant) >= e.indices.size())
      return false;
    const Index& one = e.indices[static_cast<std::size_t>(variant)];
    if (one.extent < 2) return true;
    kind_ = "range one short";
    add_condition(e, joined(Operator::less, index(one), integer(one.extent - 1), Type::boolean));
    return true;
  }

  bool halve(Expression& e, int variant) {
    if (e.op != Operator::reduction || variant > 0 || is_scan()) return false;
    if (e.name != "sum" || e.type != Type::real || e.indices.back().extent < 4) return true;
    kind_ = "half of a sum";
    const Index& one = e.indices.back();
    add_condition(e, joined(Operator::less, index(one), integer(one.extent / 2), Type::boolean));
    Expression twice = joined(Operator::multiply, real(2.0), e, Type::real);
    e = std::move(twice);
    return true;
  }

  bool drop_term(Expression& e, int variant) {
    if ((e.op != Operator::add && e.op != Operator::subtract) || e.type != Type::real ||
        variant > 1)
      return false;
    kind_ = "term dropped";
    Expression kept = std::move(e.operands[static_cast<std::size_t>(1 - variant)]);
    if (variant == 0 && e.op == Operator::subtract) {
      Expression negated;
      negated.op = Operator::negate;
      negated.operands = {std::move(kept)};
      kept = std::move(negated);
    }
    kept = as_real(std::move(kept));
    e = std::move(kept);
    return true;
  }

  /// What took a real takes one still.
  static Expression as_real(Expression e) {
    return e.type == Type::real ? e
                                : joined(Operator::multiply, real(1.0), std::move(e), Type::real);
  }

  bool turn_sign(Expression& e, int variant) {
    if (e.op != Operator::subtract || e.type != Type::real || variant > 0) return false;
    kind_ = "sign turned";
    e.op = Operator::add;
    return true;
  }

  bool change_constant(Expression& e, int variant) {
    if (variant > 0) return false;
    const bool is_constant = e.op == Operator::name && e.type == Type::real && e.name != "infinity";
    const bool is_number = e.op == Operator::number && e.value != 0 && e.type == Type::real;
    if (!is_constant && !is_number) return false;
    kind_ = "constant off by a tenth";
    e = joined(Operator::multiply, real(1.1), e, Type::real);
    return true;
  }

  bool narrow_operand(Expression& e, int variant) {
    if (e.op != Operator::read || variant > 0 || e.type != Type::real) return false;
    const TensorInfo& tensor = *definition_.find(e.name);
    const bool is_narrow =
        tensor.dtype && *tensor.dtype != DType::f32 && *tensor.dtype != DType::f16;
    if (is_narrow || e.name == original().name) return true;
    kind_ = "operand in BF16";
    e = called("bf16", std::move(e));
    return true;
  }

  bool narrow_sum(Expression& e, int variant) {
    if (e.op != Operator::reduction || variant > 0 || e.type != Type::real || is_scan())
      return false;
    const TensorInfo& tensor = *definition_.find(original().name);
    if (tensor.dtype == DType::bf16 && original().right == e) return true;  // rounded so anyway
    kind_ = "sum in BF16";
    e = called("bf16", std::move(e));
    return true;
  }

  bool move_condition(Expression& e, int variant) {
    if (variant > 0) return false;
    const bool of_integers = e.type == Type::boolean && e.operands.size() == 2 &&
                             e.operands[0].type == Type::integer &&
                             e.operands[1].type == Type::integer;
    if (!of_integers) return false;
    static const std::pair<Operator, Operator> moved[] = {
        {Operator::less, Operator::less_equal},
        {Operator::less_equal, Operator::less},
        {Operator::greater, Operator::greater_equal},
        {Operator::greater_equal, Operator::greater}};
    for (const auto& [from, to] : moved) {
      if (e.op != from || widens_reads(from)) continue;
      kind_ = "condition off by one";
      e.op = to;
      return true;
    }
    return true;
  }

  /// A wider condition may let a read leave its tensor: only narrower ones are made where nothing
  /// stands for what lies outside.
  bool widens_reads(Operator op) const {
    if (op == Operator::less_equal || op == Operator::greater_equal) return false;
    bool open = false;
    for_each(original().right, [&](const Expression& e) {
      if (e.op != Operator::read || e.has_otherwise) return;
      for (const Expression& place : e.operands)
        open |= place.op != Operator::name && place.op != Operator::number;
    });
    return open;
  }

  bool leave_choice_out(Expression& e, int variant) {
    if (e.op == Operator::reduction && e.operands.size() > 1 && variant == 0) {
      if (definition_.statements()[number_].scan || reads_openly(e.operands[0])) return true;
      kind_ = "condition left out";
      e.operands.resize(1);
      return true;
    }
    const bool is_choice = e.op == Operator::call && e.name == "where";
    const bool is_cap = e.op == Operator::call && (e.name == "minimum" || e.name == "maximum");
    if ((!is_choice && !is_cap) || variant > 1) return false;
    const std::size_t chosen = static_cast<std::size_t>(variant) + (is_choice ? 1 : 0);
    if (reads_openly(e.operands[chosen]) && is_choice) return true;
    kind_ = is_choice ? "choice left out" : "cap left out";
    Expression kept = std::move(e.operands[chosen]);
    if (e.type == Type::real) kept = as_real(std::move(kept));
    e = std::move(kept);
    return true;
  }

  /// A read whose place was narrowed by a condition may leave its tensor without it.
  bool reads_openly(const Expression& e) const {
    bool open = false;
    for_each(e, [&](const Expression& x) {
      if (x.op != Operator::read || x.has_otherwise) return;
      for (const Expression& place : x.operands)
        open |= place.op != Operator::name && place.op != Operator::number;
    });
    return open;
  }

  bool change_outside(Expression& e, int variant) {
    if (e.op != Operator::read || !e.has_otherwise || variant > 0 || e.type != Type::real)
      return false;
    if (e.name == original().name) return true;
    kind_ = "another value outside";
    const bool is_zero = e.operands.back().op == Operator::number && e.operands.back().value == 0;
    e.operands.back() = real(is_zero ? 1.0 : 0.0);
    return true;
  }

  /// A neighbour along an index of the left side or of the sum; the last one reads the first.
  bool read_neighbour(Expression& e, int variant) {
    if (e.op != Operator::read || e.name == original().name) return false;
    const std::size_t subscripts = e.operands.size() - (e.has_otherwise ? 1 : 0);
    if (static_cast<std::size_t>(variant) >= subscripts) return false;
    Expression& place = e.operands[static_cast<std::size_t>(variant)];
    const std::int64_t extent =
        definition_.find(e.name)->extents[static_cast<std::size_t>(variant)];
    if (place.op != Operator::name || extent < 2 || place.interval.high != extent - 1) return true;
    kind_ = "a neighbour read";
    Expression next = joined(Operator::add, std::move(place), integer(1), Type::integer);
    next.interval = {1, extent};
    place = joined(Operator::modulo, std::move(next), integer(extent), Type::integer);
    place.interval = {0, extent - 1};
    return true;
  }

  /// Every thousandth term of a reduction, counted over all of its indices.
  bool skip_terms(Expression& e, int variant) {
    constexpr std::int64_t apart = 1000;
    if (e.op != Operator::reduction || variant > 0 || is_scan()) return false;
    std::int64_t terms = 1;
    Expression place = integer(0);
    for (const Index& one : e.indices) {
      terms *= one.extent;
      place =
          joined(Operator::add,
                 joined(Operator::multiply, std::move(place), integer(one.extent), Type::integer),
                 index(one), Type::integer);
      place.interval = {0, terms - 1};
    }
    if (terms < apart) return true;
    kind_ = "a thousandth of the terms left out";
    Expression rest = joined(Operator::modulo, std::move(place), integer(apart), Type::integer);
    rest.interval = {0, apart - 1};
    add_condition(e,
                  joined(Operator::not_equal, std::move(rest), integer(apart / 2), Type::boolean));
    return true;
  }

  void change_result() {
    const TensorInfo& tensor = *definition_.find(original().name);
    if (tensor.role != TensorInfo::Role::output) return;
    const bool is_float = tensor.dtype && float_format(*tensor.dtype);
    const CheckedStatement& checked = definition_.statements()[number_];
    if (!checked.recurrence) keep_result("zeros", is_float ? real(0.0) : integer(0));
    copy_inputs(tensor);
    if (!is_float || checked.recurrence) return;
    const bool is_wide = tensor.dtype == DType::f32;
    if (checked.scan) {
      change_scan();
      return;
    }
    if (is_wide) keep_result("result in BF16", called("bf16", original().right));
    if (is_wide) keep_result("result in FP16", called("f16", original().right));
    keep_result("result in FP8", called("f8e4m3", original().right));
  }

  void keep_result(const std::string& kind, Expression right) {
    CheckedStatement copy = definition_.statements()[number_];
    kind_ = kind;
    copy.statement.right = std::move(right);
    copy.scan.reset();
    keep(std::move(copy));
  }

  void copy_inputs(const TensorInfo& output) {
    for (const TensorInfo& tensor : definition_.tensors()) {
      const bool same = tensor.role == TensorInfo::Role::input &&
                        tensor.extents == output.extents &&
                        (tensor.type == Type::real) == (output.type == Type::real);
      if (!same || definition_.statements()[number_].recurrence) continue;
      Expression read;
      read.op = Operator::read;
      read.name = tensor.name;
      read.type = tensor.type;
      for (const Index& one : original().indices) read.operands.push_back(index(one));
      keep_result("a copied input", std::move(read));
    }
  }

  /// A scan keeps its form: the first term, or the last one, counts as nothing.
  void change_scan() {
    const Expression& right = original().right;
    const Index& over = right.indices[0];
    const double nothing = right.name == "product" ? 1.0 : 0.0;
    for (const Operator op : {Operator::greater, Operator::less}) {
      CheckedStatement copy = definition_.statements()[number_];
      Expression& body = copy.statement.right.operands[0];
      Expression kept = called(
          "where", joined(op, index(over), integer(op == Operator::greater ? 0 : over.extent - 1),
                          Type::boolean));
      kept.operands.push_back(as_real(std::move(body)));
      kept.operands.push_back(real(nothing));
      kind_ = "range one short";
      body = std::move(kept);
      keep(std::move(copy));
    }
    CheckedStatement copy = definition_.statements()[number_];
    kind_ = "terms in BF16";
    Expression& body = copy.statement.right.operands[0];
    body = called("bf16", as_real(std::move(body)));
    keep(std::move(copy));
  }

  const Definition& definition_;
  std::size_t number_ = 0;
  std::string kind_;
  std::set<std::string> seen_;
  std::vector<DefinitionMutant> mutants_;
};

}  // namespace

std::vector<DefinitionMutant> definition_mutants(const Definition& definition) {
  return Maker(definition).make();
}

}  // namespace rekernel::definition
