#include "reference/engine_choice.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <fstream>

#include "harness/base/files.h"
#include "harness/problems/catalog.h"
#include "reference/cudnn_graph.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

class EngineChoice : public testing::Test {
 protected:
  TemporaryFolder folder_;
  ScopedVariable cache_{"REKERNEL_CACHE", folder_.path().string()};
  const std::string key_ =
      engine_key("cudnn_fp32", *find_problem("conv2d"), "NVIDIA H200", "9.19.0");
  const boost::json::object choice_ = {{"variant", "fused"}, {"engine", 11}};
};

TEST_F(EngineChoice, KeyHoldsAllThatTheChoiceDependsOn) {
  const Problem& conv2d = *find_problem("conv2d");
  EXPECT_NE(key_, engine_key("cudnn_tf32", conv2d, "NVIDIA H200", "9.19.0"));
  EXPECT_NE(key_, engine_key("cudnn_fp32", conv2d, "NVIDIA L40S", "9.19.0"));
  EXPECT_NE(key_, engine_key("cudnn_fp32", conv2d, "NVIDIA H200", "9.14.0"));
  Problem smaller = conv2d;
  smaller.tensors[0].shape[0] = 1;
  EXPECT_NE(key_, engine_key("cudnn_fp32", smaller, "NVIDIA H200", "9.19.0"));
  Problem dense = conv2d;
  for (Attribute& attribute : dense.attributes) {
    if (attribute.name == "stride") attribute.value = std::int64_t{1};
  }
  EXPECT_NE(key_, engine_key("cudnn_fp32", dense, "NVIDIA H200", "9.19.0"));
  Problem other = conv2d;
  other.formula.back() += " + 1";
  EXPECT_NE(key_, engine_key("cudnn_fp32", other, "NVIDIA H200", "9.19.0"));
}

TEST_F(EngineChoice, IsRecalledAfterItWasRemembered) {
  EXPECT_FALSE(recall_engine(key_));
  ASSERT_TRUE(remember_engine(key_, choice_));
  const auto recalled = recall_engine(key_);
  ASSERT_TRUE(recalled);
  EXPECT_EQ(*recalled, choice_);
  EXPECT_FALSE(recall_engine(key_ + " "));
}

TEST_F(EngineChoice, DamagedFilesAreForgotten) {
  ASSERT_TRUE(remember_engine(key_, choice_));
  for (const char* damage :
       {"", "{", "[]", "{\"key\": \"another\", \"choice\": {}}", "{\"choice\": {}}"}) {
    std::ofstream(cache_directory() / engine_cache_name(key_)) << damage;
    EXPECT_FALSE(recall_engine(key_)) << damage;
  }
}

TEST_F(EngineChoice, RememberedWayIsMadeWithoutASearch) {
  class Nothing : public Runnable {
    void enqueue(CUstream) override {}
  };
  ASSERT_TRUE(remember_engine(key_, choice_));
  EngineSearch search;
  search.offers = []() -> Result<std::vector<boost::json::object>> {
    ADD_FAILURE() << "the library was asked";
    return Error{"asked"};
  };
  search.make = [&](const boost::json::object& choice) -> Result<std::unique_ptr<Runnable>> {
    EXPECT_EQ(choice, choice_);
    return std::unique_ptr<Runnable>(std::make_unique<Nothing>());
  };
  EXPECT_TRUE(make_fastest(key_, search, Device()));
}

TEST_F(EngineChoice, StaleWayIsSearchedAgain) {
  ASSERT_TRUE(remember_engine(key_, choice_));
  EngineSearch search;
  search.offers = []() -> Result<std::vector<boost::json::object>> {
    return Error{"the library refuses"};
  };
  search.make = [](const boost::json::object&) -> Result<std::unique_ptr<Runnable>> {
    return Error{"stale"};
  };
  const auto made = make_fastest(key_, search, Device());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, "the library refuses");
}

TEST(EngineConfigurations, RoundTripThroughJson) {
  const EngineConfiguration configuration{.engine = 46, .knobs = {{2, 1}, {24, -3}}};
  EXPECT_EQ(configuration.name(), "eng46_k2=1_k24=-3");
  const auto again = EngineConfiguration::from_json(configuration.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, configuration);
}

TEST(EngineConfigurations, NonsenseIsRefused) {
  for (const char* text :
       {"[]", "{}", R"({"engine": 1})", R"({"engine": -1, "knobs": []})",
        R"({"engine": 1, "knobs": [[1]]})", R"({"engine": 1, "knobs": [[1, "a"]]})"}) {
    EXPECT_FALSE(EngineConfiguration::from_json(boost::json::parse(text))) << text;
  }
}

}  // namespace
}  // namespace rekernel
