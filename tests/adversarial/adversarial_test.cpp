// Every cheat in this folder must get the status that its expected.json names. What a plan or a
// source gives away is caught without a GPU; the rest is judged by the program itself, as a user
// would.

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/candidate.h"
#include "harness/compile.h"
#include "harness/cuda.h"
#include "harness/evaluation.h"
#include "harness/files.h"
#include "harness/json.h"
#include "ops/catalog.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

struct Fixture {
  fs::path folder;
  Status status = Status::passed;
  std::vector<std::string> without_badges;
};

Fixture read_fixture(const fs::path& folder) {
  const fs::path path = folder / "expected.json";
  Result<std::string> text = read_file(path);
  if (!text) throw std::runtime_error(text.error().message);
  Result<boost::json::value> json = parse_json(*text, path.string());
  if (!json) throw std::runtime_error(json.error().message);
  JsonReader reader(path.string(), *json);
  Fixture fixture{folder, {}, {}};
  const auto status = status_from_string(reader.required("status").string());
  if (!status) throw std::runtime_error(path.string() + ": unknown status");
  fixture.status = *status;
  if (auto badges = reader.optional("without_badges")) {
    for (JsonReader& badge : badges->array()) fixture.without_badges.push_back(badge.string());
  }
  reader.no_other_keys();
  if (auto error = reader.error()) throw std::runtime_error(error->message);
  return fixture;
}

std::vector<Fixture> fixtures() {
  std::vector<Fixture> all;
  for (const auto& entry : fs::directory_iterator(REKERNEL_SOURCE_DIR "/tests/adversarial")) {
    if (entry.is_directory()) all.push_back(read_fixture(entry.path()));
  }
  std::sort(all.begin(), all.end(),
            [](const Fixture& a, const Fixture& b) { return a.folder < b.folder; });
  return all;
}

std::string name_of(const testing::TestParamInfo<Fixture>& info) {
  return info.param.folder.filename().string();
}

/// The status that needs no GPU to know, or `passed` if that far nothing is wrong.
Status status_without_gpu(const fs::path& folder) {
  Result<Candidate> candidate = load_candidate(folder);
  if (!candidate) return Status::invalid_plan;
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) throw std::runtime_error(compiler.error().message);
  Result<CompiledProgram> compiled = compiler->compile(
      candidate->program, problem_header(*find_problem(candidate->problem)), "sm_90a");
  if (!compiled) return Status::compile_failed;
  if (!check_launches(candidate->program, *compiled, candidate->name)) return Status::invalid_plan;
  return Status::passed;
}

class NvrtcAdversarial : public testing::TestWithParam<Fixture> {};

TEST_P(NvrtcAdversarial, IsCaughtWithoutAGpuOrCompiles) {
  const Fixture& fixture = GetParam();
  const bool early =
      fixture.status == Status::invalid_plan || fixture.status == Status::compile_failed;
  EXPECT_EQ(std::string(to_string(status_without_gpu(fixture.folder))),
            to_string(early ? fixture.status : Status::passed));
}

INSTANTIATE_TEST_SUITE_P(Nvrtc, NvrtcAdversarial, testing::ValuesIn(fixtures()), name_of);

/// What `rekernel evaluate` prints, and its exit status.
struct Verdict {
  int exit_status = -1;
  std::string output;
};

Verdict evaluate(const fs::path& folder) {
  const std::string command = std::string("\"") + REKERNEL_PROGRAM + "\" evaluate \"" +
                              folder.string() + "\" --json --deadline 20 2>&1";
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  Verdict verdict;
  std::array<char, 4096> chunk;
  for (std::size_t count; (count = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
    verdict.output.append(chunk.data(), count);
  }
  verdict.exit_status = WEXITSTATUS(::pclose(pipe));
  return verdict;
}

class GpuAdversarial : public testing::TestWithParam<Fixture> {};

TEST_P(GpuAdversarial, GetsItsStatus) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  const Fixture& fixture = GetParam();
  const Verdict verdict = evaluate(fixture.folder);
  if (fixture.status == Status::invalid_plan && !load_candidate(fixture.folder)) {
    EXPECT_EQ(verdict.exit_status, 2) << verdict.output;
    return;
  }
  ASSERT_EQ(verdict.exit_status, fixture.status == Status::passed ? 0 : 1) << verdict.output;
  Result<boost::json::value> json = parse_json(verdict.output, "verdict");
  ASSERT_TRUE(json.ok()) << verdict.output;
  Result<Evaluation> evaluation = evaluation_from_json(JsonReader("verdict", *json));
  ASSERT_TRUE(evaluation.ok()) << evaluation.error().message;
  EXPECT_EQ(std::string(to_string(evaluation->status)), to_string(fixture.status))
      << evaluation->message;
  const std::vector<std::string> badges = evaluation->badges();
  for (const std::string& badge : fixture.without_badges) {
    EXPECT_EQ(std::count(badges.begin(), badges.end(), badge), 0) << badge;
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuAdversarial, testing::ValuesIn(fixtures()), name_of);

}  // namespace
}  // namespace rekernel
