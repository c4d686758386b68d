#include "harness/audit/blinding.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

namespace rekernel {

namespace {

constexpr std::size_t words_seen = 40;

// 64-bit figures are two words, the low one first; the rest are one. In the order of
// observed_features().
constexpr const char* source = R"cuda(
#include "problem.h"

using Word = unsigned;
using Long = unsigned long long;

__device__ Long launches;
__device__ Long last_end;
__device__ Long first_start;
__device__ Long previous_gap;

__device__ __forceinline__ Long nanoseconds() {
  Long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ __forceinline__ Long cycles() {
  Long now;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(now));
  return now;
}

__device__ __forceinline__ Word load(const Word* at) {
  Word value;
  asm volatile("ld.global.cv.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

// How long an access takes that nothing of this run made before. The store waits for the value.
__device__ __forceinline__ Word latency(const Word* at, volatile Word* kept) {
  const Long start = cycles();
  *kept = load(at);
  return static_cast<Word>(cycles() - start);
}

// Code that is run once, and long, so that fetching it takes a while.
__device__ __noinline__ float long_code(float x) {
#pragma unroll
  for (int i = 0; i < 512; ++i) x = __fmaf_rn(x, 1.0001f + i, 0.5f + i);
  return x;
}

extern "C" __global__ void observe(Word* output, const Word* input, Word* workspace, Long output_words,
                                   Long input_words) {
  const Long start = nanoseconds();
  const Long start_cycles = cycles();
  Word seen[40] = {};
  int next = 0;
  const auto put = [&](Word value) { seen[next++] = value; };
  const auto put_long = [&](Long value) {
    put(static_cast<Word>(value));
    put(static_cast<Word>(value >> 32));
  };
  if (launches == 0) first_start = start;
  put(static_cast<Word>(launches));
  put_long(last_end ? start - last_end : 0);
  put_long(previous_gap);
  put_long(start - first_start);
  __shared__ volatile Word kept[1];
  put(latency(output, kept));
  put(latency(output + output_words / 2, kept));
  put(latency(output + output_words - 1, kept));
  put(latency(input, kept));
  put(latency(input + input_words / 3, kept));
  put(latency(input + input_words - 1, kept));
  put(latency(workspace, kept));
  put(latency(workspace + 1000, kept));
  put(latency(output, kept));  // a second time
  put(latency(input, kept));
  const Long before_code = cycles();
  *kept = __float_as_uint(long_code(__uint_as_float(*kept)));
  put(static_cast<Word>(cycles() - before_code));
  put(load(output + 100));           // what the output holds
  put(load(output + output_words - 2));
  put(load(workspace + 2));
  put(load(output - 1));             // what lies before it
  put(load(workspace - 1));
  put(static_cast<Word>(reinterpret_cast<Long>(output) >> 9));
  put(static_cast<Word>(reinterpret_cast<Long>(input) >> 9));
  put(static_cast<Word>(reinterpret_cast<Long>(workspace) >> 9));
  Word processor;
  asm volatile("mov.u32 %0, %smid;" : "=r"(processor));
  put(processor);
  put(static_cast<Word>(start & 1023));
  put(static_cast<Word>(start_cycles));
  const Long spin_start = nanoseconds();
  const Long spin_cycles = cycles();
  while (nanoseconds() - spin_start < 20000) {
  }
  put(static_cast<Word>(cycles() - spin_cycles));  // the clock's rate
  for (int i = 0; i < 40; ++i) output[i] = seen[i];
  previous_gap = last_end ? start - last_end : 0;
  launches = launches + 1;
  last_end = nanoseconds();
}
)cuda";

const std::vector<std::string> names = {"launches since loading",
                                        "gap since the last run",
                                        "gap, high word",
                                        "the gap before that",
                                        "that gap, high word",
                                        "time since the first run",
                                        "that time, high word",
                                        "first access to the output",
                                        "first access to its middle",
                                        "first access to its end",
                                        "first access to the input",
                                        "first access to its third part",
                                        "first access to its end",
                                        "first access to the workspace",
                                        "first access further in it",
                                        "second access to the output",
                                        "second access to the input",
                                        "fetching code",
                                        "what the output holds",
                                        "what its end holds",
                                        "what the workspace holds",
                                        "what lies before the output",
                                        "what lies before the workspace",
                                        "address of the output",
                                        "address of the input",
                                        "address of the workspace",
                                        "multiprocessor",
                                        "phase of the clock",
                                        "cycle counter",
                                        "rate of the clock"};

std::vector<double> features_of(const Sighting& sighting) {
  std::vector<double> features;
  for (std::size_t i = 0; i < names.size(); ++i) features.push_back(sighting.words.at(i));
  return features;
}

constexpr int trees = 200;
constexpr int depth = 6;
constexpr int fewest_in_a_leaf = 5;
constexpr int tried_thresholds = 12;

struct Sample {
  const std::vector<double>* features = nullptr;
  bool is_second = false;
};

/// Extremely randomised: of a few thresholds at random places, the one that separates best (P.
/// Geurts, D. Ernst, L. Wehenkel, "Extremely randomized trees", 2006).
class Tree {
 public:
  Tree(std::vector<Sample> samples, std::mt19937_64& random, std::vector<double>& gains)
      : random_(random), gains_(gains) {
    grow(std::move(samples), 0);
  }

  /// The share of the second kind where the features lead.
  double vote(const std::vector<double>& features) const {
    std::size_t node = 0;
    while (nodes_[node].feature >= 0) {
      const Node& at = nodes_[node];
      node = features[static_cast<std::size_t>(at.feature)] < at.threshold ? at.below : at.above;
    }
    return nodes_[node].share;
  }

 private:
  struct Node {
    int feature = -1;  ///< −1: a leaf
    double threshold = 0;
    std::size_t below = 0;
    std::size_t above = 0;
    double share = 0.5;
  };

  static double impurity(double first, double second) {
    const double all = first + second;
    return all == 0 ? 0 : 2 * first * second / all;  // Gini's, times the number
  }

  std::size_t grow(std::vector<Sample> samples, int level) {
    const std::size_t node = nodes_.size();
    nodes_.emplace_back();
    const auto second = static_cast<double>(
        std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return s.is_second; }));
    const double first = static_cast<double>(samples.size()) - second;
    nodes_[node].share = samples.empty() ? 0.5 : second / static_cast<double>(samples.size());
    if (level == depth || first == 0 || second == 0) return node;

    const std::size_t features = samples.front().features->size();
    double best_gain = 0;
    for (int i = 0; i < tried_thresholds; ++i) {
      const std::size_t feature = random_() % features;
      const auto pick = [&] { return (*samples[random_() % samples.size()].features)[feature]; };
      const double threshold = 0.5 * (pick() + pick());
      double below_first = 0;
      double below_second = 0;
      for (const Sample& sample : samples) {
        if ((*sample.features)[feature] < threshold) {
          (sample.is_second ? below_second : below_first) += 1;
        }
      }
      const double below = below_first + below_second;
      if (below < fewest_in_a_leaf || first + second - below < fewest_in_a_leaf) continue;
      const double gain = impurity(first, second) - impurity(below_first, below_second) -
                          impurity(first - below_first, second - below_second);
      if (gain <= best_gain) continue;
      best_gain = gain;
      nodes_[node].feature = static_cast<int>(feature);
      nodes_[node].threshold = threshold;
    }
    if (nodes_[node].feature < 0) return node;
    const auto feature = static_cast<std::size_t>(nodes_[node].feature);
    const double threshold = nodes_[node].threshold;
    gains_[feature] += best_gain;
    const auto middle = std::partition(samples.begin(), samples.end(), [&](const Sample& sample) {
      return (*sample.features)[feature] < threshold;
    });
    std::vector<Sample> above(middle, samples.end());
    samples.erase(middle, samples.end());
    const std::size_t below_node = grow(std::move(samples), level + 1);
    const std::size_t above_node = grow(std::move(above), level + 1);
    nodes_[node].below = below_node;
    nodes_[node].above = above_node;
    return node;
  }

