#include "ops/definition/expression_code.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "ops/problem.h"

namespace rekernel::definition {

namespace {

/// A thread that adds more reals than this to one sum in FP32 loses digits.
constexpr std::int64_t terms_of_a_sum = 512;
constexpr std::int64_t chunk_terms = 256;

bool has_reduction(const Expression& e) {
  bool found = false;
  for_each(e, [&](const Expression& x) { found |= x.op == Operator::reduction; });
  return found;
}

bool is_index_reducer(const std::string& reducer) {
  return reducer == "argmax" || reducer == "argmin";
}

}  // namespace

std::string element_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return "__half";
    case DType::bf16:
      return "__nv_bfloat16";
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::u8:
      return "unsigned char";
    case DType::i8:
      return "signed char";
    case DType::i32:
      return "int";
    case DType::i64:
      return "long long";
    case DType::f8e4m3:
      return "__nv_fp8_e4m3";
    case DType::f8e5m2:
      return "__nv_fp8_e5m2";
    case DType::boolean:
      return "bool";
  }
  throw std::logic_error("element_type: not a DType");
}

bool needs_long_indices(const Definition& definition) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto is_long = [](const Interval& range) { return range.high > most || range.low < -most; };
  for (const TensorInfo& tensor : definition.tensors()) {
    if (tensor.elements() > most || is_long(tensor.interval)) return true;
  }
  bool found = false;
  for (const CheckedStatement& checked : definition.statements()) {
    for_each(checked.statement.right, [&](const Expression& e) {
      found |= e.type == Type::integer && e.op != Operator::reduction && is_long(e.interval);
    });
  }
  return found;
}

std::vector<std::string> tensors_read(const std::vector<const Expression*>& expressions,
                                      const std::string& own) {
  std::vector<std::string> names;
  for (const Expression* expression : expressions) {
    for_each(*expression, [&](const Expression& e) {
      if (e.op != Operator::read || e.name == own) return;
      if (std::find(names.begin(), names.end(), e.name) == names.end()) names.push_back(e.name);
    });
  }
  return names;
}

void ExpressionCode::line(const std::string& text) {
  lines_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + "\n";
}

void ExpressionCode::close() {
  --depth_;
  line("}");
}

std::string ExpressionCode::real(const Expression& e) {
  const std::string text = expression(e);
  if (e.type == Type::real) return text;
  return e.type == Type::boolean ? "(" + text + " ? real(1) : real(0))"
                                 : "static_cast<real>(" + text + ")";
}

std::string ExpressionCode::expression(const Expression& e) {
  switch (e.op) {
    case Operator::number:
      return number(e);
    case Operator::name:
      if (e.name == "infinity") return "real(INFINITY)";
      if (e.type == Type::real) return "real(" + e.name + ")";
      // The sizes in problem.h are of type int, whose products may be larger.
      return long_indices_ && e.interval.low == e.interval.high ? "index_t(" + e.name + ")"
                                                                : e.name;
    case Operator::read:
      return read(e);
    case Operator::call:
      return call(e);
    case Operator::reduction:
      return reduction(e);
    case Operator::negate:
      return "(-" + (e.type == Type::real ? real(e.operands[0]) : expression(e.operands[0])) + ")";
    case Operator::logical_not:
      return "!" + expression(e.operands[0]);
    default:
      return binary(e);
  }
}

std::string ExpressionCode::number(const Expression& e) const {
  std::array<char, 40> buffer;
  std::string text(buffer.data(),
                   std::to_chars(buffer.data(), buffer.data() + buffer.size(), e.value).ptr);
  if (e.type == Type::integer) {
    return std::fabs(e.value) > 2e9 ? std::to_string(static_cast<long long>(e.value)) + "ll"
                                    : std::to_string(static_cast<long long>(e.value));
  }
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return "real(" + text + ")";
}

