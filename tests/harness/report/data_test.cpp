#include "harness/report/data.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

std::string complaints_text(const RecordComplaints& complaints) {
  std::string text;
  for (const Complaint& one : complaints.all()) text += one.file + ": " + one.message + "\n";
  return text;
}

/// A project with the times of this one, and one of its kernels.
class ReportData : public ::testing::Test {
 protected:
  ReportData() {
    fs::create_directories(root_ / "results/h200");
    fs::copy_file(source_ / "results/h200/bench.json", root_ / "results/h200/bench.json");
    fs::create_directories(root_ / "generated" / kernel);
    for (const char* name : {"kernel.cu", "kernel.json"}) {
      fs::copy_file(source_ / "generated" / kernel / name, root_ / "generated" / kernel / name);
    }
  }

  const json::object& row_of_the_kernel(const json::object& data) const {
    for (const json::value& row : data.at("devices").at(0).at("rows").as_array()) {
      if (row.at("problem") == "softmax" && row.at("kernel") == "cluster_with_prefetch") {
        return row.as_object();
      }
    }
    throw std::runtime_error("no row");
  }

  static constexpr const char* kernel = "softmax/cluster_with_prefetch";
  const fs::path source_ = REKERNEL_SOURCE_DIR;
  TemporaryFolder folder_;
  const fs::path root_ = folder_ / "project";
};

TEST_F(ReportData, AnEmptyProjectHasAllPartsAndComplaints) {
  RecordComplaints complaints(folder_ / "nothing");
  const json::object data = report_data(complaints);
  for (const char* part : {"schema", "badges", "problems", "kernels", "devices", "searches",
                           "gallery", "complaints"}) {
    EXPECT_TRUE(data.contains(part)) << part;
  }
  EXPECT_TRUE(data.at("devices").as_array().empty());
  EXPECT_NE(complaints_text(complaints).find("results: nothing was measured on any device"),
            std::string::npos)
      << complaints_text(complaints);
}

TEST_F(ReportData, ARowKnowsWhetherItIsOfThePresentKernel) {
  RecordComplaints complaints(root_);
  const json::object data = report_data(complaints);
  ASSERT_EQ(data.at("kernels").as_array().size(), 1u) << complaints_text(complaints);
  EXPECT_EQ(row_of_the_kernel(data).at("of_the_present_kernel"), true);
  EXPECT_NE(complaints_text(complaints)
                .find("times are recorded for this kernel, which cannot be read here"),
            std::string::npos);

  std::ofstream(root_ / "generated" / kernel / "kernel.cu", std::ios::app) << "// changed\n";
  RecordComplaints later(root_);
  const json::object changed = report_data(later);
  EXPECT_EQ(row_of_the_kernel(changed).at("of_the_present_kernel"), false);
  EXPECT_NE(complaints_text(later).find("a recorded time is of an earlier version of it"),
            std::string::npos);
}

TEST_F(ReportData, FastPFallsFromTheShareThatIsCorrect) {
  RecordComplaints complaints(root_);
  const json::object data = report_data(complaints);
  const json::array& steps = data.at("devices").at(0).at("fast_p").as_array();
  ASSERT_GE(steps.size(), 2u);
  EXPECT_EQ(steps[0].at("p").to_number<double>(), 0.0);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    EXPECT_LT(steps[i - 1].at("p").to_number<double>(), steps[i].at("p").to_number<double>());
    EXPECT_GE(steps[i - 1].at("value").to_number<double>(),
              steps[i].at("value").to_number<double>());
  }
}

TEST_F(ReportData, ARecordThatCannotBeReadIsLeftOutAndNamed) {
  std::ofstream(root_ / "results/h200/bench.json") << "{";
  RecordComplaints complaints(root_);
  const json::object data = report_data(complaints);
  EXPECT_TRUE(complaints.any_unreadable());
  EXPECT_FALSE(data.at("devices").at(0).as_object().contains("rows"));
  EXPECT_NE(complaints_text(complaints).find("results/h200/bench.json: "), std::string::npos);
}

TEST_F(ReportData, TextIsUtf8AndNumbersAreFinite) {
  std::ofstream(root_ / "bytes") << "a\xff"
                                 << "b";
  RecordComplaints complaints(root_);
  EXPECT_EQ(text_for_report(root_ / "bytes", complaints),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(text_for_report(root_ / "absent", complaints), "");
  EXPECT_TRUE(complaints.any_unreadable());
  EXPECT_EQ(finite_or_null(1.5), 1.5);
  EXPECT_TRUE(finite_or_null(std::numeric_limits<double>::infinity()).is_null());
  EXPECT_TRUE(finite_or_null(std::numeric_limits<double>::quiet_NaN()).is_null());
}

}  // namespace
}  // namespace rekernel
