#include "tests/reference/plain_library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/gemm_call.h"

namespace rekernel {

namespace {

using Values = std::vector<double>;

std::int64_t product_of(const Extents& extents) {
  std::int64_t product = 1;
  for (std::int64_t extent : extents) product *= extent;
  return product;
}

/// Calls with every place within the extents.
template <class Visit>
void for_each_place(const Extents& extents, const Visit& visit) {
  Extents place(extents.size(), 0);
  for (std::int64_t i = 0; i < product_of(extents); ++i) {
    visit(place);
    for (std::size_t t = extents.size(); t-- > 0 && ++place[t] == extents[t];) place[t] = 0;
  }
}

/// Where a place is in a packed tensor; none outside.
std::optional<std::size_t> element(const Extents& extents, const Extents& place) {
  std::int64_t at = 0;
  for (std::size_t t = 0; t < extents.size(); ++t) {
    if (place[t] < 0 || place[t] >= extents[t]) return std::nullopt;
    at = at * extents[t] + place[t];
  }
  return static_cast<std::size_t>(at);
}

struct PlainLibrary {
  const HostInputs& inputs;

  const Values& input(const std::string& name) const { return inputs.at(name); }

  Values operator()(const MatrixProduct& product) const {
    const GemmCall call = gemm_call(product);
    if (const auto vector = gemv_call(call); vector && product.type == DType::f32)
      return multiplied(*vector);
    Values result(static_cast<std::size_t>(call.batch * call.m * call.n),
                  std::numeric_limits<double>::quiet_NaN());
    const auto at = [](const GemmCall::Matrix& matrix, std::int64_t batch, std::int64_t row,
                       std::int64_t column) {
      if (matrix.transposed) std::swap(row, column);
      return static_cast<std::size_t>(batch * matrix.batch_stride + column * matrix.leading + row);
    };
    for_each_place({call.batch, call.m, call.n}, [&](const Extents& place) {
      double sum = 0;
      for (std::int64_t k = 0; k < call.k; ++k) {
        sum += input(call.first.tensor).at(at(call.first, place[0], place[1], k)) *
               input(call.second.tensor).at(at(call.second, place[0], k, place[2]));
      }
      sum *= call.scale;
      if (!call.first_scale.empty()) {
        sum *= input(call.first_scale).at(static_cast<std::size_t>(place[1])) *
               input(call.second_scale).at(static_cast<std::size_t>(place[2]));
      }
      EXPECT_FALSE(call.result.transposed);
      result.at(at(call.result, place[0], place[1], place[2])) = sum;
    });
    return result;
  }

  Values multiplied(const GemvCall& call) const {
    const std::int64_t outputs = call.transposed ? call.columns : call.rows;
    const std::int64_t terms = call.transposed ? call.rows : call.columns;
    Values result(static_cast<std::size_t>((outputs - 1) * call.result_step + 1));
    for (std::int64_t i = 0; i < outputs; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < terms; ++k) {
        const std::int64_t at = call.transposed ? i * call.leading + k : k * call.leading + i;
        sum += input(call.matrix).at(static_cast<std::size_t>(at)) *
               input(call.vector).at(static_cast<std::size_t>(k * call.vector_step));
      }
      result.at(static_cast<std::size_t>(i * call.result_step)) = call.scale * sum;
    }
    return result;
  }