std::string ExpressionCode::binary(const Expression& e) {
  const bool compares = e.type == Type::boolean;
  const bool mixed = compares && std::max(e.operands[0].type, e.operands[1].type) == Type::real;
  const bool as_real = e.type == Type::real || mixed;
  const auto operand = [&](std::size_t i) {
    return as_real ? real(e.operands[i]) : expression(e.operands[i]);
  };
  const bool never_negative = e.operands[0].interval.low >= 0;
  switch (e.op) {
    case Operator::floor_divide:
    case Operator::modulo: {
      const std::string a = operand(0), b = operand(1);
      if (never_negative) return "(" + a + (e.op == Operator::modulo ? " % " : " / ") + b + ")";
      return std::string(e.op == Operator::modulo ? "floor_modulo(" : "floor_divide(") + a + ", " +
             b + ")";
    }
    case Operator::power: {
      const Expression& exponent = e.operands[1];
      const std::string base = real(e.operands[0]);
      if (exponent.op == Operator::number && exponent.value == 2) return "square(" + base + ")";
      if (exponent.op == Operator::number && exponent.value == 3) return "cube(" + base + ")";
      return "pow(" + base + ", " + real(exponent) + ")";
    }
    case Operator::logical_and:
      return "(" + operand(0) + " && " + operand(1) + ")";
    case Operator::logical_or:
      return "(" + operand(0) + " || " + operand(1) + ")";
    default: {
      const std::string a = operand(0);
      return "(" + a + std::string(symbol(e.op)) + operand(1) + ")";
    }
  }
}

std::string ExpressionCode::call(const Expression& e) {
  if (e.name == "where") {
    const std::string condition = expression(e.operands[0]);
    const auto branch = [&](std::size_t i) {
      return e.type == Type::real ? real(e.operands[i]) : expression(e.operands[i]);
    };
    if (has_reduction(e.operands[1]) || has_reduction(e.operands[2])) {
      // Loops stand before the line that needs them, so that a choice of loops has lines of its
      // own.
      const std::string chosen = fresh("chosen");
      line((e.type == Type::real      ? "real "
            : e.type == Type::integer ? "index_t "
                                      : "bool ") +
           chosen + ";");
      line("if (" + condition + ") {");
      open();
      line(chosen + " = " + branch(1) + ";");
      close();
      lines_.pop_back();
      lines_ += " else {\n";
      open();
      line(chosen + " = " + branch(2) + ";");
      close();
      return chosen;
    }
    const std::string then = branch(1);
    return "(" + condition + " ? " + then + " : " + branch(2) + ")";
  }
  std::string name = e.name;
  if (name == "minimum") name = "smaller";
  if (name == "maximum") name = "larger";
  if (name == "abs") name = e.type == Type::real ? "fabs" : "abs";
  if (name == "f16" || name == "bf16" || name == "f8e4m3" || name == "f8e5m2") name = "as_" + name;
  std::string text;
  for (const Expression& operand : e.operands) {
    text +=
        (text.empty() ? "" : ", ") + (e.type == Type::real ? real(operand) : expression(operand));
  }
  return name + "(" + text + ")";
}

std::string ExpressionCode::place(const std::string& tensor,
                                  const std::vector<std::string>& places) const {
  const TensorInfo& info = *definition_.find(tensor);
  if (places.empty()) return "0";
  std::string text = places[0];
  for (std::size_t i = 1; i < places.size(); ++i) {
    text = (i > 1 ? "(" + text + ")" : text) + " * " + info.extent_texts[i] + " + " + places[i];
  }
  if (const std::int64_t size = portions_.item_elements(tensor); size > 0) {
    text += " - first_item * " + std::to_string(size);
  }
  return text;
}

