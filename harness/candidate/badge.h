#pragma once

#include <array>
#include <bitset>
#include <boost/json/fwd.hpp>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"

namespace rekernel {

/// What a kernel that passed may earn besides.
enum class Badge { strict, robust, deterministic, any_size };

struct BadgeDescription {
  Badge badge;
  std::string_view name;     ///< in records and pages
  std::string_view meaning;  ///< a phrase, for whoever reads a page
  /// Whether every record says if it was given. Older records say nothing of the other badges, and
  /// a record that says nothing has not got them.
  bool in_every_record;
};

/// All badges, in the order in which they are declared and shown.
inline constexpr std::array badge_table{
    BadgeDescription{
        Badge::strict, "strict",
        "every element within 1e-4 + 1e-4·|truth|, or errors at most twice the FP32 library's",
        true},
    BadgeDescription{Badge::robust, "robust",
                     "also right on stress inputs: shifted, scaled, constant, zero", true},
    BadgeDescription{Badge::deterministic, "deterministic", "bit-equal over repeated runs", true},
    BadgeDescription{
        Badge::any_size, "any_size",
        "also right at other sizes, drawn again in each evaluation, with a plan in axes", false},
};

constexpr const BadgeDescription& description_of(Badge badge) {
  return badge_table[static_cast<std::size_t>(badge)];
}
constexpr std::string_view to_string(Badge badge) { return description_of(badge).name; }

/// A set of badges.
class Badges {
 public:
  Badges() = default;
  Badges(std::initializer_list<Badge> badges);

  bool has(Badge badge) const;
  bool has_all(const Badges& others) const;
  bool has_any(const Badges& others) const;
  bool empty() const { return held_.none(); }
  void set(Badge badge, bool given = true);

  /// In the order of the table.
  std::vector<Badge> list() const;
  std::vector<std::string> names() const;

  friend bool operator==(const Badges&, const Badges&) = default;

 private:
  std::bitset<badge_table.size()> held_;
};

/// An array of names, each once.
boost::json::array to_json(const Badges& badges);
Badges badges_from_json(JsonReader reader);

}  // namespace rekernel
