#include "reference/engine_choice.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "harness/base/cache.h"
#include "harness/base/files.h"
#include "harness/base/json.h"

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int timed_runs = 5;
constexpr std::chrono::milliseconds search_budget{1500};
/// A first run that takes longer is not repeated: what a library loads for it takes less.
constexpr std::chrono::milliseconds slow_run{500};
/// While nothing is faster than that.
constexpr std::chrono::seconds slow_search_budget{10};
/// Ways whose medians differ by less than one part in so many are timed again, in turn.
constexpr std::int64_t close = 12;
constexpr std::size_t most_contenders = 6;
/// Before each of these runs. Without it a matrix product runs at the clock that the power limit
/// leaves, where others win than in an evaluation, which pauses between runs.
constexpr std::chrono::milliseconds pause{1};
constexpr std::int64_t most_rounds = 31;
constexpr std::chrono::milliseconds run_off_budget{300};

/// Times runs on a stream of its own, each after the L2 cache was overwritten.
class RunTimer {
 public:
  explicit RunTimer(const Device& device) : flush_(2 * device.properties().l2_bytes + (1 << 20)) {}

  /// The median, or nothing once a run takes over twice `best_ns`.
  std::optional<std::int64_t> median_ns(Runnable& runnable, std::int64_t best_ns) {
    const Clock::time_point begin = Clock::now();
    runnable.enqueue(stream_.get());
    stream_.synchronize();
    const std::chrono::nanoseconds first = Clock::now() - begin;
    if (first > slow_run) {
      if (first.count() / 2 > best_ns) return std::nullopt;
      return first.count();
    }
    std::vector<std::int64_t> times;
    for (int run = 0; run < timed_runs; ++run) {
      times.push_back(cold_run_ns(runnable));
      if (times.back() / 2 > best_ns) return std::nullopt;
    }
    return median_of(times);
  }

  std::int64_t cold_run_ns(Runnable& runnable) {
    REKERNEL_CUDA(
        cuMemsetD8Async(flush_.get(), 0, static_cast<std::size_t>(flush_.bytes()), stream_.get()));
    start_.record(stream_);
    runnable.enqueue(stream_.get());
    stop_.record(stream_);
    return elapsed_ns(start_, stop_);
  }

  static std::int64_t median_of(std::vector<std::int64_t> times) {
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

 private:
  DeviceBuffer flush_;
  Stream stream_;
  Event start_;
  Event stop_;
};

struct Contender {
  std::unique_ptr<Runnable> runnable;
  boost::json::object choice;
  std::int64_t median_ns = 0;
};

/// Keeps the fastest ones that are so close that five runs do not tell them apart.
void keep_close(std::vector<Contender>& contenders) {
  std::sort(contenders.begin(), contenders.end(),
            [](const Contender& a, const Contender& b) { return a.median_ns < b.median_ns; });
  const std::int64_t limit = contenders.front().median_ns + contenders.front().median_ns / close;
  while (contenders.size() > most_contenders || contenders.back().median_ns > limit) {
    contenders.pop_back();
  }
}

/// Times the contenders in turn, so that they meet the same clocks, and returns the fastest. Long
/// ones are timed less often, or not again.
Contender run_off(std::vector<Contender> contenders, RunTimer& timer) {
  std::int64_t round_ns = 0;
  for (const Contender& contender : contenders) round_ns += contender.median_ns;
  const std::int64_t rounds =
      std::min<std::int64_t>(most_rounds, std::chrono::nanoseconds(run_off_budget).count() /
                                              std::max(round_ns, std::int64_t{1}));
  if (contenders.size() > 1 && rounds > timed_runs) {
    std::vector<std::vector<std::int64_t>> times(contenders.size());
    for (std::int64_t round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < contenders.size(); ++i) {
        std::this_thread::sleep_for(pause);
        times[i].push_back(timer.cold_run_ns(*contenders[i].runnable));
      }
    }
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      contenders[i].median_ns = RunTimer::median_of(std::move(times[i]));
    }
  }
  return std::move(*std::min_element(
      contenders.begin(), contenders.end(),
      [](const Contender& a, const Contender& b) { return a.median_ns < b.median_ns; }));
}

