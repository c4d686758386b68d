#include "harness/explain/problem_page.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "harness/problems/catalog.h"
#include "tests/problems.h"

namespace rekernel {
namespace {

Bench bench_with_rows() {
  Bench bench;
  bench.device_name = "NVIDIA H200";
  bench.ceilings = {4'000'000'000'000, 700'000'000'000'000};
  for (const std::int64_t median : {900'000, 600'000, 100'000}) {
    BenchRow row;
    row.problem = "softmax";
    row.kernel = "takes_" + std::to_string(median);
    row.status = median > 100'000 ? Status::passed : Status::wrong_result;
    row.median_ns = median;
    for (const char* id : {"cudnn_softmax", "pytorch_eager", "pytorch_compile"}) {
      RecordedReference reference;
      reference.id = id;
      reference.median_ns = 2 * median + static_cast<std::int64_t>(reference.id.size());
      row.references.push_back(reference);
    }
    bench.rows.push_back(row);
  }
  return bench;
}

TEST(ProblemPage, HasTheFastestThatPassedAndTheReferences) {
  const Problem& problem = *find_problem("softmax");
  const std::vector<ProblemOnDevice> devices = problem_on_devices(problem, {bench_with_rows()});
  ASSERT_GE(devices.size(), 2u);
  EXPECT_EQ(devices[0].device, "NVIDIA H200");
  EXPECT_EQ(devices[0].kernel, "takes_600000");
  EXPECT_EQ(devices[0].kernel_ns, 600'000);
  EXPECT_EQ(devices[0].library, "cudnn_softmax");
  EXPECT_EQ(devices[0].pytorch_ns, 200'013);
  EXPECT_EQ(devices[0].pytorch_compile_ns, 200'015);
  EXPECT_EQ(devices[0].ceiling_ns, 536'871);
  // Chips of which nothing is recorded have the bound of their figures alone.
  EXPECT_GT(devices.back().speed_of_light_ns, 0);
  EXPECT_EQ(devices.back().ceiling_ns, 0);
  EXPECT_EQ(devices.back().kernel_ns, 0);
}

TEST(ProblemPage, ShowsAProgramAsItIsWritten) {
  const std::string page = problem_page(program_problem(), {}, {}, {});
  EXPECT_NE(page.find("  | def run(x):\n  |     return x.cumsum(0)\n"), std::string::npos) << page;
  EXPECT_EQ(page.find("PyTorch     "), std::string::npos) << page;
}

TEST(ProblemPage, AnswersHowFastItCouldBeAndHowFastPytorchIs) {
  const Problem& problem = *find_problem("softmax");
  const std::vector<ProblemOnDevice> devices = problem_on_devices(problem, {bench_with_rows()});
  const std::string page = problem_page(problem, {"rows (sm_90a)"}, devices, {});
  for (const char* part :
       {"y[i, j] = exp(x[i, j] - largest[i]) / total[i]", "  | inline constexpr int rows = 4096;",
        "- input x: f32 (4096, 65536), normal with mean 0 and deviation 1",
        "rms(error) ≤ 0.0001 · rms(truth)", "cooperative_groups.h", "2147483648 bytes",
        "recorded ones, in ms, not measured now", "0.6000 (takes_600000)", "rows (sm_90a)"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  }
  EXPECT_EQ(page.find("None is recorded"), std::string::npos);
  const std::string without = problem_page(problem, {}, problem_on_devices(problem, {}), {});
  EXPECT_NE(without.find("None is recorded"), std::string::npos) << without;
  const boost::json::object json = problem_json(problem, {"rows (sm_90a)"}, devices);
  EXPECT_EQ(json.at("kernels").at(0), "rows (sm_90a)");
  EXPECT_EQ(json.at("devices").at(0).at("pytorch_eager_ns"), 200'013);
}

}  // namespace
}  // namespace rekernel