std::string ExpressionCode::read(const Expression& e) {
  const TensorInfo& tensor = *definition_.find(e.name);
  const std::size_t subscripts = e.operands.size() - (e.has_otherwise ? 1 : 0);
  std::vector<std::string> places;
  std::string inside;
  for (std::size_t i = 0; i < subscripts; ++i) {
    const Expression& place = e.operands[i];
    std::string text = expression(place);
    const bool may_miss =
        e.has_otherwise && (place.interval.low < 0 || place.interval.high >= tensor.extents[i]);
    const bool is_simple = place.op == Operator::name || place.op == Operator::number;
    if (may_miss && !is_simple) {
      const std::string name = fresh("at");
      line("const index_t " + name + " = " + text + ";");
      text = name;
    }
    if (may_miss) {
      inside += (inside.empty() ? "" : " && ");
      if (place.interval.low < 0) inside += text + " >= 0";
      if (place.interval.low < 0 && place.interval.high >= tensor.extents[i]) inside += " && ";
      if (place.interval.high >= tensor.extents[i]) inside += text + " < " + tensor.extent_texts[i];
    }
    const bool needs_group =
        place.op != Operator::name && place.op != Operator::number && !may_miss && text[0] != '(';
    places.push_back(needs_group ? "(" + text + ")" : text);
  }
  std::string value = loaded(e.name, place(e.name, places));
  const bool own = e.name == statement_.name;
  const Type held = own ? statement_.right.type : tensor.type;
  if (e.type == Type::integer && held != Type::integer)
    value = "static_cast<index_t>(" + value + ")";
  if (e.type == Type::real && held == Type::integer) value = "static_cast<real>(" + value + ")";
  if (inside.empty()) return value;
  const Expression& otherwise = e.operands.back();
  return "(" + inside + " ? " + value + " : " +
         (e.type == Type::real ? real(otherwise) : expression(otherwise)) + ")";
}

std::string ExpressionCode::reduction(const Expression& e) {
  if (&e == replaced_) return replacement_;
  const bool shared = nesting_ == 0 && lanes_ > 1;
  const bool of_index = is_index_reducer(e.name);
  const bool integer = e.type == Type::integer && !of_index;
  std::int64_t terms = 1;
  for (const Index& index : e.indices) terms *= index.extent;
  const std::string sum = fresh(of_index ? "best" : e.name == "sum" ? "sum" : "value");
  const std::string type = of_index ? "Best" : integer ? "long long" : "real";
  const std::string start = of_index  ? "Best{" + first_value(e.name) + ", 0}"
                            : integer ? "0"
                                      : first_value(e.name);
  line(type + " " + sum + " = " + start + ";");
  // Long sums of FP32 are sums of sums.
  const bool blocked = purpose_ == Purpose::candidate && e.name == "sum" && !integer && !shared &&
                       terms > terms_of_a_sum && (e.indices.size() > 1 || e.operands.size() == 1);
  ++nesting_;
  const int depth = depth_;
  open_loops(e, shared, blocked, sum);
  std::string into = blocked ? sum + "part_" : sum;
  if (e.operands.size() > 1) {
    line("if (!" + expression(e.operands[1]) + ") continue;");
  }
  if (of_index) {
    const std::string value = real(e.operands[0]);
    line(into + " = " + (e.name == "argmax" ? "later_larger(" : "later_smaller(") + into +
         ", Best{" + value + ", " + e.indices[0].name + "});");
  } else if (e.name == "sum") {
    line(into + " += " + (integer ? expression(e.operands[0]) : real(e.operands[0])) + ";");
  } else {
    line(into + " = " + combiner(e.name) + "(" + into + ", " + real(e.operands[0]) + ");");
  }
  while (depth_ > depth) {
    if (blocked &&
        depth_ == depth + static_cast<int>(e.indices.size() > 1 ? e.indices.size() - 1 : 1) + 0) {
      line(sum + " += " + sum + "part_;");
    }
    close();
  }
  --nesting_;
  if (shared) {
    const std::string combine =
        of_index ? (e.name == "argmax" ? "larger_of" : "smaller_of") : combiner(e.name);
    line(sum + " = over_lanes<" + std::to_string(lanes_) + ">(" + sum + ", [](" + type + " a, " +
         type + " b) { return " + combine + "(a, b); });");
  }
  if (of_index) return "static_cast<index_t>(" + sum + ".place)";
  return integer ? "static_cast<index_t>(" + sum + ")" : sum;
}

