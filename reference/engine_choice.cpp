#include "reference/engine_choice.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <stdexcept>

#include "harness/base/cache.h"
#include "harness/base/files.h"
#include "harness/base/json.h"

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int timed_runs = 5;
constexpr std::chrono::milliseconds search_budget{1500};

/// Times runs on a stream of its own, each after the L2 cache was overwritten.
class RunTimer {
 public:
  explicit RunTimer(const Device& device) : flush_(2 * device.properties().l2_bytes + (1 << 20)) {}

  /// The median, or nothing once a run takes over twice `best_ns`.
  std::optional<std::int64_t> median_ns(Runnable& runnable, std::int64_t best_ns) {
    runnable.enqueue(stream_.get());
    stream_.synchronize();
    std::array<std::int64_t, timed_runs> times{};
    for (std::int64_t& time : times) {
      REKERNEL_CUDA(cuMemsetD8Async(flush_.get(), 0, static_cast<std::size_t>(flush_.bytes()),
                                    stream_.get()));
      start_.record(stream_);
      runnable.enqueue(stream_.get());
      stop_.record(stream_);
      time = elapsed_ns(start_, stop_);
      if (time / 2 > best_ns) return std::nullopt;
    }
    std::nth_element(times.begin(), times.begin() + timed_runs / 2, times.end());
    return times[timed_runs / 2];
  }

 private:
  DeviceBuffer flush_;
  Stream stream_;
  Event start_;
  Event stop_;
};

struct Fastest {
  std::unique_ptr<Runnable> runnable;
  boost::json::object choice;
  std::int64_t median_ns = std::numeric_limits<std::int64_t>::max();
};

Result<Fastest> search_fastest(const EngineSearch& search, const Device& device) {
  Result<std::vector<boost::json::object>> offers = search.offers();
  if (!offers) return offers.error();
  RunTimer timer(device);
  Fastest fastest;
  std::string refusal;
  const Clock::time_point deadline = Clock::now() + search_budget;
  for (const boost::json::object& offer : *offers) {
    if (fastest.runnable && Clock::now() > deadline) break;
    Result<std::unique_ptr<Runnable>> runnable = search.make(offer);
    if (!runnable) {
      if (refusal.empty()) refusal = runnable.error().message;
      continue;
    }
    try {
      const std::optional<std::int64_t> median = timer.median_ns(**runnable, fastest.median_ns);
      if (median && *median < fastest.median_ns) {
        fastest = {std::move(*runnable), offer, *median};
      }
    } catch (const CudaError&) {
      throw;  // the context may be lost
    } catch (const std::runtime_error& error) {
      if (refusal.empty()) refusal = error.what();
    }
  }
  if (!fastest.runnable) return Error{refusal.empty() ? "the library offers nothing" : refusal};
  return fastest;
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
  Result<Fastest> fastest = search_fastest(search, device);
  if (!fastest) return fastest.error();
  // A cache that cannot be written costs the next start some time, nothing else.
  (void)remember_engine(key, fastest->choice).ok();
  return std::move(fastest->runnable);
}

}  // namespace rekernel
