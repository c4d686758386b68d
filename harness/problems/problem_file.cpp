#include "harness/problems/problem_file.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "harness/base/base64.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/problems/stress_rule.h"
#include "harness/problems/tolerance_class.h"
#include "ops/definition/blank_code.h"
#include "ops/definition/cost.h"
#include "ops/definition/definition.h"
#include "ops/definition/device_code.h"
#include "ops/definition/extreme.h"
#include "ops/definition/interpreter.h"
#include "ops/definition/parser.h"
#include "ops/definition/scalar.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;
using definition::Definition;
using definition::TensorInfo;

namespace {

constexpr std::size_t max_text = 1 << 16;
constexpr std::size_t max_values = 3 << 20;  ///< characters, of an input's values
/// Parameters of a model are inputs. With all outputs and arguments that are drawn, a message
/// between our processes takes them (Channel::most_descriptors).
constexpr std::size_t max_inputs = 180;
constexpr std::size_t max_outputs = 32;
constexpr std::size_t max_drawn = 32;
constexpr std::size_t max_dimensions = 8;
constexpr std::int64_t max_elements = std::int64_t{1} << 40;
constexpr double max_operations = 1e14;
/// What a number of an axis can be; the products of several are checked.
constexpr std::int64_t max_axis = std::int64_t{1} << 40;

class ProblemReader {
 public:
  ProblemReader(std::string_view text, const std::string& where, const json::value& value,
                const Sizes& sizes)
      : text_(text), where_(where), root_(where, value), sizes_(sizes) {}

  Result<Problem> read(const std::string& id, const std::string& group) {
    problem_.group = group;
    problem_.text = text_;
    root_.required("schema").integer(1, 1);
    read_names(id);
    read_axes();
    read_constants();
    read_tensors("inputs", Role::input);
    read_tensors("outputs", Role::output);
    if (auto program = root_.optional("program")) {
      read_program(*program);
    } else {
      read_making();
      read_definition();
    }
    read_tolerance();
    if (!root_.error()) problem_.matrix_products = products_within(problem_.tolerance, cost_);
    read_stress();
    if (!problem_.program) {
      read_invariants();
      problem_.pytorch = root_.required("pytorch").string(max_text);
      if (problem_.pytorch.empty()) root_.required("pytorch").fail("expected an expression");
    }
    root_.no_other_keys();
    if (const std::optional<Error> error = root_.error()) return *error;
    if (failure_) return *failure_;
    make_code();
    return std::move(problem_);
  }

 private:
  bool failed() const { return failure_ || root_.error(); }

  void fail(JsonReader field, const Error& error) {
    if (!failed()) field.fail(error.message);
  }

  void read_names(const std::string& id) {
    JsonReader field = root_.required("id");
    problem_.id = field.identifier();
    if (!field.error() && problem_.id != id) field.expect("'" + id + "', as the file is called");
    problem_.title = root_.required("title").string(200);
    if (auto source = root_.optional("source")) {
      problem_.source.benchmark = source->required("benchmark").string(200);
      problem_.source.number = static_cast<int>(source->required("number").integer(0, 1000000));
      source->no_other_keys();
    }
  }

  void read_axes() {
    for (auto& [name, field] : root_.required("axes").entries(64)) {
      if (failed()) return;
      std::int64_t size = 0;
      const bool is_free = field.is_integer();
      if (is_free) {
        size = field.integer(1, max_axis);
        if (const auto found = sizes_.find(name); found != sizes_.end()) size = found->second;
      } else if (field.is_string()) {
        const Result<std::int64_t> value = scope_.integer(field.string(max_text));
        if (!value) return fail(field, value.error());
        size = *value;
      } else {
        field.expect("an integer, or an expression of earlier axes in quotes");
      }
      if (failed()) return;
      if (size < 1 || size > max_axis) {
        return field.fail("is " + std::to_string(size) + ": expected 1 to " +
                          std::to_string(max_axis));
      }
      if (is_free) free_axes_.insert(name);
      if (auto added = scope_.add_axis(name, size); !added) return fail(field, added.error());
      problem_.attributes.push_back({name, size});
    }
    for (const auto& [name, size] : sizes_) {
      if (!free_axes_.contains(name)) {
        return root_.required("axes").fail(
            "has no size '" + name +
            "' that could be another: expected one of those given as integers");
      }
    }
    read_other_sizes();
    read_constraints();
  }

