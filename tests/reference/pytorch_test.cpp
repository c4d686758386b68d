#include "reference/pytorch.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <filesystem>
#include <fstream>

#include "ops/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A `python3` that is a shell script of the test's.
class Pytorch : public testing::Test {
 protected:
  /// `reply QUESTION ANSWER` gives the answer the question's token; `hear NAME` reads a question.
  static constexpr char answers[] =
      "reply() { rest=${1##*\\\"token\\\":}; echo \"${2%\\}}, \\\"token\\\": ${rest%\\}}}\"; }\n"
      "hear() { IFS= read -r \"$1\"; }\n";

  void python3_is(const std::string& body) {
    const fs::path path = folder_.path() / "python3";
    std::ofstream(path) << "#!/bin/sh\n" << answers << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  Result<std::unique_ptr<PytorchReference>> start(std::chrono::milliseconds deadline = 20s,
                                                  std::chrono::milliseconds block = 20s) {
    Result<std::unique_ptr<PytorchProcess>> process = PytorchProcess::spawn();
    if (!process) return process.error();
    process_ = std::move(*process);
    return connect(deadline, block);
  }

  /// What every evaluation does: with descriptors of its own to the process that goes on.
  Result<std::unique_ptr<PytorchReference>> connect(std::chrono::milliseconds deadline = 20s,
                                                    std::chrono::milliseconds block = 20s) {
    const auto shared = process_->descriptors();
    if (!shared) return shared.error();
    return PytorchReference::connect({::dup((*shared)[0]), ::dup((*shared)[1])},
                                     *find_problem("softmax"), "pytorch_eager", 0, deadline, block);
  }

  TemporaryFolder folder_{std::filesystem::temp_directory_path()};  // where a program may start
  std::unique_ptr<PytorchProcess> process_;
  ScopedVariable path_{"PATH", folder_.path().string() + ":/usr/bin:/bin"};
};

constexpr char ready[] =
    "hear problem; reply \"$problem\" '{\"ready\": true, \"torch\": \"2.11.0\"}'\n";

TEST_F(Pytorch, TimesBlocks) {
  python3_is(std::string(ready) + "echo \"$problem\" > " + (folder_.path() / "problem").string() +
             "\nwhile hear block; do reply \"$block\" '{\"times_ns\": [1053000, 1054000]}'; done");
  auto reference = start();
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_EQ((*reference)->version(), "2.11.0");
  EXPECT_EQ((*reference)->details(), "PyTorch 2.11.0");
  for (std::uint64_t seed : {std::uint64_t{0}, UINT64_MAX}) {
    const auto times = (*reference)->time_block(2, seed);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_EQ(*times, (std::vector<std::int64_t>{1053000, 1054000}));
  }

  std::ifstream file(folder_.path() / "problem");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  const boost::json::object problem = boost::json::parse(line).as_object();
  EXPECT_EQ(problem.at("problem"), "softmax");
  EXPECT_EQ(problem.at("mode"), "pytorch_eager");
  EXPECT_EQ(problem.at("attributes").at("columns"), 65536);
  const boost::json::value& x = problem.at("tensors").at(0);
  EXPECT_EQ(x.at("name"), "x");
  EXPECT_EQ(x.at("dtype"), "f32");
  EXPECT_EQ(x.at("role"), "input");
  EXPECT_EQ(x.at("shape"), (boost::json::array{4096, 65536}));
  EXPECT_EQ(x.at("distribution").at("kind"), "normal");
}

TEST_F(Pytorch, WrongNumberOfTimesIsAnError) {
  python3_is(std::string(ready) +
             "while hear block; do reply \"$block\" '{\"times_ns\": [1]}'; done");
  auto reference = start();
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_FALSE((*reference)->time_block(2, 0));
}

TEST_F(Pytorch, TimesThatAreNoPositiveIntegersAreErrors) {
  for (const char* times : {"[0]", "[-5]", "[1.5]", "[null]", "{}"}) {
    python3_is(std::string(ready) +
               "while hear block; do reply \"$block\" '{\"times_ns\": " + times + "}'; done");
    auto reference = start();
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_FALSE((*reference)->time_block(1, 0)) << times;
  }
}

TEST_F(Pytorch, ItsErrorIsOurs) {
  python3_is(
      "hear problem; reply \"$problem\" '{\"error\": \"PyTorch is not installed (no module)\"}'");
  const auto reference = start();
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch is not installed (no module)");
}

TEST_F(Pytorch, GarbageIsAnError) {
  for (const char* garbage :
       {"echo hello", "echo '[1]'", "echo '{\"ready\": true, \"torch\": \"2\"}'",
        "reply \"$problem\" '{\"ready\": false, \"torch\": \"2\"}'", "head -c 3000000 /dev/zero"}) {
    python3_is(std::string("hear problem; ") + garbage + "; sleep 30");
    EXPECT_FALSE(start(500ms)) << garbage;
  }
}

TEST_F(Pytorch, LastLineOfStandardErrorExplainsAnEarlyEnd) {
  python3_is("hear problem; echo first >&2; echo 'Segmentation fault' >&2; exit 139");
  const auto reference = start();
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch: python3 ended (Segmentation fault)");
}

TEST_F(Pytorch, HangingStartIsCutOff) {
  python3_is("hear problem; sleep 60");
  const auto begin = std::chrono::steady_clock::now();
  const auto reference = start(300ms);
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch: no answer within the deadline");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(Pytorch, HangingBlockIsCutOffAndTheProcessKilled) {
  const fs::path pid_file = folder_.path() / "pid";
  python3_is(std::string(ready) + "echo $$ > " + pid_file.string() + "\nhear block; sleep 60");
  pid_t pid = 0;
  {
    auto reference = start(20s, 300ms);
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_FALSE((*reference)->time_block(1, 0));
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 0);
  }
  process_.reset();
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(pid)));
}

