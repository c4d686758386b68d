#include <array>

#include "reference/recognition.h"

namespace rekernel {

namespace {

std::vector<std::string> attention_statements(const Attention& attention) {
  const std::string head = attention.heads == attention.key_heads
                               ? "h"
                               : "h // " + std::to_string(attention.heads / attention.key_heads);
  const std::string seen = attention.causal ? " : j <= i" : "";
  const auto key = [&](const std::string& tensor) { return tensor + "[b, " + head + ", j, d]"; };
  const std::string keys = "j < " + std::to_string(attention.keys);
  return {"scores_guess[b < " + std::to_string(attention.batch) + ", h < " +
              std::to_string(attention.heads) + ", i < " + std::to_string(attention.queries) +
              ", " + keys + "] = " + number(attention.scale) + " * (sum(d) " + attention.q +
              "[b, h, i, d] * " + key(attention.k) + ")",
          "largest_guess[b, h, i] = max(j" + seen + ") scores_guess[b, h, i, j]",
          "weights_guess[b, h, i, j] = exp(scores_guess[b, h, i, j] - largest_guess[b, h, i])",
          "total_guess[b, h, i] = sum(j" + seen + ") weights_guess[b, h, i, j]",
          attention.o + "[b, h, i, d] = (sum(j" + seen + ") weights_guess[b, h, i, j] * " +
              key(attention.v) + ") / total_guess[b, h, i]"};
}

}  // namespace

std::optional<Attention> find_attention(const RecognisedProblem& subject) {
  const Tensor& o = subject.output();
  const auto& inputs = subject.inputs();
  // cuDNN's engines take types of 16 bits alone.
  if ((o.dtype != DType::f16 && o.dtype != DType::bf16) || !subject.is_all(o.dtype) ||
      inputs.size() != 3 || o.shape.size() != 4 || !subject.calls("exp")) {
    return std::nullopt;
  }
  for (const auto [q, k, v] : {std::array{0, 1, 2}, std::array{0, 2, 1}, std::array{1, 0, 2},
                               std::array{1, 2, 0}, std::array{2, 0, 1}, std::array{2, 1, 0}}) {
    const auto &of_q = inputs[q]->shape, &of_k = inputs[k]->shape;
    if (of_q != o.shape || of_k != inputs[v]->shape || of_k.size() != 4 || of_k[0] != of_q[0] ||
        of_k[3] != of_q[3] || of_q[1] % of_k[1] != 0) {
      continue;
    }
    Attention attention{.type = o.dtype,
                        .q = inputs[q]->name,
                        .k = inputs[k]->name,
                        .v = inputs[v]->name,
                        .o = o.name,
                        .batch = of_q[0],
                        .heads = of_q[1],
                        .key_heads = of_k[1],
                        .queries = of_q[2],
                        .keys = of_k[2],
                        .head_dim = of_q[3]};
    std::vector<double> scales = subject.reals();
    scales.push_back(1);
    for (const double scale : scales) {
      attention.scale = scale;
      for (const bool causal : {false, true}) {
        attention.causal = causal;
        if (subject.is(attention_statements(attention))) return attention;
      }
    }
  }
  return std::nullopt;
}

}  // namespace rekernel
