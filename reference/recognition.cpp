#include "reference/recognition.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "ops/definition/scalar.h"
#include "reference/normal_form.h"

namespace rekernel {

using definition::Definition;
using definition::TensorInfo;

std::optional<RecognisedProblem> RecognisedProblem::of(const Problem& problem) {
  if (!problem.definition || problem.outputs().size() != 1) return std::nullopt;
  RecognisedProblem subject;
  subject.definition_ = problem.definition.get();
  subject.output_ = problem.outputs().front();
  subject.inputs_ = problem.inputs();
  const auto form = normal_form(*problem.definition, subject.output_->name);
  if (!form) return std::nullopt;
  subject.form_ = text_of(*form);
  if (form->size() == 1) subject.coefficient_ = form->begin()->second;
  return subject;
}

const Tensor* RecognisedProblem::input(const std::string& name) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&](const Tensor* tensor) { return tensor->name == name; });
  return found == inputs_.end() ? nullptr : *found;
}

bool RecognisedProblem::is_all(DType type) const {
  return output_->dtype == type &&
         std::all_of(inputs_.begin(), inputs_.end(),
                     [&](const Tensor* tensor) { return tensor->dtype == type; });
}

bool RecognisedProblem::calls(const char* function) const {
  return form_.find(std::string(function) + "(") != std::string::npos;
}

bool RecognisedProblem::is(const std::vector<std::string>& statements) const {
  Definition guess;
  for (TensorInfo tensor : definition_->tensors()) {
    if (tensor.role == TensorInfo::Role::intermediate) continue;
    tensor.is_defined = tensor.role == TensorInfo::Role::input;
    if (!guess.add_tensor(std::move(tensor))) return false;
  }
  for (const std::string& statement : statements) {
    if (!guess.add_statement(std::string_view(statement))) return false;
  }
  const auto form = normal_form(guess, output_->name);
  return form && text_of(*form) == form_;
}

std::optional<double> RecognisedProblem::coefficient() const { return coefficient_; }

std::vector<double> RecognisedProblem::reals() const {
  std::vector<double> values;
  const auto add = [&](double value) {
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  };
  for (const auto& [name, value] : definition_->constants()) add(value);
  for (const auto& checked : definition_->statements()) {
    definition::for_each(checked.statement.right, [&](const definition::Expression& e) {
      if (e.op == definition::Operator::number) add(e.value);
    });
  }
  return values;
}

std::string index_names(std::size_t first, std::size_t end, const char* prefix) {
  std::string text;
  for (std::size_t i = first; i < end; ++i) {
    text += (i > first ? ", " : "") + std::string(prefix) + std::to_string(i);
  }
  return text;
}

std::string number(double value) {
  if (std::isinf(value)) return value < 0 ? "(-infinity)" : "infinity";
  std::array<char, 32> buffer;
  const std::string text(buffer.data(),
                         std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr);
  return value < 0 ? "(" + text + ")" : text;
}

std::int64_t product_of(const std::vector<std::int64_t>& extents, std::size_t first,
                        std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < end; ++i) product *= extents[i];
  return product;
}

std::vector<LibraryShape> shapes_of(const Problem& problem) {
  std::vector<LibraryShape> shapes;
  const std::optional<RecognisedProblem> subject = RecognisedProblem::of(problem);
  if (!subject) return shapes;
  const auto add = [&](const auto& shape) {
    if (shape) shapes.emplace_back(*shape);
  };
  add(find_matrix_product(*subject));
  add(find_convolution(*subject));
  if (!shapes.empty()) return shapes;
  add(find_pooling(*subject));
  add(find_softmax(*subject));
  add(find_layer_norm(*subject));
  add(find_batch_norm(*subject));
  add(find_reduction(*subject));
  add(find_activation(*subject));
  add(find_attention(*subject));
  return shapes;
}

}  // namespace rekernel