/// Loops over a reduction's terms; a blocked one has a partial sum inside of its outer loops.
void ExpressionCode::open_loops(const Expression& e, bool shared, bool blocked,
                                const std::string& sum) {
  const std::size_t count = e.indices.size();
  const bool inner_is_enough = e.indices.back().extent >= lanes_;
  if (shared && !inner_is_enough) {
    open_flat_loop(e);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Index& index = e.indices[i];
    if (blocked && i + 1 == count) {
      if (count == 1) {
        line("for (index_t chunk_ = 0; chunk_ < " + index.extent_text +
             "; chunk_ += " + std::to_string(chunk_terms) + ") {");
        open();
      }
      line("real " + sum + "part_ = 0;");
      if (count == 1) {
        line("const index_t end_ = chunk_ + " + std::to_string(chunk_terms) + " < " +
             index.extent_text + " ? chunk_ + " + std::to_string(chunk_terms) + " : " +
             index.extent_text + ";");
        line("for (index_t " + index.name + " = chunk_; " + index.name + " < end_; ++" +
             index.name + ") {");
        open();
        return;
      }
    }
    const bool strided = shared && i + 1 == count;
    std::string first = strided ? "lane" : "0";
    std::string end = index.extent_text;
    // A condition that bounds this index by those around it bounds the loop.
    if (e.operands.size() > 1) {
      for (const Expression* part : conjuncts(e.operands[1])) {
        const std::optional<Bound> bound = bound_of(*part, index.name);
        if (!bound) continue;
        bool outer_only = true;
        for (std::size_t later = i; later < count; ++later) {
          outer_only &= !mentions(*bound->bound, e.indices[later].name);
        }
        bool plain = true;
        for_each(*bound->bound, [&](const Expression& x) {
          plain &= x.op != Operator::read && x.op != Operator::reduction;
        });
        if (!outer_only || !plain) continue;
        const std::string limit = expression(*bound->bound);
        if (bound->op == Operator::less) end = "smaller_place(" + end + ", " + limit + ")";
        if (bound->op == Operator::less_equal)
          end = "smaller_place(" + end + ", " + limit + " + 1)";
        if (strided) continue;
        if (bound->op == Operator::greater)
          first = "larger_place(" + first + ", " + limit + " + 1)";
        if (bound->op == Operator::greater_equal)
          first = "larger_place(" + first + ", " + limit + ")";
      }
    }
    if (end != index.extent_text) {
      const std::string name = fresh("end");
      line("const index_t " + name + " = " + end + ";");
      end = name;
    }
    line("for (index_t " + index.name + " = " + first + "; " + index.name + " < " + end + "; " +
         (strided ? index.name + " += " + std::to_string(lanes_) : "++" + index.name) + ") {");
    open();
  }
}

/// One loop over all terms, of which a lane takes every so many.
void ExpressionCode::open_flat_loop(const Expression& e) {
  std::string terms = "1ll";
  for (const Index& index : e.indices) terms += " * " + index.extent_text;
  line("for (long long term_ = lane; term_ < " + terms + "; term_ += " + std::to_string(lanes_) +
       ") {");
  open();
  std::string rest = "term_";
  for (std::size_t i = e.indices.size(); i-- > 0;) {
    const Index& index = e.indices[i];
    line("const index_t " + index.name + " = static_cast<index_t>(" + rest +
         (i > 0 ? " % " + index.extent_text : "") + ");");
    rest = (rest == "term_" ? rest : "(" + rest + ")") + " / " + index.extent_text;
  }
}

std::string ExpressionCode::source(const std::string& tensor) const {
  const TensorInfo& info = *definition_.find(tensor);
  if (info.role != TensorInfo::Role::output) return tensor;
  if (purpose_ == Purpose::candidate && has_wide_copy(tensor)) return tensor + "_wide";
  return target(tensor);
}

std::string ExpressionCode::target(const std::string& tensor) const {
  const TensorInfo& info = *definition_.find(tensor);
  if (info.role == TensorInfo::Role::intermediate) return tensor;
  if (purpose_ == Purpose::truth) return truth_buffer(tensor);
  return purpose_ == Purpose::inputs ? tensor.substr(std::string("made_").size()) : tensor;
}

std::string ExpressionCode::target_type(const std::string& tensor) const {
  const TensorInfo& info = *definition_.find(tensor);
  if (info.role == TensorInfo::Role::intermediate) {
    const Type type = tensor == statement_.name ? statement_.right.type : info.type;
    return type == Type::real ? "real" : type == Type::boolean ? "unsigned char" : "long long";
  }
  return purpose_ == Purpose::truth || purpose_ == Purpose::invariant ? "double"
                                                                      : element_type(*info.dtype);
}

