#include <array>
#include <set>

#include "reference/recognition.h"

namespace rekernel {

namespace {

/// How a definition may write queries and keys.
struct Notation {
  std::string row;           ///< the query's index with a comma; empty where there is one query
  std::string key, keys;     ///< the index that runs over the keys, and its end
  std::string place_of_key;  ///< the last two indices of a key
  std::string seen;          ///< which keys a query sees; empty: all
};

struct Guess {
  Attention attention;
  Notation notation;
};

/// What a query does not see is left out of the sums, or its weights are zeros.
std::vector<std::string> attention_statements(const Guess& guess, bool zeros_weights) {
  const auto& [attention, notation] = guess;
  const auto& [row, j, keys, place_of_key, seen] = notation;
  const std::string head = attention.heads == attention.key_heads
                               ? "h"
                               : "h // " + std::to_string(attention.heads / attention.key_heads);
  const std::string where = seen.empty() ? "" : " : " + seen;
  const std::string of_sums = zeros_weights ? "" : where;
  const auto key = [&, &place = place_of_key](const std::string& tensor) {
    return tensor + "[b, " + head + ", " + place + "]";
  };
  const std::string rows = row.empty() ? "" : "i < " + std::to_string(attention.queries) + ", ";
  const std::string at_row = row.empty() ? "[b, h]" : "[b, h, i]";
  const std::string at_key = "[b, h, " + row + j + "]";
  const std::string weight = "exp(scores_guess" + at_key + " - largest_guess" + at_row + ")";
  return {"scores_guess[b < " + std::to_string(attention.batch) + ", h < " +
              std::to_string(attention.heads) + ", " + rows + j + " < " + keys +
              "] = " + number(attention.scale) + " * (sum(d) " + attention.q + "[b, h, " + row +
              "d] * " + key(attention.k) + ")",
          "largest_guess" + at_row + " = max(" + j + where + ") scores_guess" + at_key,
          "weights_guess" + at_key + " = " +
              (zeros_weights ? "where(" + seen + ", " + weight + ", 0)" : weight),
          "total_guess" + at_row + " = sum(" + j + of_sums + ") weights_guess" + at_key,
          attention.o + "[b, h, " + row + "d] = (sum(" + j + of_sums + ") weights_guess" + at_key +
              " * " + key(attention.v) + ") / total_guess" + at_row};
}

/// Sizes that the definition has anywhere: one of them is a window's.
std::set<std::int64_t> sizes_of(const definition::Definition& definition) {
  std::set<std::int64_t> sizes;
  for (const definition::TensorInfo& tensor : definition.tensors()) {
    sizes.insert(tensor.extents.begin(), tensor.extents.end());
  }
  for (const auto& [name, size] : definition.axes()) sizes.insert(size);
  return sizes;
}

/// Every mask that cuDNN has, in the ways in which definitions write it.
std::vector<Guess> with_masks(const RecognisedProblem& subject, Attention attention) {
  const bool has_rows = subject.output().shape.size() == 4;
  const Notation plain = {has_rows ? "i, " : "", "j", std::to_string(attention.keys), "j, d", ""};
  std::vector<Guess> guesses;
  const auto add = [&](Notation notation, const std::string& seen) {
    notation.seen = seen;
    guesses.push_back({attention, std::move(notation)});
  };
  if (!attention.lengths.empty()) {
    add(plain, "j < " + attention.lengths + "[b]");
    return guesses;
  }
  add(plain, "");
  if (!has_rows) return guesses;
  attention.causal = true;
  add(plain, "j <= i");
  for (const std::int64_t window : sizes_of(subject.definition())) {
    attention.window = window < attention.keys ? window : 0;
    const std::string size = std::to_string(window);
    // Keys by their place, or by how far they lie in front of the query.
    add(plain, "j <= i and j > i - " + size);
    add({plain.row, "r", size, "i - r, d else 0", ""}, "r <= i");
  }
  return guesses;
}

}  // namespace

std::optional<Attention> find_attention(const RecognisedProblem& subject) {
  const Tensor& o = subject.output();
  // cuDNN's engines take types of 16 bits alone.
  if ((o.dtype != DType::f16 && o.dtype != DType::bf16) ||
      (o.shape.size() != 3 && o.shape.size() != 4) || !subject.calls("exp")) {
    return std::nullopt;
  }
  std::vector<const Tensor*> inputs, others;
  for (const Tensor* input : subject.inputs()) {
    (input->dtype == o.dtype ? inputs : others).push_back(input);
  }
  const bool has_lengths = others.size() == 1 && others[0]->dtype == DType::i32 &&
                           others[0]->shape == Extents{o.shape[0]};
  if (inputs.size() != 3 || (!others.empty() && !has_lengths)) return std::nullopt;
  for (const auto [q, k, v] : {std::array{0, 1, 2}, std::array{0, 2, 1}, std::array{1, 0, 2},
                               std::array{1, 2, 0}, std::array{2, 0, 1}, std::array{2, 1, 0}}) {
    const auto &of_q = inputs[q]->shape, &of_k = inputs[k]->shape;
    if (of_q != o.shape || of_k != inputs[v]->shape || of_k.size() != 4 || of_k[0] != of_q[0] ||
        of_k[3] != of_q.back() || of_q[1] % of_k[1] != 0) {
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
                        .queries = of_q.size() == 4 ? of_q[2] : 1,
                        .keys = of_k[2],
                        .head_dim = of_q.back(),
                        .lengths = has_lengths ? others[0]->name : ""};
    std::vector<double> scales = subject.reals();
    scales.push_back(1);
    for (const double scale : scales) {
      attention.scale = scale;
      for (const Guess& guess : with_masks(subject, attention)) {
        if (subject.is(attention_statements(guess, false)) ||
            (!guess.notation.seen.empty() && subject.is(attention_statements(guess, true)))) {
          return guess.attention;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace rekernel
