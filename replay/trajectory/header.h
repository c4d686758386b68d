#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "ops/problem.h"
#include "replay/trajectory/settings.h"
#include "replay/trajectory/templates.h"

namespace rekernel {

/// The GPU that the prompts speak of.
struct DeviceFacts {
  std::string name;    ///< "NVIDIA H200"
  std::string target;  ///< "sm_90a": target_for() its compute capability
  std::int64_t multiprocessors = 0;
  std::int64_t shared_bytes_per_block = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t copy_bytes_per_s = 0;
  std::int64_t fp16_flops_per_s = 0;
  // What the speed of light takes besides; 0 where the header does not tell.
  std::int64_t clock_khz = 0;
  std::int64_t memory_clock_khz = 0;
  std::int64_t memory_bus_bits = 0;
};

/// The newest architecture for which the device runs candidates: "sm_90a".
std::string newest_arch(const DeviceFacts& device);

/// Facts of "h200" or "l40s", so that a search for one can begin on a machine without it.
std::optional<DeviceFacts> known_device(std::string_view short_name);

/// A kernel of the problem to start from: evaluated first, as candidate "seed.1", "seed.2", …
struct SeedCandidate {
  std::string plan;    ///< kernel.json
  std::string source;  ///< kernel.cu
};

/// A kernel, of any problem, that a round's plan can put into the prompt. Never evaluated.
struct LibraryKernel {
  std::string name;
  std::string note;
  std::string plan;  ///< empty if there is none
  std::string source;
};

/// A run that was published elsewhere, shown beside this one.
struct PublishedRound {
  int round = 0;
  std::int64_t time_ns = 0;
  std::string percent;  ///< as published, "179.9"
  std::string idea;
};
struct PublishedRun {
  std::string source;
  std::int64_t reference_ns = 0;
  std::vector<PublishedRound> rounds;
};

/// The first event of a trajectory.
struct Header {
  std::string name;
  std::string problem;
  Settings settings;
  Templates templates;
  FixedTexts texts;
  DeviceFacts device;
  std::map<std::string, std::string> toolchain;  ///< component to version, where the search began
  std::string replies;                           ///< how the replies were obtained
  std::string notes;
  std::vector<SeedCandidate> seeds;
  std::vector<LibraryKernel> library;
  std::optional<PublishedRun> published;

  const LibraryKernel* find_library_kernel(std::string_view kernel_name) const;
};

boost::json::object to_json(const Header& header);
/// Reads and checks a header event: names, placeholders, that plans name kernels which exist, and
/// that the fixed part of every prompt fits the limit.
Result<Header> header_from_json(const boost::json::object& event, const std::string& where);

/// Checks that the plan's kernels are in the header's library.
Result<Ok> check_round_plan(const Header& header, const RoundPlan& plan, const std::string& where);

/// The checks alone.
Result<Ok> check_header(const Header& header, const std::string& where);

DeviceFacts read_device_facts(JsonReader reader);
PublishedRun read_published_run(JsonReader reader);

}  // namespace rekernel
