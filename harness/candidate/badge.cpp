#include "harness/candidate/badge.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/text.h"

namespace rekernel {

namespace {

constexpr bool in_order() {
  for (std::size_t i = 0; i < badge_table.size(); ++i) {
    if (badge_table[i].badge != static_cast<Badge>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "the table has the order of the enumeration");

std::string all_names() {
  std::vector<std::string> names;
  for (const BadgeDescription& one : badge_table) names.emplace_back(one.name);
  return joined(names);
}

}  // namespace

Badges::Badges(std::initializer_list<Badge> badges) {
  for (const Badge badge : badges) set(badge);
}

bool Badges::has(Badge badge) const { return held_[static_cast<std::size_t>(badge)]; }

bool Badges::has_all(const Badges& others) const { return (others.held_ & ~held_).none(); }

bool Badges::has_any(const Badges& others) const { return (others.held_ & held_).any(); }

void Badges::set(Badge badge, bool given) { held_[static_cast<std::size_t>(badge)] = given; }

std::vector<Badge> Badges::list() const {
  std::vector<Badge> badges;
  for (const BadgeDescription& one : badge_table) {
    if (has(one.badge)) badges.push_back(one.badge);
  }
  return badges;
}

std::vector<std::string> Badges::names() const {
  std::vector<std::string> names;
  for (const Badge badge : list()) names.emplace_back(to_string(badge));
  return names;
}

boost::json::array to_json(const Badges& badges) {
  boost::json::array names;
  for (const Badge badge : badges.list()) names.emplace_back(to_string(badge));
  return names;
}

Badges badges_from_json(JsonReader reader) {
  Badges badges;
  for (JsonReader& one : reader.array()) {
    const std::string name = one.string();
    const auto found = std::find_if(badge_table.begin(), badge_table.end(),
                                    [&](const auto& badge) { return badge.name == name; });
    if (found == badge_table.end()) {
      one.expect("one of " + all_names());
    } else if (badges.has(found->badge)) {
      one.fail(name + " is there twice");
    } else {
      badges.set(found->badge);
    }
  }
  return badges;
}

}  // namespace rekernel