TEST_F(Pytorch, ServesOneEvaluationAfterTheOther) {
  // The first evaluation does not wait for its answer; the second one gets its own all the same.
  python3_is(std::string(ready) +
             "hear block; late=$block\nhear again; reply \"$late\" '{\"times_ns\": [1]}'" +
             "\nreply \"$again\" '{\"ready\": true, \"torch\": \"2.12.0\"}'\nsleep 30");
  {
    auto reference = start(20s, 100ms);
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_FALSE((*reference)->time_block(1, 0));
  }
  const auto reference = connect();
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_EQ((*reference)->version(), "2.12.0");
}

TEST_F(Pytorch, MissingPythonIsAnError) {
  ScopedVariable nowhere("PATH", folder_.path().string());
  const auto reference = start();
  ASSERT_FALSE(reference);
  EXPECT_TRUE(reference.error().message.starts_with("PyTorch is not installed"))
      << reference.error().message;
}

TEST(PytorchScript, Compiles) {
  const std::string script = std::string(REKERNEL_SOURCE_DIR) + "/reference/pytorch.py";
  // Into memory: compiling must leave nothing in the sources.
  const std::string command =
      "python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], \"exec\")' '" +
      script + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(PytorchScript, SaysThatPytorchIsMissing) {
  TemporaryFolder folder;
  // A torch that cannot be imported stands in front of one that may be there.
  std::ofstream(folder.path() / "torch.py") << "raise ImportError('not here')\n";
  ScopedVariable path("PYTHONPATH", folder.path().string());
  auto process = PytorchProcess::spawn();
  ASSERT_TRUE(process) << process.error().message;
  const auto shared = (*process)->descriptors();
  ASSERT_TRUE(shared) << shared.error().message;
  const auto reference =
      PytorchReference::connect({::dup((*shared)[0]), ::dup((*shared)[1])},
                                *find_problem("softmax"), "pytorch_eager", 0, 60s);
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch is not installed (ImportError: not here)");
}

}  // namespace
}  // namespace rekernel
