#include "harness/dataset/judged_again.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/quantile.h"
#include "harness/dataset/journal.h"
#include "harness/records/record.h"
#include "replay/trajectory/event.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::int64_t most = std::int64_t{1} << 53;

json::object to_json(const Draw& draw) {
  return {{"schema", 1}, {"rows", draw.rows}, {"seed", draw.seed}, {"digest", draw.digest}};
}

Draw read_draw(JsonReader reader) {
  reader.required("schema").integer(1, 1);
  Draw draw;
  draw.rows = reader.required("rows").integer(1, most);
  draw.seed = static_cast<std::uint64_t>(reader.required("seed").integer(0, most));
  draw.digest = reader.required("digest").string();
  reader.no_other_keys();
  return draw;
}

json::object to_json(const JudgedAgain& row) {
  return {
      {"id", row.id},
      {"sha256", row.sha256},
      {"recorded", {{"device", row.device}, {"status", row.status}, {"median_ns", row.median_ns}}},
      {"now",
       {{"device", row.device_now},
        {"status", row.status_now},
        {"median_ns", row.median_ns_now},
        {"judge", row.judge},
        {"measured", row.measured}}}};
}

JudgedAgain read_row(JsonReader reader) {
  JudgedAgain row;
  row.id = reader.required("id").string();
  row.sha256 = reader.required("sha256").string();
  JsonReader recorded = reader.required("recorded");
  row.device = recorded.required("device").string();
  row.status = recorded.required("status").string();
  row.median_ns = recorded.required("median_ns").integer(0, most);
  recorded.no_other_keys();
  JsonReader now = reader.required("now");
  row.device_now = now.required("device").string();
  row.status_now = now.required("status").string();
  row.median_ns_now = now.required("median_ns").integer(0, most);
  row.judge = now.required("judge").string();
  row.measured = now.required("measured").string();
  now.no_other_keys();
  reader.no_other_keys();
  return row;
}

json::object summary_of(const JudgedAgainRecord& record) {
  std::int64_t same = 0;
  std::vector<std::int64_t> permille;  ///< |time now ÷ time recorded − 1|
  json::array changed;
  for (const JudgedAgain& row : record.rows) {
    if (row.status == row.status_now) {
      ++same;
    } else {
      changed.push_back({{"id", row.id}, {"status", row.status}, {"now", row.status_now}});
    }
    if (row.device == row.device_now && row.median_ns > 0 && row.median_ns_now > 0) {
      const std::int64_t difference = std::abs(row.median_ns_now - row.median_ns);
      permille.push_back((difference * 1000 + row.median_ns / 2) / row.median_ns);
    }
  }
  json::object summary{{"drawn", record.draw.rows},
                       {"seed", record.draw.seed},
                       {"judged", record.rows.size()},
                       {"same_status", same},
                       {"timed_on_the_same_device", permille.size()},
                       {"changed", std::move(changed)}};
  if (!permille.empty()) {
    summary["median_difference_permille"] = quantile(permille, 0.5);
    summary["p95_difference_permille"] = quantile(permille, 0.95);
  }
  if (!record.rows.empty()) {
    summary["device"] = record.rows.back().device_now;
    summary["judge"] = record.rows.back().judge;
    summary["measured"] = record.rows.back().measured;
  }
  return summary;
}

}  // namespace

Result<std::optional<JudgedAgainRecord>> load_judged_again(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional<JudgedAgainRecord>();
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const std::string whole = text->substr(0, text->rfind('\n') + 1);
  if (whole.empty()) return std::optional<JudgedAgainRecord>();
  JudgedAgainRecord record;
  std::istringstream lines(whole);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = path.string() + ": line " + std::to_string(++number);
    const Result<json::value> value = parse_json(line, where);
    if (!value) return value.error();
    JsonReader reader(where, *value);
    if (number == 1) {
      record.draw = read_draw(reader);
    } else {
      record.rows.push_back(read_row(reader));
    }
    if (auto error = reader.error()) return *error;
  }
  return std::optional(std::move(record));
}

Result<Ok> append_draw(const fs::path& path, const Draw& draw) {
  return append_line(path, canonical_json(to_json(draw)));
}

Result<Ok> append_judged_again(const fs::path& path, const JudgedAgain& row) {
  return append_line(path, canonical_json(to_json(row)));
}

Result<json::array> judged_again_summaries(const fs::path& root) {
  json::array summaries;
  for (const fs::path& path : recorded_files(root, judged_again_file)) {
    const Result<std::optional<JudgedAgainRecord>> record = load_judged_again(path);
    if (!record) return record.error();
    if (*record) summaries.push_back(summary_of(**record));
  }
  return summaries;
}

std::vector<std::size_t> drawn(std::size_t size, std::size_t count, std::uint64_t seed) {
  std::vector<std::size_t> indices(size);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  count = std::min(count, size);
  // Fisher and Yates, with SplitMix64; the bias of the remainder is below 2^-40 for any data set.
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t value = state += 0x9e3779b97f4a7c15u;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    value ^= value >> 31;
    std::swap(indices[i], indices[i + value % (size - i)]);
  }
  indices.resize(count);
  return indices;
}

}  // namespace rekernel
