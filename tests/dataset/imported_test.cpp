#include "harness/dataset/imported.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/dataset/kernel_rows.h"
#include "replay/trajectory/outcome.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;

ImportedKernel imported(const std::string& name) {
  ImportedKernel kernel;
  kernel.name = name;
  kernel.from = "a file";
  kernel.license = "MIT";
  kernel.candidate = *testing::candidate_from_text(testing::kernel_reply("x"),
                                                   {"softmax", "t", "r1.i1.b1", "idea", "sm_90a"});
  kernel.evaluation = testing::passing_evaluation(kernel.candidate, 700000);
  kernel.evaluation.harness = "digest";
  kernel.record = recorded_evaluation(kernel.evaluation, "NVIDIA H200", "NVRTC 13.0");
  kernel.record["measured"] = "2026-01-02";
  return kernel;
}

class ImportedTest : public ::testing::Test {
 protected:
  std::string error_with(const std::function<void(json::object&)>& change) const {
    json::object line = to_json(imported("a"));
    change(line);
    testing::write_text(folder_ / "i.jsonl", json::serialize(line) + "\n");
    const auto loaded = load_imported(folder_ / "i.jsonl");
    return loaded ? "" : loaded.error().message;
  }
  TemporaryFolder folder_;
};

TEST_F(ImportedTest, NoLineWithoutAVerdictOfOurs) {
  EXPECT_EQ(error_with([](json::object&) {}), "");
  EXPECT_NE(error_with([](json::object& line) { line.erase("evaluation"); }), "");
  EXPECT_NE(error_with([](json::object& line) { line["evaluation"].as_object()["harness"] = ""; }),
            "");
  EXPECT_NE(error_with([](json::object& line) { line["license"] = "Unknown"; }).find("Apache-2.0"),
            std::string::npos);
  EXPECT_NE(error_with([](json::object& line) {
              line["source"] = std::string(line["source"].as_string()) + "\nint other;\n";
            }).find("sha256"),
            std::string::npos);
}

TEST_F(ImportedTest, EachNameStandsOnce) {
  const auto path = folder_ / "results/h200/imported.jsonl";
  ASSERT_TRUE(append_imported(path, imported("a")));
  ASSERT_TRUE(append_imported(path, imported("b")));
  ASSERT_TRUE(load_imported(path));
  ASSERT_TRUE(append_imported(path, imported("a")));
  const auto loaded = load_imported(path);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("line 3"), std::string::npos);
}

TEST_F(ImportedTest, BecomesARowUnderItsOwnLicence) {
  struct Collected : RowStream {
    void put(std::string_view, Split, const json::object& row) override { rows.push_back(row); }
    std::vector<json::object> rows;
  } collected;
  ASSERT_TRUE(append_imported(folder_ / "results/h200/imported.jsonl", imported("a")));
  NearDuplicates near;
  const Result<Ok> put = put_imported_rows(folder_.path(), near, collected);
  ASSERT_TRUE(put) << put.error().message;
  ASSERT_EQ(collected.rows.size(), 1u);
  const json::object& row = collected.rows.front();
  EXPECT_EQ(row.at("origin"), "imported");
  EXPECT_EQ(row.at("license"), "MIT");
  EXPECT_EQ(row.at("status"), "passed");
  EXPECT_EQ(row.at("median_ns"), 700000);
  EXPECT_EQ(row.at("device"), "NVIDIA H200");
}

}  // namespace
}  // namespace rekernel
