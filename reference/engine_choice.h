#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/device/launch.h"
#include "harness/gpu/cuda.h"
#include "ops/problem.h"
#include "ops/result.h"

namespace rekernel {

/// What a remembered choice depends on: the reference, the problem with its sizes and its
/// definition, the GPU and the library's version. Readable, so that a cache file explains itself.
std::string engine_key(const std::string& reference, const Problem& problem,
                       const std::string& gpu_name, const std::string& library_version);

/// engines/<reference>-<digest of the key>.json
std::string engine_cache_name(const std::string& key);

/// The choice remembered under a key; absent as well if the file is damaged or another key's.
std::optional<boost::json::object> recall_engine(const std::string& key);

Result<Ok> remember_engine(const std::string& key, const boost::json::object& choice);

/// The ways in which a library can do the same work.
struct EngineSearch {
  /// Every way, the library's favourites first.
  std::function<Result<std::vector<boost::json::object>>()> offers;
  /// One of them, ready to run. Must check what it is given: it may come from a file.
  std::function<Result<std::unique_ptr<Runnable>>(const boost::json::object&)> make;
};

/// The fastest way: the remembered one if it can still be made, else the one with the lowest median
/// of five runs with a cold L2, found within about two seconds and then remembered. Where several
/// are within a twentieth of it, they are run in turn 31 times more. Runs the ways on the bound
/// buffers, so the problem's output holds something afterwards. The error is the first refusal.
Result<std::unique_ptr<Runnable>> make_fastest(const std::string& key, const EngineSearch& search,
                                               const Device& device);

}  // namespace rekernel
