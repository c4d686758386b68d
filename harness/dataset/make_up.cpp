#include "harness/dataset/make_up.h"

#include <algorithm>
#include <bit>

namespace rekernel {

namespace json = boost::json;

namespace {

std::string text_in(const json::object& row, const char* key) {
  const json::value* value = row.if_contains(key);
  return value && value->is_string() ? std::string(value->get_string()) : "";
}

/// 0 where there is none.
std::uint64_t number_in(const json::object& row, const char* key) {
  const json::value* value = row.if_contains(key);
  if (!value) return 0;
  if (value->is_uint64()) return value->get_uint64();
  return value->is_int64() && value->get_int64() > 0
             ? static_cast<std::uint64_t>(value->get_int64())
             : 0;
}

template <class Powers>
void count_power(Powers& powers, std::uint64_t number) {
  if (number > 0) ++powers[static_cast<std::size_t>(std::bit_width(number)) - 1];
}

template <class Counts>
json::array named_counts(const Counts& counts) {
  json::array array;
  for (const auto& [name, count] : counts) array.push_back({{"name", name}, {"rows", count}});
  return array;
}

template <class Powers>
json::array power_counts(const Powers& powers) {
  json::array array;
  for (std::size_t i = 0; i < powers.size(); ++i) {
    if (powers[i] > 0) array.push_back({{"from", std::uint64_t{1} << i}, {"rows", powers[i]}});
  }
  return array;
}

}  // namespace

void MakeUp::put(std::string_view config, Split split, const json::object& row) {
  ++rows_;
  ++of_[{std::string(config), text_in(row, "problem"), to_string(split)}];
  if (config == config::candidates) put_candidate(row);
}

void MakeUp::put_candidate(const json::object& row) {
  ++statuses_[text_in(row, "status")];
  const std::string device = text_in(row, "device");
  ++devices_[device.empty() ? "none" : device];
  count_power(lengths_, number_in(row, "code_bytes"));
  count_power(times_, number_in(row, "median_ns"));
  if (row.contains("near_duplicate_of")) ++near_duplicates_;
  newest_ = std::max(newest_, text_in(row, "measured"));
}

json::object MakeUp::json() const {
  json::array rows;
  for (const auto& [of, count] : of_) {
    rows.push_back({{"config", of[0]}, {"problem", of[1]}, {"split", of[2]}, {"rows", count}});
  }
  return {{"rows", std::move(rows)},
          {"statuses", named_counts(statuses_)},
          {"devices", named_counts(devices_)},
          {"lengths", power_counts(lengths_)},
          {"times", power_counts(times_)},
          {"near_duplicates", near_duplicates_},
          {"newest", newest_}};
}

}  // namespace rekernel