  std::mt19937_64& random_;
  std::vector<double>& gains_;
  std::vector<Node> nodes_;
};

}  // namespace

Candidate observing_candidate(const Problem& problem) {
  const Tensor& output = problem.largest(Role::output);
  const Tensor& input = *problem.inputs().front();
  if (output.bytes() < static_cast<std::int64_t>(words_seen * sizeof(std::uint32_t))) {
    throw std::logic_error("observing_candidate: the output is too small");
  }
  constexpr std::int64_t word = sizeof(std::uint32_t);
  Candidate candidate;
  candidate.problem = problem.id;
  candidate.name = "observer";
  candidate.idea = "Writes what a kernel can count and see.";
  candidate.origin.note = "whether runs can be told apart";
  candidate.program.source = source;
  candidate.program.workspaces = {{"scratch", 1 << 16}};
  KernelLaunch launch;
  launch.kernel = "observe";
  launch.grid[0].count = 1;
  launch.block = {1, 1, 1};
  launch.args = {BufferArgument{output.name}, BufferArgument{input.name}, BufferArgument{"scratch"},
                 ScalarArgument{static_cast<std::uint64_t>(output.bytes() / word)},
                 ScalarArgument{static_cast<std::uint64_t>(input.bytes() / word)}};
  candidate.program.steps.push_back(std::move(launch));
  return candidate;
}

