#include "ops/problem.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace rekernel {

namespace {

const Attribute& attribute_named(const Problem& problem, const std::string& name) {
  for (const Attribute& attribute : problem.attributes) {
    if (attribute.name == name) return attribute;
  }
  throw std::out_of_range("problem " + problem.id + " has no attribute " + name);
}

std::string integer_line(const std::string& name, std::int64_t value) {
  const bool fits_int = value >= std::numeric_limits<std::int32_t>::min() &&
                        value <= std::numeric_limits<std::int32_t>::max();
  return std::string("inline constexpr ") + (fits_int ? "int " : "long long ") + name + " = " +
         std::to_string(value) + ";\n";
}

// The shortest text that reads back as the same double, in any locale.
std::string real_line(const std::string& name, double value) {
  if (!std::isfinite(value)) throw std::logic_error("attribute " + name + " is not finite");
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return "inline constexpr double " + name + " = " + text + ";\n";
}

}  // namespace

const char* to_string(Distribution::Kind kind) {
  switch (kind) {
    case Distribution::Kind::normal:
      return "normal";
    case Distribution::Kind::uniform:
      return "uniform";
    case Distribution::Kind::constant:
      return "constant";
    case Distribution::Kind::integers:
      return "integers";
    case Distribution::Kind::choice:
      return "choice";
  }
  return "";
}

std::int64_t Tensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) {
      throw std::overflow_error("tensor " + name + ": number of elements out of range");
    }
  }
  return product;
}

namespace {

std::vector<const Tensor*> with_role(const std::vector<Tensor>& tensors, Role role) {
  std::vector<const Tensor*> found;
  for (const Tensor& tensor : tensors) {
    if (tensor.role == role) found.push_back(&tensor);
  }
  return found;
}

}  // namespace

std::vector<const Tensor*> Problem::inputs() const { return with_role(tensors, Role::input); }
std::vector<const Tensor*> Problem::outputs() const { return with_role(tensors, Role::output); }

std::int64_t Problem::tensor_bytes() const {
  return std::accumulate(
      tensors.begin(), tensors.end(), std::int64_t{0},
      [](std::int64_t sum, const Tensor& tensor) { return sum + tensor.bytes(); });
}

const Tensor& Problem::largest(Role role) const {
  const std::vector<const Tensor*> found = with_role(tensors, role);
  if (found.empty()) throw std::logic_error("problem " + id + " has no such tensor");
  return **std::max_element(found.begin(), found.end(), [](const Tensor* one, const Tensor* other) {
    return one->bytes() < other->bytes();
  });
}

bool TruthProgram::draws_input(const std::string& name) const {
  return std::find(draws.begin(), draws.end(), name) != draws.end();
}

bool has_fp32_outputs(const Problem& problem) {
  bool any = false;
  for (const Tensor* output : problem.outputs()) {
    if (output->comparison != Comparison::close) continue;
    if (output->dtype != DType::f32) return false;
    any = true;
  }
  return any;
}

std::string truth_buffer(const std::string& output) { return "truth_" + output; }

const Tensor* Problem::find_tensor(const std::string& name) const {
  for (const Tensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::int64_t Problem::attribute(const std::string& name) const {
  return std::get<std::int64_t>(attribute_named(*this, name).value);
}

double Problem::real_attribute(const std::string& name) const {
  return std::get<double>(attribute_named(*this, name).value);
}

std::string problem_header(const Problem& problem) {
  std::string text = "#pragma once\n\nnamespace problem {\n";
  for (const Attribute& attribute : problem.attributes) {
    const auto* integer = std::get_if<std::int64_t>(&attribute.value);
    text += integer ? integer_line(attribute.name, *integer)
                    : real_line(attribute.name, std::get<double>(attribute.value));
  }
  for (const Tensor& tensor : problem.tensors) {
    text += integer_line(tensor.name + "_elements", tensor.elements());
  }
  return text + "}  // namespace problem\n";
}

}  // namespace rekernel
