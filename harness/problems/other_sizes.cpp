#include "harness/problems/other_sizes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "harness/problems/problem_file.h"
#include "harness/problems/sizes.h"
#include "ops/inputs.h"

namespace rekernel {

namespace {

using Random = std::mt19937_64;
using Range = std::pair<std::int64_t, std::int64_t>;

constexpr int most_attempts = 400;
/// From here on, where constraints hold nowhere else, sizes are near the least ones.
constexpr int patient_attempts = 250;
constexpr std::int64_t near_the_least = 20;
/// Problems whose own sizes are small may have larger ones.
constexpr std::int64_t little_work = 1'000'000'000;
constexpr std::int64_t few_bytes = 64 << 20;
/// Of the truth's intermediate results.
constexpr std::int64_t most_workspace = std::int64_t{2} << 30;

std::int64_t uniform(Random& random, Range range) {
  const auto count = static_cast<std::uint64_t>(range.second - range.first + 1);
  return range.first + static_cast<std::int64_t>(random() % count);
}

/// Small numbers as often as large ones.
std::int64_t of_any_magnitude(Random& random, Range range) {
  const auto width = static_cast<std::uint64_t>(range.second - range.first);
  const auto bits = random() % (static_cast<std::uint64_t>(std::bit_width(width)) + 1);
  const std::uint64_t most = std::min(width, (std::uint64_t{1} << bits) - 1);
  return range.first + static_cast<std::int64_t>(random() % (most + 1));
}

bool is_prime(std::int64_t number) {
  if (number < 2) return false;
  for (std::int64_t divisor = 2; divisor <= number / divisor; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

/// The largest prime of a range from its end downwards; the end where there is none near.
std::int64_t prime_below(Range range) {
  constexpr std::int64_t longest_search = 2000;
  const std::int64_t last = std::max(range.first, range.second - longest_search);
  for (std::int64_t number = range.second; number >= last; --number) {
    if (is_prime(number)) return number;
  }
  return range.second;
}

std::int64_t power_of_two_below(Range range) {
  const auto power =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(range.second)));
  return std::max(power, range.first);
}

bool is_little(const Problem& instance, const Problem& own) {
  std::int64_t workspace = 0;
  for (const Workspace& one : instance.device_oracle.workspaces) workspace += one.bytes;
  return workspace <= most_workspace &&
         instance.operations <= std::max(own.operations, little_work) &&
         instance.tensor_bytes() <= std::max(own.tensor_bytes(), few_bytes);
}

/// Collects instances of a problem, none of them twice.
class Instances {
 public:
  explicit Instances(const Problem& problem) : own_(problem), sizes_({sizes_of(problem)}) {}

  /// The first of the sizes that `choose` gives for 0, 1, 2, … that exists.
  void add(const std::function<Sizes(int attempt)>& choose) {
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      const Sizes sizes = choose(attempt);
      if (std::find(sizes_.begin(), sizes_.end(), sizes) != sizes_.end()) continue;
      Result<Problem> instance = problem_at(own_, sizes);
      if (!instance || !is_little(*instance, own_)) continue;
      sizes_.push_back(sizes);
      found_.push_back(*std::move(instance));
      return;
    }
  }

  std::vector<Problem> take() { return std::move(found_); }

 private:
  const Problem& own_;
  std::vector<Sizes> sizes_;
  std::vector<Problem> found_;
};

/// What is looked for among a problem's sizes.
enum class Kind { least, edges, ones, primes, any };
constexpr std::array kinds = {Kind::least,  Kind::edges, Kind::ones,
                              Kind::primes, Kind::any,   Kind::any};

std::int64_t drawn_size(Kind kind, Range range, Random& random) {
  switch (kind) {
    case Kind::least:
      return range.first;
    case Kind::edges:
      return random() % 2 == 0 ? range.first : range.second;
    case Kind::ones:
      if (range.first == 1 && random() % 2 == 0) return 1;
      break;
    case Kind::primes:
      return prime_below({range.first, of_any_magnitude(random, range)});
    case Kind::any:
      break;
  }
  return of_any_magnitude(random, range);
}

/// The longer it takes, the more axes have any size.
Sizes drawn_sizes(const Problem& problem, Kind kind, int attempt, Random& random) {
  const bool near = attempt >= patient_attempts;
  Sizes sizes;
  for (const auto& [axis, whole] : problem.other_sizes) {
    const Range range{whole.first,
                      near ? std::min(whole.second, whole.first + near_the_least) : whole.second};
    const bool gives_way = static_cast<int>(random() % most_attempts) < attempt;
    sizes[axis] = drawn_size(gives_way ? Kind::any : kind, range, random);
  }
  return sizes;
}

}  // namespace

std::vector<Problem> drawn_instances(const Problem& problem, std::uint64_t seed,
                                     std::size_t count) {
  Instances instances(problem);
  if (problem.other_sizes.empty()) return {};
  Random random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const Kind kind = kinds[i % kinds.size()];
    instances.add([&](int attempt) { return drawn_sizes(problem, kind, attempt, random); });
  }
  return instances.take();
}

namespace {

/// A size for the range that an axis has.
using Choice = std::function<std::int64_t(Range)>;

/// A size from the upper half of those up to `most`, then of the lower half, of its lower half and
/// so on; the first one is `most`.
std::int64_t drawn_below(std::int64_t most, std::int64_t least, int attempt, Random& random) {
  const std::int64_t width = most - least;
  const int halvings = std::bit_width(static_cast<std::uint64_t>(width)) * attempt / most_attempts;
  const std::int64_t size =
      uniform(random, {least + (width >> (halvings + 1)), least + (width >> halvings)});
  return attempt == 0 ? most : size;
}

}  // namespace

std::vector<Problem> fixed_instances(const Problem& problem) {
  if (problem.other_sizes.empty()) return {};
  const auto as_it_is = [](Range range) { return range.second; };
  const auto three_quarters = [](Range range) {
    return std::max(range.first, range.second - range.second / 4);
  };
  const std::array<std::pair<Choice, Choice>, 3> targets = {
      {{as_it_is, as_it_is}, {as_it_is, power_of_two_below}, {three_quarters, prime_below}}};
  Instances instances(problem);
  Random random(tensor_stream(problem.id));
  for (const auto& [target, rounded] : targets) {
    instances.add([&, target = target, rounded = rounded](int attempt) {
      Sizes sizes;
      for (const auto& [axis, range] : problem.other_sizes) {
        const std::int64_t bound = drawn_below(target(range), range.first, attempt, random);
        sizes[axis] = rounded({range.first, bound});
      }
      return sizes;
    });
  }
  return instances.take();
}

}  // namespace rekernel
