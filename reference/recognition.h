#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/definition/definition.h"
#include "ops/problem.h"
#include "reference/shapes.h"

namespace rekernel {

/// A problem with one output, of which guesses are made and compared with its definition.
class RecognisedProblem {
 public:
  /// None of a problem without a definition, or with several outputs, and where the definition has
  /// no form that can be compared.
  static std::optional<RecognisedProblem> of(const Problem& problem);

  const Tensor& output() const { return *output_; }
  const std::vector<const Tensor*>& inputs() const { return inputs_; }
  const Tensor* input(const std::string& name) const;
  /// Whether all inputs and the output have this type.
  bool is_all(DType type) const;
  bool calls(const char* function) const;
  const definition::Definition& definition() const { return *definition_; }

  /// Whether these statements, of numbers and of the problem's tensors, define the same output.
  bool is(const std::vector<std::string>& statements) const;
  /// What the whole output is multiplied by, where it is a product.
  std::optional<double> coefficient() const;
  /// Constants and numbers in statements, each once: what a parameter may be.
  std::vector<double> reals() const;

 private:
  const definition::Definition* definition_ = nullptr;
  const Tensor* output_ = nullptr;
  std::vector<const Tensor*> inputs_;
  std::string form_;
  std::optional<double> coefficient_;
};

/// Names of indices for guesses: "i0, i1" from `first` up to `end`.
std::string index_names(std::size_t first, std::size_t end, const char* prefix = "i");
/// A number as statements take it.
std::string number(double value);
std::int64_t product_of(const std::vector<std::int64_t>& extents, std::size_t first,
                        std::size_t end);

std::optional<MatrixProduct> find_matrix_product(const RecognisedProblem& subject);
std::optional<Convolution> find_convolution(const RecognisedProblem& subject);
std::optional<Pooling> find_pooling(const RecognisedProblem& subject);
std::optional<Softmax> find_softmax(const RecognisedProblem& subject);
std::optional<LayerNorm> find_layer_norm(const RecognisedProblem& subject);
std::optional<BatchNorm> find_batch_norm(const RecognisedProblem& subject);
std::optional<Reduction> find_reduction(const RecognisedProblem& subject);
std::optional<Activation> find_activation(const RecognisedProblem& subject);
std::optional<Attention> find_attention(const RecognisedProblem& subject);

}  // namespace rekernel
