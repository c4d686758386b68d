#include <array>
#include <cmath>
#include <utility>

#include "reference/recognition.h"

namespace rekernel {

namespace {

std::string read(const std::string& tensor, const std::string& indices) {
  return tensor + "[" + indices + "]";
}

/// A type of which cuDNN takes rows, computing in FP32.
bool is_for_rows(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

std::vector<std::string> softmax_statements(const std::string& x, const std::string& y,
                                            std::size_t split, std::size_t rank, bool logarithm) {
  const std::string row = index_names(0, split), column = index_names(split, rank);
  const std::string at = read(x, index_names(0, rank)), top = read("top_guess", row);
  const std::string total = read("total_guess", row);
  return {top + " = max(" + column + ") " + at,
          total + " = sum(" + column + ") exp(" + at + " - " + top + ")",
          read(y, index_names(0, rank)) + " = " +
              (logarithm ? at + " - " + top + " - log(" + total + ")"
                         : "exp(" + at + " - " + top + ") / " + total)};
}

std::vector<std::string> backward_statements(const std::string& y, const std::string& dy,
                                             const std::string& dx, std::size_t split,
                                             std::size_t rank) {
  const std::string all = index_names(0, rank), dot = read("dot_guess", index_names(0, split));
  const std::string of_y = read(y, all), of_dy = read(dy, all);
  return {dot + " = sum(" + index_names(split, rank) + ") " + of_y + " * " + of_dy,
          read(dx, all) + " = " + of_y + " * (" + of_dy + " - " + dot + ")"};
}

/// (x - mean) / sqrt(variance + eps), over `reduced` for each of `kept`, times weight plus bias.
struct Normalisation {
  std::string x, y, all, kept, reduced;
  std::int64_t count = 1;
  double eps = 0;
  std::string weight, bias;  ///< reads; empty: none
};
std::vector<std::string> normalising_statements(const Normalisation& norm) {
  const std::string at = read(norm.x, norm.all), mean = read("mean_guess", norm.kept);
  const std::string variance = read("variance_guess", norm.kept),
                    count = std::to_string(norm.count);
  std::string y = "(" + at + " - " + mean + ") / sqrt(" + variance + " + " + number(norm.eps) + ")";
  if (!norm.weight.empty()) y += " * " + norm.weight + " + " + norm.bias;
  return {mean + " = sum(" + norm.reduced + ") " + at + " / " + count,
          variance + " = sum(" + norm.reduced + ") (" + at + " - " + mean + ")^2 / " + count,
          read(norm.y, norm.all) + " = " + y};
}

/// What may be added to a variance.
std::vector<double> possible_eps(const RecognisedProblem& subject) {
  std::vector<double> values;
  for (double value : subject.reals()) {
    if (value > 0 && value < 1) values.push_back(value);
  }
  return values;
}

}  // namespace

std::optional<Softmax> find_softmax(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  if (!is_for_rows(y.dtype) || !subject.is_all(y.dtype)) return std::nullopt;
  const auto& inputs = subject.inputs();
  const std::size_t rank = y.shape.size();
  for (const Tensor* input : inputs) {
    if (input->shape != y.shape) return std::nullopt;
  }
  for (std::size_t split = 1; split < rank; ++split) {
    Softmax softmax{.type = y.dtype,
                    .rows = product_of(y.shape, 0, split),
                    .columns = product_of(y.shape, split, rank)};
    if (inputs.size() == 1 && subject.calls("exp")) {
      softmax.x = inputs[0]->name;
      softmax.y = y.name;
      for (const bool logarithm : {false, true}) {
        softmax.kind = logarithm ? Softmax::Kind::logarithm : Softmax::Kind::plain;
        if (subject.is(softmax_statements(softmax.x, softmax.y, split, rank, logarithm))) {
          return softmax;
        }
      }
    }
    for (std::size_t first = 0; first < 2 && inputs.size() == 2; ++first) {
      softmax.kind = Softmax::Kind::backward;
      softmax.y = inputs[first]->name;
      softmax.x = inputs[1 - first]->name;
      softmax.dx = y.name;
      if (subject.is(backward_statements(softmax.y, softmax.x, softmax.dx, split, rank))) {
        return softmax;
      }
    }
  }
  return std::nullopt;
}

std::optional<LayerNorm> find_layer_norm(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  const auto& inputs = subject.inputs();
  if (!subject.is_all(DType::f32) || inputs.size() != 3 || !subject.calls("sqrt")) {
    return std::nullopt;
  }
  const std::size_t rank = y.shape.size();
  for (std::size_t split = 1; split < rank; ++split) {
    const std::vector<std::int64_t> columns(y.shape.begin() + static_cast<std::ptrdiff_t>(split),
                                            y.shape.end());
    for (const auto [x, weight, bias] :
         {std::array{0, 1, 2}, std::array{0, 2, 1}, std::array{1, 0, 2}, std::array{1, 2, 0},
          std::array{2, 0, 1}, std::array{2, 1, 0}}) {
      if (inputs[x]->shape != y.shape || inputs[weight]->shape != columns ||
          inputs[bias]->shape != columns) {
        continue;
      }
      const std::string of_column = index_names(split, rank);
      Normalisation norm{.x = inputs[x]->name,
                         .y = y.name,
                         .all = index_names(0, rank),
                         .kept = index_names(0, split),
                         .reduced = of_column,
                         .count = product_of(y.shape, split, rank),
                         .weight = read(inputs[weight]->name, of_column),
                         .bias = read(inputs[bias]->name, of_column)};
      for (const double eps : possible_eps(subject)) {
        norm.eps = eps;
        if (!subject.is(normalising_statements(norm))) continue;
        return LayerNorm{.x = norm.x,
                         .weight = inputs[weight]->name,
                         .bias = inputs[bias]->name,
                         .y = y.name,
                         .rows = product_of(y.shape, 0, split),
                         .columns = norm.count,
                         .eps = eps};
      }
    }
  }
  return std::nullopt;
}

std::optional<BatchNorm> find_batch_norm(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  const auto& inputs = subject.inputs();
  const std::size_t rank = y.shape.size();
  if (!subject.is_all(DType::f32) || rank < 3 || !subject.calls("sqrt") ||
      (inputs.size() != 1 && inputs.size() != 3) || inputs[0]->shape != y.shape) {
    return std::nullopt;
  }
  BatchNorm batch{.x = inputs[0]->name,
                  .y = y.name,
                  .batch = y.shape[0],
                  .channels = y.shape[1],
                  .inner = product_of(y.shape, 2, rank)};
  for (const bool of_instances : {false, true}) {
    // A weight for each channel is not one for each instance, which the library would want.
    if (of_instances && inputs.size() == 3) continue;
    batch.of_instances = of_instances;
    for (std::size_t weight = 1; weight <= (inputs.size() == 3 ? 2 : 1); ++weight) {
      Normalisation norm{.x = batch.x,
                         .y = y.name,
                         .all = index_names(0, rank),
                         .kept = of_instances ? "i0, i1" : "i1",
                         .reduced = (of_instances ? "" : "i0, ") + index_names(2, rank),
                         .count = (of_instances ? 1 : batch.batch) * batch.inner};
      if (inputs.size() == 3) {
        batch.weight = inputs[weight]->name;
        batch.bias = inputs[3 - weight]->name;
        norm.weight = read(batch.weight, "i1");
        norm.bias = read(batch.bias, "i1");
      }
      for (const double eps : possible_eps(subject)) {
        batch.eps = norm.eps = eps;
        if (subject.is(normalising_statements(norm))) return batch;
      }
    }
  }
  return std::nullopt;
}

std::optional<Reduction> find_reduction(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  if (!subject.is_all(DType::f32) || subject.inputs().size() != 1) return std::nullopt;
  const Tensor& x = *subject.inputs().front();
  const std::size_t rank = x.shape.size();
  if (y.shape.size() >= rank) return std::nullopt;
  const std::size_t reduced = rank - y.shape.size();
  for (std::size_t first = 0; first + reduced <= rank; ++first) {
    const std::string body =
        "(" + index_names(first, first + reduced) + ") " + read(x.name, index_names(0, rank));
    std::string kept = index_names(0, first);
    if (!kept.empty() && first + reduced < rank) kept += ", ";
    kept += index_names(first + reduced, rank);
    const std::string left = kept.empty() ? y.name : read(y.name, kept);
    Reduction reduction{.x = x.name,
                        .y = y.name,
                        .outer = product_of(x.shape, 0, first),
                        .length = product_of(x.shape, first, first + reduced),
                        .inner = product_of(x.shape, first + reduced, rank)};
    for (const auto& [kind, name] :
         {std::pair{Reduction::Kind::sum, "sum"}, std::pair{Reduction::Kind::max, "max"},
          std::pair{Reduction::Kind::min, "min"}}) {
      reduction.kind = kind;
      reduction.scale = subject.coefficient().value_or(1);
      if (kind != Reduction::Kind::sum && reduction.scale != 1) continue;
      if (subject.is({left + " = " + number(reduction.scale) + " * (" + name + body + ")"})) {
        return reduction;
      }
    }
  }
  return std::nullopt;
}

std::optional<Activation> find_activation(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  if (!subject.is_all(DType::f32) || subject.inputs().size() != 1 || y.shape.empty() ||
      subject.inputs().front()->shape != y.shape) {
    return std::nullopt;
  }
  const std::string all = index_names(0, y.shape.size());
  Activation activation{.x = subject.inputs().front()->name,
                        .y = y.name,
                        .elements = product_of(y.shape, 0, y.shape.size())};
  const std::string x = read(activation.x, all);
  using Kind = Activation::Kind;
  std::vector<std::tuple<Kind, double, std::string>> forms = {
      {Kind::relu, 0, "maximum(" + x + ", 0)"},
      {Kind::sigmoid, 0, "1 / (1 + exp(-" + x + "))"},
      {Kind::tanh, 0, "tanh(" + x + ")"},
      {Kind::swish, 0, x + " / (1 + exp(-" + x + "))"}};
  for (double alpha : subject.reals()) {
    if (!subject.calls("expm1")) break;
    forms.emplace_back(Kind::elu, alpha,
                       "where(" + x + " > 0, " + x + ", " + number(alpha) + " * expm1(" + x + "))");
  }
  for (const auto& [kind, alpha, form] : forms) {
    if (!subject.is({read(y.name, all) + " = " + form})) continue;
    activation.kind = kind;
    activation.alpha = alpha;
    return activation;
  }
  return std::nullopt;
}

}  // namespace rekernel