std::int64_t ExpressionCode::target_bytes(const std::string& tensor) const {
  const std::string type = target_type(tensor);
  if (type == "real") return purpose_ == Purpose::candidate ? 4 : 8;
  return type == "unsigned char" ? 1 : 8;
}

std::string ExpressionCode::source_type(const std::string& tensor) const {
  const TensorInfo& info = *definition_.find(tensor);
  if (info.role == TensorInfo::Role::input) return element_type(*info.dtype);
  return has_wide_copy(tensor) ? "real" : target_type(tensor);
}

bool ExpressionCode::has_wide_copy(const std::string& tensor) const {
  const TensorInfo& info = *definition_.find(tensor);
  if (purpose_ != Purpose::candidate || info.role != TensorInfo::Role::output) return false;
  if (!float_format(*info.dtype) || *info.dtype == DType::f32) return false;
  for (const CheckedStatement& one : definition_.statements()) {
    if (mentions(one.statement.right, tensor)) return true;
  }
  return false;
}

std::string ExpressionCode::loaded(const std::string& tensor, const std::string& at) const {
  const TensorInfo& info = *definition_.find(tensor);
  const std::string element = source(tensor) + "[" + at + "]";
  if (info.role == TensorInfo::Role::input) {
    if (*info.dtype == DType::f64) {
      return info.type == Type::integer   ? "static_cast<index_t>(" + element + ")"
             : info.type == Type::boolean ? "(" + element + " != 0)"
                                          : element;
    }
    const bool narrow = float_format(*info.dtype) && *info.dtype != DType::f32;
    if (narrow) return "to_real(" + element + ")";
    if (info.type == Type::integer) return "static_cast<index_t>(" + element + ")";
    return *info.dtype == DType::f32 && purpose_ != Purpose::candidate ? "real(" + element + ")"
                                                                       : element;
  }
  const Type type = tensor == statement_.name ? statement_.right.type : info.type;
  if (type == Type::integer) return "static_cast<index_t>(" + element + ")";
  if (type == Type::boolean) return "(" + element + " != 0)";
  return source_type(tensor) == "float" && purpose_ != Purpose::candidate ? "real(" + element + ")"
                                                                          : element;
}

std::string ExpressionCode::stored(const std::string& tensor, const std::string& value) const {
  const std::string type = target_type(tensor);
  const TensorInfo& info = *definition_.find(tensor);
  const bool has_own_type = purpose_ == Purpose::candidate || purpose_ == Purpose::inputs;
  const bool narrow = info.role == TensorInfo::Role::output && has_own_type &&
                      float_format(*info.dtype) && *info.dtype != DType::f32;
  if (narrow) return "from_real<" + type + ">(" + value + ")";
  if (type == "real" || (type == "float" && purpose_ == Purpose::candidate)) return value;
  return "static_cast<" + type + ">(" + value + ")";
}

std::string ExpressionCode::parameters(const std::vector<std::string>& tensors) const {
  std::string text;
  for (const std::string& name : tensors) {
    text += (text.empty() ? "const " : ", const ") + source_type(name) + "* " + source(name);
  }
  return text;
}

std::vector<Argument> ExpressionCode::arguments(const std::vector<std::string>& tensors) const {
  std::vector<Argument> arguments;
  for (const std::string& name : tensors) arguments.push_back(BufferArgument{source(name)});
  return arguments;
}

std::string ExpressionCode::first_value(const std::string& reducer) const {
  if (reducer == "sum") return "real(0)";
  if (reducer == "product") return "real(1)";
  return reducer == "max" || reducer == "argmax" ? "real(-INFINITY)" : "real(INFINITY)";
}

std::string ExpressionCode::combiner(const std::string& reducer) const {
  if (reducer == "sum") return "added";
  if (reducer == "product") return "multiplied";
  return reducer == "max" ? "larger" : "smaller";
}

}  // namespace rekernel::definition