  Values operator()(const Convolution& conv) const {
    const Extents x = conv.x_extents(), w = conv.weight_extents(), y = conv.convolved_extents();
    Values result(static_cast<std::size_t>(product_of(y)), 0.0);
    // Of a transposed one, x and y change places: each element of x goes to many of y.
    const std::int64_t many = conv.transposed ? conv.channels : conv.filters;
    const Extents& small = conv.transposed ? x : y;
    const std::int64_t inner = w[1], group = many / conv.groups;
    for_each_place(small, [&](const Extents& place) {
      for_each_place(Extents(w.begin() + 1, w.end()), [&](const Extents& tap) {
        Extents other = {place[0], place[1] / group * inner + tap[0]};
        Extents of_weight = {place[1]};
        of_weight.insert(of_weight.end(), tap.begin(), tap.end());
        for (std::size_t t = 0; t < conv.in.size(); ++t) {
          other.push_back(place[t + 2] * conv.windows.stride[t] + tap[t + 1] * conv.dilation[t] -
                          conv.windows.padding[t]);
        }
        const auto from = element(x, conv.transposed ? place : other);
        const auto to = element(y, conv.transposed ? other : place);
        if (!from || !to) return;
        result[*to] += input(conv.x).at(*from) * input(conv.weight).at(*element(w, of_weight));
      });
    });
    const std::size_t image = static_cast<std::size_t>(product_of(conv.out));
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::size_t filter = i / image % static_cast<std::size_t>(conv.filters);
      if (!conv.bias.empty()) result[i] += input(conv.bias).at(filter);
      if (conv.relu) result[i] = std::max(result[i], 0.0);
    }
    return conv.pooling ? pooled(*conv.pooling, result) : result;
  }

  Values operator()(const Pooling& pooling) const { return pooled(pooling, input(pooling.x)); }

  static Values pooled(const Pooling& pooling, const Values& x) {
    Extents from = {pooling.batch, pooling.channels}, to = from;
    from.insert(from.end(), pooling.in.begin(), pooling.in.end());
    to.insert(to.end(), pooling.out.begin(), pooling.out.end());
    Values result;
    for_each_place(to, [&](const Extents& place) {
      double largest = -std::numeric_limits<double>::infinity(), sum = 0;
      for_each_place(pooling.windows.window, [&](const Extents& tap) {
        Extents at = {place[0], place[1]};
        for (std::size_t t = 0; t < tap.size(); ++t) {
          at.push_back(place[t + 2] * pooling.windows.stride[t] + tap[t] -
                       pooling.windows.padding[t]);
        }
        const auto found = element(from, at);
        if (!found) return;
        largest = std::max(largest, x.at(*found));
        sum += x.at(*found);
      });
      const auto count = static_cast<double>(product_of(pooling.windows.window));
      result.push_back(pooling.average ? sum / count : largest);
    });
    return result;
  }

  Values operator()(const Softmax& softmax) const {
    const auto columns = static_cast<std::size_t>(softmax.columns);
    const bool backward = softmax.kind == Softmax::Kind::backward;
    const Values& x = input(softmax.x);
    Values result;
    for (std::size_t row = 0; row < x.size(); row += columns) {
      double total = 0;
      for (std::size_t j = row; j < row + columns; ++j) {
        total += backward ? x.at(j) * input(softmax.y).at(j) : std::exp(x.at(j));
      }
      for (std::size_t j = row; j < row + columns; ++j) {
        if (backward) result.push_back(input(softmax.y).at(j) * (x.at(j) - total));
        if (softmax.kind == Softmax::Kind::plain) result.push_back(std::exp(x.at(j)) / total);
        if (softmax.kind == Softmax::Kind::logarithm) result.push_back(x.at(j) - std::log(total));
      }
    }
    EXPECT_EQ(result.size(), static_cast<std::size_t>(softmax.rows * softmax.columns));
    return result;
  }

  Values operator()(const LayerNorm& norm) const {
    const auto columns = static_cast<std::size_t>(norm.columns);
    const Values& x = input(norm.x);
    Values result;
    for (std::size_t row = 0; row < static_cast<std::size_t>(norm.rows); ++row) {
      std::vector<std::size_t> places;
      for (std::size_t j = 0; j < columns; ++j) places.push_back(row * columns + j);
      const auto [mean, deviation] = statistics(x, places, norm.eps);
      for (std::size_t j = 0; j < columns; ++j) {
        result.push_back((x.at(places[j]) - mean) / deviation * input(norm.weight).at(j) +
                         input(norm.bias).at(j));
      }
    }
    return result;
  }