  void read_other_sizes() {
    auto sizes = root_.optional("other_sizes");
    if (!sizes) return;
    for (auto& [name, field] : sizes->entries(64)) {
      std::vector<JsonReader> range = field.array(2, 2);
      if (failed()) return;
      if (!free_axes_.contains(name)) return field.fail("is no axis that is given as an integer");
      const std::int64_t low = range[0].integer(1, max_axis), high = range[1].integer(1, max_axis);
      if (!failed() && low > high) field.fail("expected the smaller size first");
      problem_.other_sizes[name] = {low, high};
    }
  }

  void read_constraints() {
    auto constraints = root_.optional("constraints");
    if (!constraints) return;
    for (JsonReader& field : constraints->array(0, 32)) {
      const std::string text = field.string(max_text);
      if (failed()) return;
      const Result<bool> holds = scope_.condition(text);
      if (!holds) return fail(field, holds.error());
      if (!*holds) return field.fail("'" + text + "' does not hold for these sizes");
    }
  }

  void read_constants() {
    auto constants = root_.optional("constants");
    if (!constants) return;
    for (auto& [name, field] : constants->entries(64)) {
      if (failed()) return;
      if (field.is_integer()) {
        // Whole numbers are integers, here and in problem.h.
        const std::int64_t whole = field.integer(-max_axis, max_axis);
        if (auto added = scope_.add_axis(name, whole); !added) return fail(field, added.error());
        problem_.attributes.push_back({name, whole});
        continue;
      }
      const std::optional<double> value = real(field);
      if (!value) return;
      if (auto added = scope_.add_constant(name, *value); !added) return fail(field, added.error());
      problem_.attributes.push_back({name, *value});
    }
  }

  /// A number, or an expression of axes and constants in quotes.
  std::optional<double> real(JsonReader& field) {
    if (!field.is_string()) {
      const double value = field.real();
      return failed() ? std::nullopt : std::optional(value);
    }
    const Result<double> value = scope_.real(field.string(max_text));
    if (!value) {
      fail(field, value.error());
      return std::nullopt;
    }
    return *value;
  }

  void read_tensors(const char* key, Role role) {
    auto entries = root_.required(key).entries(role == Role::input ? max_inputs : max_outputs);
    if (!failed() && entries.empty()) root_.required(key).fail("expected at least one tensor");
    for (auto& [name, field] : entries) {
      if (failed()) return;
      read_tensor(name, field, role);
    }
  }

  void read_tensor(const std::string& name, JsonReader& field, Role role) {
    Tensor tensor;
    tensor.name = name;
    tensor.role = role;
    JsonReader type = field.required("dtype");
    const std::string type_name = type.string(16);
    const std::optional<DType> dtype = dtype_named(type_name);
    if (!dtype || *dtype == DType::f64 || *dtype == DType::u8) {
      if (!failed()) type.expect("one of f32, f16, bf16, f8e4m3, f8e5m2, i8, i32, i64, bool");
      return;
    }
    tensor.dtype = *dtype;
    TensorInfo info;
    info.name = name;
    info.role = role == Role::input ? TensorInfo::Role::input : TensorInfo::Role::output;
    info.dtype = tensor.dtype;
    info.is_defined = role == Role::input;
    if (!read_shape(field, tensor, info)) return;
    if (const std::optional<IntegerRange> range = integer_range(tensor.dtype)) {
      info.type =
          tensor.dtype == DType::boolean ? definition::Type::boolean : definition::Type::integer;
      info.interval = {range->low, range->high};
    }
    if (role == Role::input) {
      tensor.distribution = read_draw(field.required("draw"), tensor.dtype);
      narrow(info, tensor.distribution);
      if (auto share = field.optional("read_share")) {
        tensor.read_share = real(*share).value_or(1);
        if (!failed() && !(tensor.read_share > 0 && tensor.read_share <= 1)) {
          share->expect("a share above 0 and up to 1");
        }
      }
    }
    field.no_other_keys();
    if (failed()) return;
    if (auto added = scope_.add_tensor(info); !added) return fail(field, added.error());
    problem_.tensors.push_back(std::move(tensor));
  }

