#include "harness/dataset/make_up.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

namespace json = boost::json;

TEST(MakeUp, CountsRowsByWhatTheyAre) {
  MakeUp made_of;
  made_of.put(config::candidates, Split::train,
              {{"problem", "a"},
               {"status", "passed"},
               {"device", "H"},
               {"code_bytes", 1000},
               {"median_ns", 4096},
               {"measured", "2026-01-02"}});
  made_of.put(config::candidates, Split::train,
              {{"problem", "a"},
               {"status", "crashed"},
               {"device", ""},
               {"code_bytes", 1023u},
               {"median_ns", nullptr},
               {"near_duplicate_of", "x"}});
  made_of.put(config::cheats, Split::test, {{"problem", "b"}, {"status", "passed"}});
  EXPECT_EQ(made_of.rows(), 3);
  const json::object json = made_of.json();
  EXPECT_EQ(json.at("rows"), json::parse(R"([
    {"config": "candidates", "problem": "a", "split": "train", "rows": 2},
    {"config": "cheats", "problem": "b", "split": "test", "rows": 1}])"));
  EXPECT_EQ(json.at("statuses"),
            json::parse(R"([{"name": "crashed", "rows": 1}, {"name": "passed", "rows": 1}])"));
  EXPECT_EQ(json.at("devices"),
            json::parse(R"([{"name": "H", "rows": 1}, {"name": "none", "rows": 1}])"));
  EXPECT_EQ(json::serialize(json.at("lengths")), R"([{"from":512,"rows":2}])");
  EXPECT_EQ(json::serialize(json.at("times")), R"([{"from":4096,"rows":1}])");
  EXPECT_EQ(json.at("near_duplicates"), 1);
  EXPECT_EQ(json.at("newest"), "2026-01-02");
}

}  // namespace
}  // namespace rekernel