  Values operator()(const BatchNorm& norm) const {
    const Values& x = input(norm.x);
    Values result(x.size());
    const std::int64_t outer = norm.of_instances ? 1 : norm.batch;
    const std::int64_t channels = norm.of_instances ? norm.batch * norm.channels : norm.channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      std::vector<std::size_t> places;
      for_each_place({outer, norm.inner}, [&](const Extents& at) {
        places.push_back(static_cast<std::size_t>((at[0] * channels + c) * norm.inner + at[1]));
      });
      const auto [mean, deviation] = statistics(x, places, norm.eps);
      const auto own = static_cast<std::size_t>(c % norm.channels);
      for (std::size_t place : places) {
        const double normed = (x.at(place) - mean) / deviation;
        result.at(place) = norm.weight.empty()
                               ? normed
                               : normed * input(norm.weight).at(own) + input(norm.bias).at(own);
      }
    }
    return result;
  }

  static std::pair<double, double> statistics(const Values& x,
                                              const std::vector<std::size_t>& places, double eps) {
    double mean = 0, variance = 0;
    const auto count = static_cast<double>(places.size());
    for (std::size_t place : places) mean += x.at(place) / count;
    for (std::size_t place : places)
      variance += (x.at(place) - mean) * (x.at(place) - mean) / count;
    return {mean, std::sqrt(variance + eps)};
  }

  Values operator()(const Reduction& reduction) const {
    Values result;
    for_each_place({reduction.outer, reduction.inner}, [&](const Extents& at) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity(), smallest = -largest;
      for (std::int64_t i = 0; i < reduction.length; ++i) {
        const double value = input(reduction.x)
                                 .at(static_cast<std::size_t>(
                                     (at[0] * reduction.length + i) * reduction.inner + at[1]));
        sum += value;
        largest = std::max(largest, value);
        smallest = std::min(smallest, value);
      }
      result.push_back(reduction.kind == Reduction::Kind::sum   ? sum * reduction.scale
                       : reduction.kind == Reduction::Kind::max ? largest
                                                                : smallest);
    });
    return result;
  }

  Values operator()(const Activation& activation) const {
    Values result;
    for (double x : input(activation.x)) {
      switch (activation.kind) {
        case Activation::Kind::relu:
          result.push_back(std::max(x, 0.0));
          break;
        case Activation::Kind::sigmoid:
          result.push_back(1 / (1 + std::exp(-x)));
          break;
        case Activation::Kind::tanh:
          result.push_back(std::tanh(x));
          break;
        case Activation::Kind::elu:
          result.push_back(x > 0 ? x : activation.alpha * std::expm1(x));
          break;
        case Activation::Kind::swish:
          result.push_back(x / (1 + std::exp(-x)));
          break;
      }
    }
    EXPECT_EQ(result.size(), static_cast<std::size_t>(activation.elements));
    return result;
  }

  Values operator()(const Attention& attention) const {
    const Extents of_q = {attention.batch, attention.heads, attention.queries, attention.head_dim};
    const Extents of_k = {attention.batch, attention.key_heads, attention.keys, attention.head_dim};
    const auto at = [&](const std::string& name, const Extents& extents, const Extents& place) {
      return input(name).at(*element(extents, place));
    };
    Values result;
    for_each_place(of_q, [&](const Extents& place) {
      const std::int64_t head = place[1] / (attention.heads / attention.key_heads);
      double total = 0, sum = 0;
      for (std::int64_t j = 0; j < attention.keys; ++j) {
        if (attention.causal && j > place[2]) continue;
        if (attention.window > 0 && j <= place[2] - attention.window) continue;
        if (!attention.lengths.empty() && j >= input(attention.lengths).at(place[0])) continue;
        double score = 0;
        for (std::int64_t d = 0; d < attention.head_dim; ++d) {
          score += at(attention.q, of_q, {place[0], place[1], place[2], d}) *
                   at(attention.k, of_k, {place[0], head, j, d});
        }
        const double weight = std::exp(attention.scale * score);
        total += weight;
        sum += weight * at(attention.v, of_k, {place[0], head, j, place[3]});
      }
      result.push_back(sum / total);
    });
    return result;
  }
};

}  // namespace

std::vector<double> plain_library(const LibraryShape& shape, const HostInputs& inputs) {
  return std::visit(PlainLibrary{inputs}, shape);
}

}  // namespace rekernel