  bool read_shape(JsonReader& field, Tensor& tensor, TensorInfo& info) {
    std::int64_t elements = 1;
    for (JsonReader& extent : field.required("shape").array(0, max_dimensions)) {
      if (failed()) return false;
      std::int64_t size = 0;
      std::string cpp;
      if (extent.is_integer()) {
        size = extent.integer(1, max_axis);
        cpp = std::to_string(size);
      } else {
        const std::string text = extent.string(max_text);
        const Result<std::int64_t> value = scope_.integer(text);
        if (!value) {
          fail(extent, value.error());
          return false;
        }
        size = *value;
        cpp = scope_.cpp(text);
      }
      if (failed()) return false;
      if (size < 1 || __builtin_mul_overflow(elements, size, &elements) ||
          elements > max_elements) {
        extent.fail("makes " + std::to_string(size) +
                    " of it: expected extents from 1 up, and at most " +
                    std::to_string(max_elements) + " elements");
        return false;
      }
      tensor.shape.push_back(size);
      info.extents.push_back(size);
      info.extent_texts.push_back(cpp);
    }
    return !failed();
  }

  Distribution read_draw(JsonReader field, DType dtype) {
    Distribution draw;
    auto entries = field.entries(1);
    if (failed()) return draw;
    if (entries.size() != 1) {
      field.expect(
          R"(one of {"normal": [mean, deviation]}, {"uniform": [low, high]}, {"constant": value}, {"choice": [values]}, {"integers": [low, end]})");
      return draw;
    }
    const std::string& kind = entries[0].first;
    JsonReader& value = entries[0].second;
    const bool is_float = float_format(dtype) != nullptr;
    const auto pair = [&] {
      std::vector<JsonReader> two = value.array(2, 2);
      if (failed()) return;
      draw.a = real(two[0]).value_or(0);
      draw.b = real(two[1]).value_or(1);
    };
    if (kind == "normal" || kind == "uniform") {
      draw.kind = kind == "normal" ? Distribution::Kind::normal : Distribution::Kind::uniform;
      pair();
      if (!failed() && !is_float)
        value.fail("is for floating-point types: expected 'integers' or 'choice'");
      if (!failed() && kind == "normal" && draw.b < 0)
        value.fail("expected a deviation of at least 0");
      if (!failed() && kind == "uniform" && draw.a > draw.b)
        value.fail("expected the smaller bound first");
    } else if (kind == "constant") {
      draw.kind = Distribution::Kind::constant;
      draw.a = real(value).value_or(0);
    } else if (kind == "choice") {
      draw.kind = Distribution::Kind::choice;
      for (JsonReader& one : value.array(1, Distribution::max_choices)) {
        draw.choices.push_back(real(one).value_or(0));
      }
    } else if (kind == "integers") {
      draw.kind = Distribution::Kind::integers;
      pair();
      if (!failed()) check_integers(value, draw);
    } else {
      field.expect("'normal', 'uniform', 'constant', 'choice' or 'integers'");
    }
    if (!failed()) check_values(value, draw, dtype);
    return draw;
  }

  /// Draws of integers go through float, which holds them up to 2^24.
  void check_integers(JsonReader& field, const Distribution& draw) {
    constexpr double most = 1 << 24;
    const bool whole = draw.a == std::floor(draw.a) && draw.b == std::floor(draw.b);
    if (!whole || draw.a >= draw.b || draw.a < -most || draw.b > most) {
      field.fail("expected integers from -2^24 to 2^24, the end larger than the first");
    }
  }

  void check_values(JsonReader& field, const Distribution& draw, DType dtype) {
    const std::optional<IntegerRange> range = integer_range(dtype);
    if (!range) return;
    std::vector<double> values = draw.choices;
    if (draw.kind == Distribution::Kind::constant) values = {draw.a};
    if (draw.kind == Distribution::Kind::integers) values = {draw.a, draw.b - 1};
    for (const double value : values) {
      const bool fits = value == std::floor(value) && value >= static_cast<double>(range->low) &&
                        value <= static_cast<double>(range->high);
      if (fits) continue;
      return field.fail(std::string("has a value that is no ") + to_string(dtype));
    }
  }

