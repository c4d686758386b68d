#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "ops/result.h"

namespace rekernel {

/// results/<gpu>/judged_again.jsonl: rows of a data set that were drawn at random and judged once
/// more, a line each. The first line says how they were drawn.
inline constexpr const char* judged_again_file = "judged_again.jsonl";

/// How rows were drawn.
struct Draw {
  std::int64_t rows = 0;
  std::uint64_t seed = 0;
  std::string digest;  ///< of the ids that were drawn from

  bool operator==(const Draw&) const = default;
};

/// One row: what the data set says, and what was found now.
struct JudgedAgain {
  std::string id;
  std::string sha256;
  std::string device;          ///< recorded
  std::string status;          ///< recorded
  std::int64_t median_ns = 0;  ///< recorded; 0 without a time
  std::string device_now;
  std::string status_now;
  std::int64_t median_ns_now = 0;
  std::string judge;     ///< that judged it now
  std::string measured;  ///< date, YYYY-MM-DD
};

struct JudgedAgainRecord {
  Draw draw;
  std::vector<JudgedAgain> rows;
};

/// Nothing where there is no file. A last line that a kill tore counts as not there.
Result<std::optional<JudgedAgainRecord>> load_judged_again(const std::filesystem::path& path);
Result<Ok> append_draw(const std::filesystem::path& path, const Draw& draw);
Result<Ok> append_judged_again(const std::filesystem::path& path, const JudgedAgain& row);

/// What the card states of each record below results/: how many rows of how many were judged, how
/// many had the same verdict, and how far times differed on the same device.
Result<boost::json::array> judged_again_summaries(const std::filesystem::path& root);

/// Indices of `count` of `size` things, drawn without replacement; in the order of the draw. The
/// same on every platform.
std::vector<std::size_t> drawn(std::size_t size, std::size_t count, std::uint64_t seed);

}  // namespace rekernel
