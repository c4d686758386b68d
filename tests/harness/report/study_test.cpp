#include "harness/report/study.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/report/data.h"
#include "replay/search/study.h"
#include "tests/replay/fakes.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// A project with a study of two problems, of which one search is there.
class StudyInReport : public ::testing::Test {
 protected:
  StudyInReport() {
    fs::create_directories(folder_ / "trajectories/two");
    profiled_ = drawn({"softmax", "gelu"}, 1).front() == "softmax";
    testing::write_text(folder_ / "trajectories/two/study.json",
                        R"({"schema": 1, "name": "two", "problems": ["softmax", "gelu"],
                            "search": {}, "profiled": [")" +
                            drawn({"softmax", "gelu"}, 1).front() + "\"]}");
  }
  void record() {
    Header header = testing::small_header();
    header.name = "two-softmax";
    testing::recorded_search(folder_ / "trajectories/two-softmax.jsonl", header);
  }

  TemporaryFolder folder_;
  bool profiled_ = false;
};

TEST_F(StudyInReport, IsNotThereBeforeASearchHasEnded) {
  const auto none = studies_on_record(folder_.path());
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(studies_markdown(*none), "");
  record();
  const fs::path path = folder_ / "trajectories/two-softmax.jsonl";
  std::vector<std::string> lines = testing::lines_of(testing::read_text(path));
  lines.pop_back();  // the stop
  testing::write_text(path, testing::joined(lines));
  EXPECT_EQ(studies_markdown(*studies_on_record(folder_.path())), "");
}

TEST_F(StudyInReport, ShowsTheSearchesThatAreThere) {
  record();
  const auto studies = studies_on_record(folder_.path());
  ASSERT_TRUE(studies) << studies.error().message;
  const std::string text = studies_markdown(*studies);
  for (const std::string& part :
       {std::string("(results/pictures/study-two.svg)"),
        std::string(profiled_ ? "| softmax | yes |" : "| softmax |  |"),
        std::string("1 of its 2 searches have come to their end"),
        std::string("(trajectories/two/STUDY.md)"), std::string("12 candidates were right")}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  RecordComplaints complaints(folder_.path());
  const boost::json::array entries = report_studies(complaints);
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].at("name"), "two");
  EXPECT_EQ(entries[0].at("rounds"), 3);
  EXPECT_EQ(entries[0].at("searches").at(0).at("best_so_far").as_array().size(), 4u);
  EXPECT_TRUE(complaints.all().empty());
}

TEST_F(StudyInReport, NamesFilesThatDoNotReplay) {
  testing::write_text(folder_ / "trajectories/two-gelu.jsonl", "{\"event\":\"other\"}\n");
  record();
  RecordComplaints complaints(folder_.path());
  EXPECT_EQ(report_studies(complaints).size(), 1u);
  ASSERT_FALSE(complaints.all().empty());
  testing::write_text(folder_ / "trajectories/two/study.json", "{}");
  EXPECT_FALSE(studies_on_record(folder_.path()));
}

}  // namespace
}  // namespace rekernel
