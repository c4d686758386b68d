#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "harness/jobs/slurm_launcher.h"
#include "harness/process/isolate.h"
#include "tests/harness/jobs/named_candidate.h"

namespace rekernel::testing {

inline constexpr SlurmTimes short_times{
    std::chrono::milliseconds(100), std::chrono::milliseconds(400), std::chrono::seconds(3),
    std::chrono::milliseconds(300), std::chrono::seconds(2),        std::chrono::seconds(3)};

/// A launcher on a folder, and what came out of it.
struct Jobs {
  explicit Jobs(const std::filesystem::path& where) : folder(where) {
    options.program = own_executable();
    options.target = "sm_90a";
    options.say = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      said += text + "\n";
    };
  }

  Result<std::unique_ptr<SlurmLauncher>> open() {
    Result<JobFolder> opened = JobFolder::open(folder);
    if (!opened) return opened.error();
    return SlurmLauncher::open(std::move(*opened), slurm, options, short_times);
  }

  /// Evaluates candidates of these names at the same time; their failures, or "".
  template <class Launcher>
  std::map<std::string, std::string> evaluate(Launcher& launcher,
                                              const std::vector<std::string>& names) {
    std::map<std::string, std::future<EvaluationReport>> reports;
    for (const std::string& name : names) {
      reports[name] = std::async(std::launch::async,
                                 [&launcher, name] { return launcher.evaluate(named(name), {}); });
    }
    std::map<std::string, std::string> failures;
    for (auto& [name, report] : reports) {
      const EvaluationReport got = report.get();
      EXPECT_EQ(got.evaluation.kernel, name);
      EXPECT_EQ(got.evaluation.message, got.failure.empty() ? "made up" : "") << name;
      failures[name] = got.failure;
    }
    return failures;
  }

  /// The nodes on which it was begun, in order.
  std::vector<std::string> begun(const std::string& name) const {
    std::vector<std::string> nodes;
    std::ifstream file(folder / ("begun." + name));
    for (std::string line; std::getline(file, line);) nodes.push_back(line);
    return nodes;
  }

  /// Until so many of these were begun.
  bool waits_for(const std::vector<std::string>& names, std::ptrdiff_t count = 1) const {
    for (int i = 0; i < 300; ++i) {
      const auto is_begun = [&](const std::string& name) { return !begun(name).empty(); };
      if (std::count_if(names.begin(), names.end(), is_begun) >= count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  bool said_that(const std::string& part) {
    const std::lock_guard lock(mutex);
    return said.find(part) != std::string::npos;
  }

  std::filesystem::path folder;
  SlurmJobOptions slurm;
  JobOptions options;
  std::mutex mutex;
  std::string said;
};

inline std::vector<std::string> several(const std::string& kind, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(kind + "_" + std::to_string(i));
  return names;
}

}  // namespace rekernel::testing
