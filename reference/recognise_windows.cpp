#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/window_axes.h"

namespace rekernel {

namespace {

using definition::CheckedStatement;
using definition::Expression;
using definition::Index;
using definition::Operator;

Extents inner_extents(const std::vector<std::int64_t>& extents) {
  return {extents.begin() + 2, extents.end()};
}

bool covers(const Extents& in, const Extents& out, const Windows& windows) {
  for (std::size_t t = 0; t < in.size(); ++t) {
    const std::int64_t room = in[t] + 2 * windows.padding[t] - windows.window[t];
    if (room < 0 || out[t] != room / windows.stride[t] + 1) return false;
    if (windows.padding[t] >= windows.window[t]) return false;
  }
  return true;
}

/// Whether a convolution of this shape has outputs of this size (transposed, the reverse).
bool fits(const Convolution& conv) {
  const Extents &from = conv.transposed ? conv.out : conv.in,
                &to = conv.transposed ? conv.in : conv.out;
  for (std::size_t t = 0; t < from.size(); ++t) {
    const std::int64_t reach = conv.dilation[t] * (conv.windows.window[t] - 1) + 1;
    const std::int64_t room = from[t] + 2 * conv.windows.padding[t] - reach;
    if (room < 0 || to[t] != room / conv.windows.stride[t] + 1) return false;
  }
  return true;
}

/// The first reduction by one of these reducers in a statement.
const Expression* first_reduction(const CheckedStatement& checked, std::string_view reducer) {
  const Expression* found = nullptr;
  definition::for_each(checked.statement.right, [&](const Expression& e) {
    if (!found && e.op == Operator::reduction && e.name == reducer) found = &e;
  });
  return found;
}

const Expression* first_read(const Expression& within) {
  const Expression* found = nullptr;
  definition::for_each(within, [&](const Expression& e) {
    if (!found && e.op == Operator::read) found = &e;
  });
  return found;
}

/// Where a convolution may be: the sum and the read of its images.
struct Place {
  const CheckedStatement* statement;
  const Expression *sum, *x, *weight;
};

/// The guess that a place makes, and the statement that it means.
struct Guess {
  Convolution convolution;
  std::vector<WindowAxis> axes;
  std::string sum;  ///< of an element "i0, i1, …"
};

/// How channels are named: "c" of all of them; the output's own, "i1"; or those of its group.
struct Channels {
  std::string of_x, of_weight, range;
};
Channels channels_of(const Convolution& conv) {
  const std::string count = std::to_string(conv.channels / conv.groups);
  const std::string filters = std::to_string(conv.filters / conv.groups);
  const std::string range = "c < " + count;
  if (conv.groups == 1) return {"c", conv.transposed ? "c, i1" : "i1, c", range};
  const std::string own = "i1 // " + filters + " * " + count + " + c";
  return {own, conv.transposed ? own + ", i1 % " + filters : "i1, c", range};
}

std::optional<Guess> guess_at(const RecognisedProblem& subject, const Place& place) {
  const Tensor* x = subject.input(place.x->name);
  const Tensor* weight = subject.input(place.weight->name);
  const auto axes = axes_of(subject, *place.statement, *place.x, *place.sum);
  if (!x || !weight || !axes) return std::nullopt;
  Guess guess{.axes = *axes};
  Convolution& conv = guess.convolution;
  conv.transposed =
      std::any_of(axes->begin(), axes->end(), [](const WindowAxis& a) { return a.transposed; });
  for (WindowAxis& axis : guess.axes) {
    if (conv.transposed && !axis.transposed && axis.stride != 1) return std::nullopt;
    axis.transposed = conv.transposed;
    conv.dilation.push_back(axis.dilation);
  }
  conv.type = x->dtype;
  conv.x = x->name;
  conv.weight = weight->name;
  conv.batch = x->shape[0];
  conv.channels = x->shape[1];
  conv.filters = place.statement->statement.indices[1].extent;
  conv.in = inner_extents(x->shape);
  for (std::size_t t = 2; t < x->shape.size(); ++t) {
    conv.out.push_back(place.statement->statement.indices[t].extent);
  }
  conv.windows = windows_of(guess.axes);

  const Expression& channel = place.x->operands[1];
  const bool own =
      channel.op == Operator::name && channel.name == place.statement->statement.indices[1].name;
  Channels channels;
  if (own) {  // one channel a group: the weight has no extent for it
    if (conv.filters != conv.channels) return std::nullopt;
    conv.groups = conv.channels;
    channels = {"i1", "i1", ""};
  } else {
    // The index over a group's channels is the one that is no window's.
    for (const Index& index : place.sum->indices) {
      if (!definition::mentions(channel, index.name)) continue;
      if (conv.channels % index.extent != 0) return std::nullopt;
      conv.groups = conv.channels / index.extent;
    }
    if (conv.filters % conv.groups != 0) return std::nullopt;
    channels = channels_of(conv);
  }
  if (place.statement->statement.indices[0].extent != conv.batch || !fits(conv) ||
      weight->elements() != product_of(conv.weight_extents(), 0, x->shape.size())) {
    return std::nullopt;
  }
  const std::string when = conv.transposed ? " : " + condition(guess.axes) : "";
  guess.sum = "(sum(" + window_ranges(guess.axes, channels.range) + when + ") " + conv.x + "[i0, " +
              channels.of_x + ", " + places(guess.axes) + " else 0] * " + conv.weight + "[" +
              channels.of_weight + window_indices(guess.axes) + "])";
  return guess;
}

std::vector<Place> places_of(const RecognisedProblem& subject) {
  std::vector<Place> found;
  for (const CheckedStatement& checked : subject.definition().statements()) {
    const Expression* sum = first_reduction(checked, "sum");
    if (!sum || sum->operands[0].op != Operator::multiply) continue;
    const Expression &a = sum->operands[0].operands[0], &b = sum->operands[0].operands[1];
    if (a.op != Operator::read || b.op != Operator::read) continue;
    found.push_back({&checked, sum, &a, &b});
    found.push_back({&checked, sum, &b, &a});
  }
  return found;
}

/// Pooling by the maximum of what a convolution gave.
std::optional<Pooling> guess_pooling(const RecognisedProblem& subject, const Guess& guess) {
  const CheckedStatement& last = subject.definition().statements().back();
  const Expression* largest = first_reduction(last, "max");
  const Expression* read = largest ? first_read(largest->operands[0]) : nullptr;
  const auto axes = read ? axes_of(subject, last, *read, *largest) : std::nullopt;
  if (!axes) return std::nullopt;
  const Convolution& conv = guess.convolution;
  const Tensor& y = subject.output();
  Pooling pooling{.type = conv.type,
                  .y = y.name,
                  .batch = conv.batch,
                  .channels = conv.filters,
                  .in = conv.out,
                  .out = inner_extents(y.shape),
                  .windows = windows_of(*axes)};
  if (pooling.in.size() != pooling.out.size() ||
      !covers(pooling.in, pooling.out, pooling.windows) ||
      std::any_of(axes->begin(), axes->end(), [](const WindowAxis& axis) {
        return axis.transposed || axis.dilation != 1 || axis.padding != 0;
      })) {
    return std::nullopt;
  }
  const std::string at = "[i0, i1, " + index_names(2, y.shape.size()) + "]";
  std::string convolved = "convolved_guess[i0, i1";
  for (std::size_t t = 0; t < conv.out.size(); ++t) {
    convolved += ", i" + std::to_string(t + 2) + " < " + std::to_string(conv.out[t]);
  }
  const std::string bias = conv.bias.empty() ? "" : " + " + conv.bias + "[i1]";
  const std::string element = "convolved_guess[i0, i1, " + places(*axes) + "]";
  if (!subject.is({convolved + "] = " + guess.sum + bias,
                   y.name + at + " = max(" + window_ranges(*axes) + ") " +
                       (conv.relu ? "maximum(" + element + ", 0)" : element)})) {
    return std::nullopt;
  }
  return pooling;
}

}  // namespace

std::optional<Convolution> find_convolution(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  if (!subject.is_all(DType::f32) || subject.inputs().size() > 3) return std::nullopt;
  for (const Place& place : places_of(subject)) {
    std::optional<Guess> guess = guess_at(subject, place);
    if (!guess) continue;
    Convolution& conv = guess->convolution;
    conv.y = y.name;
    for (const Tensor* other : subject.inputs()) {
      if (other->name == conv.x || other->name == conv.weight) continue;
      if (other->shape != Extents{conv.filters}) return std::nullopt;
      conv.bias = other->name;
    }
    std::string element = guess->sum;
    if (!conv.bias.empty()) element += " + " + conv.bias + "[i1]";
    const std::string left = y.name + "[" + index_names(0, y.shape.size()) + "] = ";
    for (const bool relu : {false, true}) {
      conv.relu = relu;
      if (subject.is({left + (relu ? "maximum(" + element + ", 0)" : element)})) return conv;
      conv.pooling = guess_pooling(subject, *guess);
      if (conv.pooling) return conv;
    }
  }
  return std::nullopt;
}

std::optional<Pooling> find_pooling(const RecognisedProblem& subject) {
  const Tensor& y = subject.output();
  if (!subject.is_all(DType::f32) || subject.inputs().size() != 1 || y.shape.size() < 3) {
    return std::nullopt;
  }
  const Tensor& x = *subject.inputs().front();
  const CheckedStatement& last = subject.definition().statements().back();
  for (const bool average : {false, true}) {
    const Expression* reduction = first_reduction(last, average ? "sum" : "max");
    const Expression* read = reduction ? first_read(reduction->operands[0]) : nullptr;
    if (!read || read->name != x.name) continue;
    const auto axes = axes_of(subject, last, *read, *reduction);
    if (!axes || x.shape.size() != y.shape.size()) continue;
    Pooling pooling{.type = x.dtype,
                    .x = x.name,
                    .y = y.name,
                    .average = average,
                    .batch = x.shape[0],
                    .channels = x.shape[1],
                    .in = inner_extents(x.shape),
                    .out = inner_extents(y.shape),
                    .windows = windows_of(*axes)};
    if (y.shape[0] != x.shape[0] || y.shape[1] != x.shape[1] ||
        !covers(pooling.in, pooling.out, pooling.windows) ||
        std::any_of(axes->begin(), axes->end(),
                    [](const WindowAxis& axis) { return axis.transposed || axis.dilation != 1; })) {
      continue;
    }
    const std::int64_t count = product_of(pooling.windows.window, 0, pooling.windows.window.size());
    const std::string terms =
        "(" + window_ranges(*axes) + ") " + x.name + "[i0, i1, " + places(*axes) + " else ";
    const std::string left = y.name + "[" + index_names(0, y.shape.size()) + "] = ";
    const std::string form =
        average ? "(sum" + terms + "0]) / " + std::to_string(count) : "max" + terms + "-infinity]";
    if (subject.is({left + form})) return pooling;
  }
  return std::nullopt;
}

}  // namespace rekernel