Result<Contender> search_fastest(const EngineSearch& search, const Device& device) {
  Result<std::vector<boost::json::object>> offers = search.offers();
  if (!offers) return offers.error();
  RunTimer timer(device);
  std::vector<Contender> contenders;  // the fastest first
  std::string refusal;
  const Clock::time_point begin = Clock::now();
  const auto is_over = [&] {
    if (contenders.empty()) return false;
    const bool slow = std::chrono::nanoseconds(contenders.front().median_ns) > slow_run;
    return Clock::now() - begin > (slow ? slow_search_budget : search_budget);
  };
  for (const boost::json::object& offer : *offers) {
    if (is_over()) break;
    Result<std::unique_ptr<Runnable>> runnable = search.make(offer);
    if (!runnable) {
      if (refusal.empty()) refusal = runnable.error().message;
      continue;
    }
    try {
      const std::int64_t best = contenders.empty() ? std::numeric_limits<std::int64_t>::max()
                                                   : contenders.front().median_ns;
      if (const std::optional<std::int64_t> median = timer.median_ns(**runnable, best)) {
        contenders.push_back({std::move(*runnable), offer, *median});
        keep_close(contenders);
      }
    } catch (const CudaError&) {
      throw;  // the context may be lost
    } catch (const std::runtime_error& error) {
      if (refusal.empty()) refusal = error.what();
    }
  }
  if (contenders.empty()) return Error{refusal.empty() ? "the library offers nothing" : refusal};
  return run_off(std::move(contenders), timer);
}

}  // namespace

std::string engine_key(const std::string& reference, const Problem& problem,
                       const std::string& gpu_name, const std::string& library_version) {
  std::string key = reference + " " + problem.id;
  for (const Tensor& tensor : problem.tensors) {
    key += " " + tensor.name + ":" + to_string(tensor.dtype);
    for (std::int64_t extent : tensor.shape) key += "," + std::to_string(extent);
  }
  for (const Attribute& attribute : problem.attributes) {
    if (const auto* value = std::get_if<std::int64_t>(&attribute.value)) {
      key += " " + attribute.name + "=" + std::to_string(*value);
    }
  }
  for (const std::string& statement : problem.formula) key += " | " + statement;
  return key + " | " + gpu_name + " | " + library_version;
}

std::string engine_cache_name(const std::string& key) {
  return "engines/" + key.substr(0, key.find(' ')) + "-" + sha256_hex(key).substr(0, 16) + ".json";
}

std::optional<boost::json::object> recall_engine(const std::string& key) {
  const std::string name = engine_cache_name(key);
  Result<std::string> text = recall(name, 1 << 16);
  if (!text) return std::nullopt;
  Result<boost::json::value> value = parse_json(*text, name);
  if (!value || !value->is_object()) return std::nullopt;
  const boost::json::object& entry = value->as_object();
  const boost::json::value* stored_key = entry.if_contains("key");
  const boost::json::value* choice = entry.if_contains("choice");
  if (!stored_key || !choice || *stored_key != boost::json::value(key) || !choice->is_object())
    return std::nullopt;
  return choice->as_object();
}

Result<Ok> remember_engine(const std::string& key, const boost::json::object& choice) {
  return remember(
      {engine_cache_name(key), pretty_json(boost::json::object{{"key", key}, {"choice", choice}})});
}

Result<std::unique_ptr<Runnable>> make_fastest(const std::string& key, const EngineSearch& search,
                                               const Device& device) {
  if (const std::optional<boost::json::object> choice = recall_engine(key)) {
    Result<std::unique_ptr<Runnable>> remembered = search.make(*choice);
    if (remembered) return remembered;
  }
  Result<Contender> fastest = search_fastest(search, device);
  if (!fastest) return fastest.error();
  // A cache that cannot be written costs the next start some time, nothing else.
  (void)remember_engine(key, fastest->choice).ok();
  return std::move(fastest->runnable);
}

}  // namespace rekernel
