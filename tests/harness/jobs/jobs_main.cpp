// The main function of the tests of launchers. As a job's program it is a made-up evaluator, which
// does what the candidate's name says: that jobs are submitted, watched and submitted again is
// real.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "harness/compile/compile_isolated.h"
#include "harness/jobs/job_folder.h"

namespace rekernel {

/// Evaluates some candidates on Slurm until it is killed (slurm_launcher_test.cpp).
int submit_slow_candidates(const char* folder);

namespace {

std::string node() {
  const char* name = std::getenv("SLURMD_NODENAME");
  return name ? name : "here";
}

/// How often it was begun with this candidate, this time included; with the place of each.
int begun(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path = folder / ("begun." + name);
  std::ofstream(path, std::ios::app)
      << node() << (std::getenv("OPENAI_API_KEY") ? ", with a key" : "") << "\n";
  std::ifstream file(path);
  int count = 0;
  for (std::string line; std::getline(file, line);) ++count;
  return count;
}

EvaluationReport made_up(const std::filesystem::path& folder, const std::string& key,
                         const Candidate& candidate) {
  const std::string kind = candidate.name.substr(0, candidate.name.find('_'));
  const int times = begun(folder, candidate.name);
  EvaluationReport report = blank_report(candidate);
  report.evaluation.status = Status::wrong_result;
  report.evaluation.message = "made up";
  report.evaluation.target = "sm_90a";
  report.device.emplace();
  report.device->name = kind == "kinds" && node() == "n2" ? "Other GPU" : "Some GPU";
  report.toolchain = "made up on " + node();
  if (const char* pause = std::getenv("REKERNEL_TEST_SECONDS")) {
    std::this_thread::sleep_for(std::chrono::seconds(std::atoi(pause)));
  }
  if (kind == "slow") std::this_thread::sleep_for(std::chrono::seconds(3));
  const bool hangs = kind == "hangs" || kind == "frail";
  if (hangs && times == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  if (kind == "never" || (kind == "silent" && times == 1)) ::_exit(0);
  if (kind == "dies" || kind == "frail") ::_exit(9);
  if (kind == "torn" && times == 1) {
    std::ofstream(folder / "results" / key) << "rekernel-job 1000 ";
    ::_exit(0);
  }
  if (kind == "broken" && node() == "n1") report.failure = "the GPU throttles";
  if (kind == "cursed") report.failure = "no GPU";
  return report;
}

}  // namespace
}  // namespace rekernel

int main(int argc, char** argv) {
  using namespace rekernel;
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "compile-worker") return run_compile_worker();
  if (role == "evaluate-job" && argc == 4) {
    const std::filesystem::path folder = argv[2];
    const std::string key = argv[3];
    const auto done = run_job(folder, key, [&](const Candidate& candidate, const auto&) {
      return made_up(folder, key, candidate);
    });
    if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return done ? 0 : 2;
  }
  if (role == "submit" && argc == 3) return submit_slow_candidates(argv[2]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
