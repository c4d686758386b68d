#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/base/files.h"
#include "harness/jobs/slurm_client.h"
#include "tests/temporary.h"

namespace rekernel::testing {

/// A folder of scripts in the place of Slurm's commands. Each notes its arguments.
class FakeSlurm {
 public:
  FakeSlurm() {
    for (const char* name : {"sbatch", "squeue", "scancel"}) says(name, "");
  }

  /// The script of a command from now on; `cat` of its input is what sbatch was given.
  void says(const std::string& command, const std::string& script) {
    const std::filesystem::path path = home_ / command;
    EXPECT_TRUE(write_file_atomically(path, "#!/bin/sh\necho \"" + command + " $*\" >>'" +
                                                (home_ / "asked").string() + "'\n" + script));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  void lacks(const std::string& command) { std::filesystem::remove(home_ / command); }

  /// All that was asked, a line each.
  std::string asked() const {
    const Result<std::string> text = read_file(home_ / "asked");
    return text ? *text : "";
  }

  SlurmClient client(SlurmJobOptions options = {}) const {
    return {std::move(options),
            {{"PATH=" + home_.path().string() + ":/usr/bin:/bin"}},
            std::chrono::seconds(20)};
  }

 private:
  TemporaryFolder home_{"/tmp"};  // programs may not start from memory
};

}  // namespace rekernel::testing
