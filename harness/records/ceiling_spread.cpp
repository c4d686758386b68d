#include "harness/records/ceiling_spread.h"

#include <algorithm>
#include <cmath>

#include "harness/base/json.h"
#include "harness/base/text.h"

namespace rekernel {

namespace {

/// How far a row may be from the median of the others. In the committed files (20 rows on an H200,
/// 20 on an H100; 16 of each have a product) the copy's rate is at most 0.5% from it. The
/// product's is at most 0.6% above and 3.6% below, since it depends on power. Both bounds leave
/// room for another machine with the same chip.
struct Ceiling {
  const char* name;
  std::int64_t Ceilings::*rate;
  double max_distance;
};
constexpr Ceiling measured_ceilings[] = {
    {"copy_bytes_per_s", &Ceilings::copy_bytes_per_s, 0.03},
    {"fp16_flops_per_s", &Ceilings::fp16_flops_per_s, 0.06},
};

double median(std::vector<std::int64_t> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const auto upper = static_cast<double>(values[middle]);
  return values.size() % 2 == 1 ? upper : (upper + static_cast<double>(values[middle - 1])) / 2.0;
}

}  // namespace

std::vector<std::string> outlying_ceilings(const Bench& bench) {
  constexpr std::size_t longest_name = 200;
  std::vector<std::string> found;
  for (const Ceiling& ceiling : measured_ceilings) {
    for (std::size_t i = 0; i < bench.rows.size(); ++i) {
      const std::int64_t here = bench.rows[i].ceilings.*ceiling.rate;
      std::vector<std::int64_t> others;
      for (std::size_t j = 0; j < bench.rows.size(); ++j) {
        const std::int64_t there = bench.rows[j].ceilings.*ceiling.rate;
        if (j != i && there > 0) others.push_back(there);
      }
      if (here == 0 || others.empty()) continue;  // not every problem has a product
      const double expected = median(std::move(others));
      const double apart = static_cast<double>(here) / expected - 1.0;
      if (std::abs(apart) <= ceiling.max_distance) continue;
      const std::string name = bench.rows[i].problem + "/" + bench.rows[i].kernel;
      found.push_back("rows[" + std::to_string(i) + "] (" + one_line(name, longest_name) +
                      "): ceilings." + ceiling.name + ": " + std::to_string(here) + " is " +
                      printed("%+.1f%%", 100.0 * apart) + " from the other rows' median, " +
                      printed("%.0f", expected) + "; expected " +
                      printed("%.0f%%", 100.0 * ceiling.max_distance) + " at most");
    }
  }
  return found;
}

}  // namespace rekernel