const std::vector<std::string>& observed_features() { return names; }

Separation separate(const std::string& question, const std::vector<std::vector<double>>& first,
                    const std::vector<std::vector<double>>& second,
                    const std::vector<std::string>& features) {
  std::mt19937_64 random(20261122);
  std::vector<Sample> all;
  for (const std::vector<double>& one : first) all.push_back({&one, false});
  for (const std::vector<double>& one : second) all.push_back({&one, true});
  std::vector<double> votes(all.size());
  std::vector<double> gains(features.size());
  const std::size_t of_each =
      std::max<std::size_t>(std::min(first.size(), second.size()) * 2 / 3, 1);
  for (int i = 0; i < trees; ++i) {
    std::vector<Sample> learnt;
    std::vector<bool> is_learnt(all.size());
    const auto learn = [&](std::size_t from, std::size_t count) {
      for (std::size_t n = 0; n < of_each; ++n) {
        const std::size_t chosen = from + random() % count;
        learnt.push_back(all[chosen]);
        is_learnt[chosen] = true;
      }
    };
    learn(0, first.size());
    learn(first.size(), second.size());
    const Tree tree(std::move(learnt), random, gains);
    for (std::size_t n = 0; n < all.size(); ++n) {
      if (!is_learnt[n]) votes[n] += tree.vote(*all[n].features) - 0.5;
    }
  }
  std::array<double, 2> right{};
  for (std::size_t n = 0; n < all.size(); ++n) {
    // No vote either way is half right.
    const double share = votes[n] == 0 ? 0.5 : (votes[n] > 0) == all[n].is_second ? 1 : 0;
    right[all[n].is_second ? 1 : 0] += share;
  }
  const auto variance = [](double share, std::size_t count) {
    // As if one more of each were there, so that a share of 1 has a width as well.
    const double n = static_cast<double>(count) + 2;
    const double p = (share * static_cast<double>(count) + 1) / n;
    return p * (1 - p) / n;
  };
  Separation result;
  result.question = question;
  result.first = static_cast<int>(first.size());
  result.second = static_cast<int>(second.size());
  const double first_share = right[0] / static_cast<double>(first.size());
  const double second_share = right[1] / static_cast<double>(second.size());
  result.balanced_accuracy = (first_share + second_share) / 2;
  const double half_width =
      1.96 *
      std::sqrt(variance(first_share, first.size()) + variance(second_share, second.size())) / 2;
  result.low = result.balanced_accuracy - half_width;
  result.high = result.balanced_accuracy + half_width;
  result.telling = features.at(
      static_cast<std::size_t>(std::max_element(gains.begin(), gains.end()) - gains.begin()));
  return result;
}

std::vector<Separation> separations(const std::vector<Sighting>& sightings) {
  const auto of = [&](const std::function<bool(const Sighting&)>& wanted) {
    std::vector<std::vector<double>> found;
    for (const Sighting& sighting : sightings) {
      if (wanted(sighting)) found.push_back(features_of(sighting));
    }
    return found;
  };
  const auto of_purpose = [&](Purpose purpose) {
    return of([purpose](const Sighting& sighting) { return sighting.purpose == purpose; });
  };
  const auto timed = [&](bool judged) {
    return of([judged](const Sighting& sighting) {
      return sighting.purpose == Purpose::timed && sighting.judged == judged;
    });
  };
  return {
      separate("timed or repeat", of_purpose(Purpose::timed), of_purpose(Purpose::repeat), names),
      separate("timed or stress", of_purpose(Purpose::timed), of_purpose(Purpose::stress), names),
      separate("judged or not", timed(true), timed(false), names)};
}

}  // namespace rekernel
