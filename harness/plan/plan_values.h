#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/candidate/arch.h"
#include "harness/candidate/plan_expression.h"
#include "harness/plan/plan_table.h"

/// Short words in which the table is written, in a namespace that has nothing else.
namespace rekernel::plan_parts {

using Kind = PlanValue::Kind;

inline constexpr std::int64_t least_i64 = std::numeric_limits<std::int64_t>::min();
inline constexpr std::uint64_t most_i64 = std::numeric_limits<std::int64_t>::max();
inline constexpr const char* identifier_pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

inline PlanValue integer(std::int64_t least, std::uint64_t most) {
  return {.kind = Kind::integer, .least = least, .most = most};
}
/// One that may be an expression of axes.
inline PlanValue sized_integer(std::int64_t least, std::uint64_t most) {
  return {.kind = Kind::integer, .least = least, .most = most, .in_axes = true};
}
inline PlanValue boolean() { return {.kind = Kind::boolean}; }
inline PlanValue real() { return {.kind = Kind::real}; }
inline PlanValue text(std::uint64_t most, std::string pattern = "", std::string words = "") {
  return {.kind = Kind::text,
          .least = 1,
          .most = most,
          .pattern = std::move(pattern),
          .words = std::move(words)};
}
inline PlanValue buffer() { return text(1u << 16, "", "name of a tensor or a workspace"); }
inline PlanValue identifier() { return text(64, identifier_pattern, "identifier"); }
inline PlanValue condition() {
  return text(max_plan_expression, "", "condition on axes, in quotes");
}
inline PlanValue choice(std::vector<std::string> choices) {
  return {.kind = Kind::choice, .choices = std::move(choices)};
}
inline PlanValue object(std::string name, std::string words) {
  return {.kind = Kind::object, .object = std::move(name), .words = std::move(words)};
}
inline PlanValue any_of(std::vector<PlanValue> values, std::string words = "") {
  return {.kind = Kind::any_of, .of = std::move(values), .words = std::move(words)};
}
inline PlanValue list(std::int64_t least, std::uint64_t most, std::vector<PlanValue> of,
                      std::string words = "") {
  return {.kind = Kind::list,
          .least = least,
          .most = most,
          .of = std::move(of),
          .words = std::move(words)};
}
inline PlanValue map(std::uint64_t most, std::string pattern, PlanValue of, std::string words) {
  return {.kind = Kind::map,
          .most = most,
          .pattern = std::move(pattern),
          .of = {std::move(of)},
          .words = std::move(words)};
}

/// The largest of what architectures allow.
inline std::uint64_t most_of_any(std::int64_t (*most)(Arch)) {
  std::int64_t largest = 0;
  for (const Arch arch : Arch::all()) largest = std::max(largest, most(arch));
  return static_cast<std::uint64_t>(largest);
}

inline std::int64_t most_shared(Arch arch) { return arch->max_shared_bytes_per_block; }
inline std::int64_t most_cluster(Arch arch) { return arch->max_cluster_blocks; }
inline std::int64_t most_registers(Arch arch) { return arch->max_registers_per_thread; }

/// The objects in `launches`: see plan_objects().
std::vector<PlanObject> launch_objects();

}  // namespace rekernel::plan_parts
