#include "harness/candidate/badge.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace rekernel {
namespace {

Result<Badges> read(std::string_view text) {
  const boost::json::value value = boost::json::parse(text);
  JsonReader reader("badges", value);
  const Badges badges = badges_from_json(reader);
  if (auto error = reader.error()) return *error;
  return badges;
}

TEST(Badges, AreASet) {
  Badges badges{Badge::deterministic, Badge::strict, Badge::strict};
  EXPECT_TRUE(badges.has(Badge::strict));
  EXPECT_FALSE(badges.has(Badge::robust));
  EXPECT_TRUE(badges.has_all({}));
  EXPECT_TRUE(badges.has_all({Badge::strict}));
  EXPECT_FALSE(badges.has_all({Badge::strict, Badge::robust}));
  EXPECT_TRUE(badges.has_any({Badge::strict, Badge::robust}));
  EXPECT_FALSE(badges.has_any({Badge::robust}));
  EXPECT_FALSE(badges.has_any({}));
  badges.set(Badge::strict, false);
  EXPECT_EQ(badges, Badges{Badge::deterministic});
  EXPECT_TRUE(Badges().empty());
}

TEST(Badges, AreListedInTheOrderOfTheTable) {
  const Badges badges{Badge::deterministic, Badge::robust};
  EXPECT_EQ(badges.list(), (std::vector{Badge::robust, Badge::deterministic}));
  EXPECT_EQ(badges.names(), (std::vector<std::string>{"robust", "deterministic"}));
}

TEST(Badges, SurviveJson) {
  for (const BadgeDescription& one : badge_table) {
    EXPECT_FALSE(one.meaning.empty()) << one.name;
    const Result<Badges> again = read(boost::json::serialize(to_json(Badges{one.badge})));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, Badges{one.badge});
  }
}

TEST(Badges, RefuseUnknownNamesAndRepetitions) {
  EXPECT_EQ(read(R"(["strict", "fastest"])").error().message,
            "badges[1]: expected one of strict, robust, deterministic, any_size, got \"fastest\"");
  EXPECT_EQ(read(R"(["strict", "strict"])").error().message, "badges[1]: strict is there twice");
  EXPECT_FALSE(read(R"(["strict", 1])").ok());
}

}  // namespace
}  // namespace rekernel