  static void narrow(TensorInfo& info, const Distribution& draw) {
    if (info.type != definition::Type::integer) return;
    double low = draw.a, high = draw.a;
    if (draw.kind == Distribution::Kind::integers) high = draw.b - 1;
    if (draw.kind == Distribution::Kind::choice) {
      const auto [least, largest] = std::minmax_element(draw.choices.begin(), draw.choices.end());
      low = *least;
      high = *largest;
    }
    info.interval = {static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
  }

  /// The error of a statement with its place: line and column of the file.
  Error placed(const JsonReader& field, const Error& error) const {
    std::size_t column = 1;
    std::string rest = error.message;
    if (rest.starts_with("column ")) {
      const std::size_t end = rest.find(": ");
      column = static_cast<std::size_t>(std::stoi(rest.substr(7, end - 7)));
      rest = rest.substr(end + 2);
    }
    const std::string written = json::serialize(part_with(field.raw(), column));
    const std::size_t at = text_.find(written);
    if (at == std::string_view::npos) return {rest + " (column " + std::to_string(column) + ")"};
    const std::string_view before = text_.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t start =
        before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return {"line " + std::to_string(line) + ", column " + std::to_string(at - start + 1 + column) +
            ": " + rest};
  }

  /// The string of a statement, which may be a list of them, in which a column of the whole lies;
  /// it becomes a column of that string.
  static json::string part_with(const json::value& statement, std::size_t& column) {
    if (const json::string* text = statement.if_string()) return *text;
    const json::array& parts = statement.as_array();
    std::size_t part = 0;
    for (; part + 1 < parts.size() && column > parts[part].as_string().size() + 1; ++part) {
      column -= parts[part].as_string().size() + 1;
    }
    return parts.at(part).as_string();
  }

  void read_making() {
    auto making = root_.optional("made");
    if (!making) return;
    making_ = std::make_shared<Definition>(inputs_alone());
    for (JsonReader& field : making->array(1, 32)) {
      const std::string text = statement_text(field);
      if (failed()) return;
      Result<Ok> added = add_making(text);
      if (!added) return fail(field, placed(field, added.error()));
    }
    if (auto sound = making_->finish(false); !sound) making->fail(sound.error().message);
  }

  /// A statement that changes an input is one that defines an output `made_<input>`.
  Result<Ok> add_making(const std::string& text) {
    Result<definition::Statement> parsed = definition::parse_statement(text);
    if (!parsed) return parsed.error();
    const std::string name = parsed->name;
    const auto tensor = std::find_if(
        problem_.tensors.begin(), problem_.tensors.end(),
        [&](const Tensor& one) { return one.name == name && one.role == Role::input; });
    if (tensor == problem_.tensors.end()) return making_->add_statement(std::move(*parsed));
    if (tensor->is_made) return Error{"column 1: '" + name + "' is made already"};
    std::optional<Error> elsewhere;
    for_each(parsed->right, [&](const definition::Expression& e) {
      if (e.op != definition::Operator::read || e.name != name || elsewhere) return;
      bool same = e.operands.size() == parsed->indices.size();
      for (std::size_t i = 0; same && i < e.operands.size(); ++i) {
        same = e.operands[i].op == definition::Operator::name &&
               e.operands[i].name == parsed->indices[i].name;
      }
      if (!same) {
        elsewhere = Error{"column " + std::to_string(e.column) + ": '" + name +
                          "' is changed in place, and read elsewhere: expected the left side's "
                          "indices, or a copy of it that a statement makes before"};
      }
    });
    if (elsewhere) return *elsewhere;
    TensorInfo made = *scope_.find(name);
    made.name = "made_" + name;
    made.role = TensorInfo::Role::output;
    made.is_defined = false;
    if (auto added = making_->add_tensor(made); !added) return added;
    parsed->name = made.name;
    if (auto added = making_->add_statement(std::move(*parsed)); !added) return added;
    tensor->is_made = true;
    return Ok{};
  }

  Definition inputs_alone() const {
    Definition scope;
    for (const auto& [name, size] : scope_.axes()) (void)scope.add_axis(name, size).ok();
    for (const auto& [name, value] : scope_.constants()) (void)scope.add_constant(name, value).ok();
    for (const TensorInfo& tensor : scope_.tensors()) {
      if (tensor.role == TensorInfo::Role::input) (void)scope.add_tensor(tensor).ok();
    }
    return scope;
  }

  /// A string, or a list of strings that are joined.
  std::string statement_text(JsonReader& field) {
    if (field.is_string()) return field.string(max_text);
    std::string text;
    const std::vector<std::string> parts = field.strings(64, max_text);
    if (parts.empty()) field.expect("a statement, or a list of the strings that make one");
    for (std::size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? " " : "") + parts[i];
    return text;
  }

  void read_definition() {
    std::vector<JsonReader> statements = root_.required("definition").array(1, 64);
    for (JsonReader& field : statements) {
      const std::string text = statement_text(field);
      if (failed()) return;
      if (auto added = scope_.add_statement(text); !added) {
        return fail(field, placed(field, added.error()));
      }
      problem_.formula.push_back(text);
    }
    if (failed()) return;
    if (auto sound = scope_.finish(); !sound)
      return root_.required("definition").fail(sound.error().message);
    cost_ = definition::cost_of(scope_);
    if (cost_.worst > max_operations) {
      return statements[cost_.worst_statement].fail(
          "takes " + std::to_string(static_cast<long long>(cost_.worst / 1e12)) +
          "e12 operations: expected at most 1e14");
    }
    for (Tensor& tensor : problem_.tensors) {
      if (tensor.role != Role::output || !integer_range(tensor.dtype)) continue;
      tensor.comparison = definition::extreme_statement(scope_, tensor.name) ? Comparison::extreme
                                                                             : Comparison::equal;
    }
  }

  /// What stands in place of a definition: it is checked here that it goes together with the
  /// tensors, and run elsewhere (reference/program_truth.h).
  void read_program(JsonReader& program) {
    for (const char* key : {"other_sizes", "made", "definition", "pytorch", "invariants"}) {
      if (!failed() && root_.has(key)) {
        root_.required(key).fail(
            "does not go with a program, which has its own sizes and statements");
      }
    }
    JsonReader form = program.required("form");
    const std::string name = form.string(32);
    if (!failed() && name != "kernelbench" && name != "flashinfer") {
      form.expect("'kernelbench' or 'flashinfer'");
    }
    const std::string text = program.required("text").string(max_text);
    std::set<std::string> used, parameters;
    const auto use = [&](JsonReader field) {
      const std::string input = field.string(64);
      const Tensor* tensor = problem_.find_tensor(input);
      if (failed()) return;
      if (!tensor || tensor->role != Role::input) return field.fail("is no input");
      if (!used.insert(input).second) field.fail("is there already");
    };
    std::size_t nulls = 0;
    for (JsonReader& argument : program.required("arguments").array(0, 64)) {
      argument.raw().is_null() ? static_cast<void>(++nulls) : use(argument);
    }
    if (name == "flashinfer" && nulls > 0) {
      for (JsonReader& number : program.required("numbers").array(nulls, nulls)) number.real();
    }
    for (auto& [input, target] : program.required("parameters").entries(max_inputs)) {
      if (failed()) return;
      if (!problem_.find_tensor(input) || !used.insert(input).second) {
        return target.fail("expected an input that is no argument");
      }
      parameters.insert(input);
      if (target.string(200).empty()) target.expect("a parameter's name in the model");
    }
    TruthProgram made;
    if (auto draws = program.optional("draws")) {
      for (JsonReader& field : draws->array(1, max_drawn)) {
        made.draws.push_back(field.string(64));
        if (failed()) return;
        if (parameters.contains(made.draws.back()) || !used.contains(made.draws.back())) {
          return field.expect("an input that is an argument");
        }
      }
    }
    if (auto values = program.optional("values")) {
      if (!failed() && values->raw().is_object() && values->raw().get_object().empty()) {
        return values->expect("inputs with their values");
      }
      for (auto& [input, field] : values->entries(max_drawn)) {
        if (failed()) return;
        if (parameters.contains(input) || !used.contains(input) || made.draws_input(input)) {
          return field.fail("expected an input that is an argument and is not drawn");
        }
        check_values(*problem_.find_tensor(input), field);
        made.draws.push_back(input);
      }
    }
    program.no_other_keys();
    if (failed()) return;
    for (const Tensor* input : problem_.inputs()) {
      if (used.contains(input->name)) continue;
      return program.fail("leaves out the input '" + input->name + "'");
    }
    for (Tensor& tensor : problem_.tensors) {
      if (tensor.role == Role::output && integer_range(tensor.dtype)) {
        tensor.comparison = Comparison::equal;
      }
      tensor.is_made = made.draws_input(tensor.name);
    }
    made.json = json::serialize(program.raw());
    made.text = text;
    problem_.program = std::make_shared<TruthProgram>(std::move(made));
    problem_.formula = lines_of(text);
  }

  /// Values of an integer input that stay the same under every seed, as they lie in memory.
  static void check_values(const Tensor& input, JsonReader& field) {
    if (!integer_range(input.dtype)) return field.fail("goes with inputs of integers");
    const std::string text = field.string(max_values);
    if (field.error()) return;
    const std::optional<std::string> bytes = from_base64(text);
    if (!bytes || static_cast<std::int64_t>(bytes->size()) != input.bytes()) {
      field.expect("base64 of " + std::to_string(input.bytes()) + " bytes");
    }
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

  void read_tolerance() {
    JsonReader field = root_.required("tolerance");
    const bool is_name = field.is_string();
    JsonReader name = is_name ? field : field.required("class");
    const std::optional<Tolerance> of_class = tolerance_of_class(name.string(16), cost_);
    if (failed()) return;
    if (!of_class) return name.expect("'fp32', 'fp16', 'bf16', 'fp8' or 'exact'");
    problem_.tolerance = *of_class;
    narrow_for_scalars(name.string(16));
    if (is_name) return;
    const auto bound = [&](const char* key, double& into) {
      auto own = field.optional(key);
      if (!own) return;
      const double value = own->real();
      if (!failed() && !(value > 0 && value <= 1)) own->expect("a number above 0, at most 1");
      into = value;
    };
    bound("rms", problem_.tolerance.rms_error_over_rms);
    bound("largest", problem_.tolerance.max_error_over_rms);
    if (field.required("why").string(2000).empty()) field.required("why").expect("a reason");
    field.no_other_keys();
  }

  /// In a single number from many, errors of the terms cancel: a bound of its own.
  void narrow_for_scalars(const std::string& name) {
    constexpr double of_scalars = 2e-6;
    const auto outputs = problem_.outputs();
    const bool all = std::all_of(outputs.begin(), outputs.end(),
                                 [](const Tensor* one) { return one->elements() == 1; });
    if (!all || name != "fp32") return;
    problem_.tolerance.rms_error_over_rms = problem_.tolerance.max_error_over_rms = of_scalars;
  }

  void read_stress() {
    std::int64_t row = 0;
    if (auto axes = root_.optional("row")) row = read_row(*axes);
    if (failed()) return;
    if (auto stress = root_.optional("stress")) {
      for (auto& [name, field] : stress->entries(32)) {
        StressCase one;
        one.name = name;
        for (auto& [input, draw] : field.entries(max_inputs)) {
          const Tensor* tensor = problem_.find_tensor(input);
          if (!tensor || tensor->role != Role::input) return draw.fail("is no input");
          one.inputs[input] = read_draw(draw, tensor->dtype);
          if (failed()) return;
        }
        problem_.stress_cases.push_back(std::move(one));
      }
    } else {
      add_stress_by_rule(problem_);
    }
    add_uneven_stress(problem_, row);
  }

  /// The elements of the first floating-point input's last axes.
  std::int64_t read_row(JsonReader& field) {
    std::int64_t elements = 1;
    const Tensor* input = first_float_input(problem_);
    const std::vector<std::string> axes = field.strings(max_dimensions, 64);
    if (failed()) return 0;
    const TensorInfo* info = input ? scope_.find(input->name) : nullptr;
    if (!info || axes.empty() || axes.size() > info->extents.size()) {
      field.expect("the last axes of the first floating-point input");
      return 0;
    }
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const std::size_t dimension = info->extents.size() - axes.size() + i;
      if (info->extent_texts[dimension] != axes[i]) {
        field.expect("the last axes of '" + input->name + "'");
        return 0;
      }
      elements *= info->extents[dimension];
    }
    return elements;
  }

  void read_invariants() {
    auto invariants = root_.optional("invariants");
    if (invariants) {
      for (JsonReader& field : invariants->array(0, 8)) {
        const std::string name = field.required("name").string(100);
        JsonReader violation = field.required("violation");
        const std::string text = statement_text(violation);
        JsonReader limit = field.required("bound");
        const double bound = limit.real();
        if (!failed() && !(bound >= 0)) limit.expect("a number of at least 0");
        field.no_other_keys();
        if (failed()) return;
        Result<Invariant> made = definition::make_invariant(scope_, name, text, bound);
        if (!made) return fail(violation, placed(violation, made.error()));
        problem_.invariants.push_back(std::move(*made));
      }
    }
    if (failed()) return;
    for (const Tensor* output : problem_.outputs()) {
      if (output->comparison != Comparison::extreme) continue;
      for (Invariant& one : definition::extreme_invariants(scope_, output->name)) {
        problem_.invariants.push_back(std::move(one));
      }
    }
  }

  void make_code() {
    const auto whole = [](double value) {
      return static_cast<std::int64_t>(std::min(value, 9e18));
    };
    auto needed = definition::shares_needed(scope_);
    for (const Tensor& tensor : problem_.tensors) {
      problem_.min_bytes += whole(tensor.read_share * static_cast<double>(tensor.bytes()));
      if (needed[tensor.name] == 1 && !tensor.is_made) problem_.least_bytes += tensor.bytes();
    }
    problem_.operations =
        whole(problem_.matrix_products > 0 ? cost_.matrix_operations : cost_.operations);
    problem_.fewest_matrix_operations =
        whole(problem_.matrix_products > 0 ? cost_.fewest_matrix_operations : 0);
    auto definition = std::make_shared<const Definition>(std::move(scope_));
    problem_.definition = definition;
    if (problem_.program) {
      problem_.scaffold = definition::blank_program(*definition);
      return;
    }
    problem_.host_oracle = [definition](const HostInputs& inputs) {
      HostInputs outputs;
      const definition::Values values =
          definition::interpret(*definition, {inputs.begin(), inputs.end()});
      for (const TensorInfo& tensor : definition->tensors()) {
        if (tensor.role == TensorInfo::Role::output) outputs[tensor.name] = values.at(tensor.name);
      }
      return outputs;
    };
    problem_.device_oracle = definition::device_program(*definition, definition::Purpose::truth);
    problem_.scaffold = definition::device_program(*definition, definition::Purpose::candidate);
    if (!making_) return;
    problem_.making = definition::device_program(*making_, definition::Purpose::inputs);
    problem_.made = [making = std::shared_ptr<const Definition>(making_)](const HostInputs& drawn) {
      HostInputs inputs = drawn;
      const definition::Values values =
          definition::interpret(*making, {drawn.begin(), drawn.end()});
      for (const TensorInfo& tensor : making->tensors()) {
        if (tensor.role != TensorInfo::Role::output) continue;
        std::vector<double>& made = inputs[tensor.name.substr(5)] = values.at(tensor.name);
        for (double& value : made) value = rounded_to(*tensor.dtype, value);
      }
      return inputs;
    };
  }

  std::string_view text_;
  std::string where_;
  JsonReader root_;
  const Sizes& sizes_;
  Problem problem_;
  Definition scope_;
  std::shared_ptr<Definition> making_;
  std::set<std::string> free_axes_;
  definition::Cost cost_;
  std::optional<Error> failure_;
};

}  // namespace

Result<Problem> parse_problem(std::string_view text, const std::string& where,
                              const std::string& id, const std::string& group, const Sizes& sizes) {
  const Result<json::value> value = parse_json(text, where);
  if (!value) return value.error();
  return ProblemReader(text, where, *value, sizes).read(id, group);
}

Result<Problem> read_problem(const fs::path& file) {
  const Result<std::string> text = read_file(file);
  if (!text) return text.error();
  return parse_problem(*text, file.string(), file.stem().string(),
                       file.parent_path().filename().string());
}

Result<Problem> problem_at(const Problem& problem, const Sizes& sizes) {
  return parse_problem(problem.text, problem.id, problem.id, problem.group, sizes);
}

}  // namespace rekernel
