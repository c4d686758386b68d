// Every cheat in this folder must get the status that its expected.json names. What a plan or a
// source gives away is caught without a GPU; the rest is judged by the program itself, as a user
// would.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "harness/audit/gallery.h"
#include "harness/base/files.h"
#include "harness/candidate/candidate.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/evaluation.h"
#include "harness/gpu/cuda.h"
#include "harness/problems/catalog.h"
#include "tests/evaluate_program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

std::vector<Cheat> fixtures() {
  Result<std::vector<Cheat>> cheats = load_cheats(REKERNEL_SOURCE_DIR);
  if (!cheats) throw std::runtime_error(cheats.error().message);
  return std::move(*cheats);
}

std::string name_of(const testing::TestParamInfo<Cheat>& info) {
  return info.param.folder.filename().string();
}

/// The status that needs no GPU to know, or `passed` if that far nothing is wrong.
Status status_without_gpu(const fs::path& folder, std::chrono::seconds deadline) {
  Result<Candidate> candidate = load_candidate(folder);
  if (!candidate) return Status::invalid_plan;
  Result<Compiler> compiler = Compiler::load();
  if (!compiler) throw std::runtime_error(compiler.error().message);
  Result<CompileOutcome> compiled =
      compile_isolated(*compiler, candidate->program,
                       problem_header(*find_problem(candidate->problem)), "sm_90a", deadline);
  if (!compiled) throw std::runtime_error(compiled.error().message);
  if (!compiled->program) return compiled->status;
  if (!check_launches(candidate->program, *compiled->program, candidate->name)) {
    return Status::invalid_plan;
  }
  return Status::passed;
}

TEST(Gallery, PageShowsTheFixtures) {
  const Result<std::string> expected = gallery_page(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const Result<std::string> present =
      read_file(fs::path(REKERNEL_SOURCE_DIR) / "tests/adversarial/README.md");
  ASSERT_TRUE(present.ok()) << present.error().message;
  EXPECT_EQ(*present, *expected) << "run `rekernel report --readme`";
}

TEST(Gallery, AFixtureMayNameOtherStatusesThatAreAsGood) {
  const TemporaryFolder root;
  const fs::path folder = root.path() / "tests/adversarial/one";
  fs::create_directories(folder);
  const auto load = [&](const std::string& others) {
    std::ofstream(folder / "expected.json")
        << R"({"status": "forged_time", "or": )" << others
        << R"(, "cheat": "one", "caught_by": "one", "no_more_than_percent": 12})";
    return load_cheats(root.path());
  };
  const Result<std::vector<Cheat>> cheats = load(R"(["passed", "crashed"])");
  ASSERT_TRUE(cheats.ok()) << cheats.error().message;
  const Cheat& cheat = cheats->front();
  EXPECT_EQ(cheat.no_more_than_percent, 12);
  for (const Status allowed : {Status::forged_time, Status::passed, Status::crashed}) {
    EXPECT_TRUE(cheat.allows(allowed)) << to_string(allowed);
  }
  EXPECT_FALSE(cheat.allows(Status::wrong_result));
  EXPECT_FALSE(load(R"(["caught"])").ok());
  EXPECT_FALSE(load(R"("passed")").ok());
}

TEST(Gallery, AFixtureMayNameTheLeastErrorThatHasToBeShown) {
  const TemporaryFolder root;
  const fs::path folder = root.path() / "tests/adversarial/one";
  fs::create_directories(folder);
  const auto load = [&](const std::string& share) {
    std::ofstream(folder / "expected.json")
        << R"({"status": "passed", "cheat": "one", "caught_by": "one", "worst_error_at_least": )"
        << share << "}";
    return load_cheat(folder);
  };
  const Result<Cheat> cheat = load("0.02");
  ASSERT_TRUE(cheat.ok()) << cheat.error().message;
  EXPECT_EQ(cheat->worst_error_at_least, 0.02);
  for (const char* share : {"0", "-1", "1.5", "1e999", R"("0.02")"}) {
    EXPECT_FALSE(load(share).ok()) << share;
  }
}

/// Whether the verdict needs no GPU.
bool is_early(const Cheat& cheat) {
  return cheat.status == Status::invalid_plan || cheat.status == Status::compile_failed ||
         cheat.compile_deadline_s;
}

/// The fixture's folder, or another one that holds the same cheat.
void expect_caught_or_compiled(const Cheat& fixture, const fs::path& folder) {
  const std::chrono::seconds deadline(
      fixture.compile_deadline_s.value_or(compile_deadline.count()));
  const Status status = status_without_gpu(folder, deadline);
  if (!is_early(fixture) && status == Status::passed) return;
  EXPECT_TRUE(fixture.allows(status)) << to_string(status);
}

/// The fixture under another name and with another text.
class Disguise {
 public:
  explicit Disguise(const Cheat& cheat) {
    std::string plan = *read_file(cheat.folder / "kernel.json");
    const std::string name = "\"name\": \"" + cheat.folder.filename().string() + "\"";
    if (const std::size_t at = plan.find(name); at != std::string::npos) {
      plan.replace(at, name.size(), "\"name\": \"innocent\"");
    }
    std::ofstream(folder_ / "kernel.json") << plan;
    for (const fs::directory_entry& entry : fs::directory_iterator(cheat.folder)) {
      if (entry.path().extension() != ".json") disguise(entry.path());
    }
  }
  const fs::path& folder() const { return folder_.path(); }

 private:
  void disguise(const fs::path& code) {
    const fs::path copy = folder_ / code.filename().string();
    if (fs::is_symlink(code)) {
      fs::create_symlink(fs::canonical(code), copy);
    } else {
      const bool in_cuda = code.extension() == ".cu";
      std::ofstream(copy, std::ios::binary)
          << (in_cuda ? "namespace innocent {}\n" : "") << *read_file(code);
    }
  }

  TemporaryFolder folder_;
};

class NvrtcAdversarial : public testing::TestWithParam<Cheat> {};

TEST_P(NvrtcAdversarial, IsCaughtWithoutAGpuOrCompiles) {
  expect_caught_or_compiled(GetParam(), GetParam().folder);
}

INSTANTIATE_TEST_SUITE_P(Nvrtc, NvrtcAdversarial, testing::ValuesIn(fixtures()), name_of);

/// What a plan or a source gives away.
std::vector<Cheat> early_fixtures() {
  std::vector<Cheat> early = fixtures();
  std::erase_if(early, [](const Cheat& cheat) { return !is_early(cheat); });
  return early;
}

class NvrtcDisguised : public testing::TestWithParam<Cheat> {};

TEST_P(NvrtcDisguised, IsCaughtToo) {
  expect_caught_or_compiled(GetParam(), Disguise(GetParam()).folder());
}

INSTANTIATE_TEST_SUITE_P(Nvrtc, NvrtcDisguised, testing::ValuesIn(early_fixtures()), name_of);

Verdict evaluate(const Cheat& fixture) {
  constexpr std::int64_t usual_deadline_s = 20;
  return run_evaluate(
      fixture.folder,
      "--deadline " + std::to_string(fixture.deadline_s.value_or(usual_deadline_s)));
}

/// What is refused before anything is compiled.
std::vector<Cheat> unreadable_fixtures() {
  std::vector<Cheat> unreadable = fixtures();
  unreadable.erase(
      std::remove_if(unreadable.begin(), unreadable.end(),
                     [](const Cheat& cheat) { return load_candidate(cheat.folder).ok(); }),
      unreadable.end());
  return unreadable;
}

class UnreadableAdversarial : public testing::TestWithParam<Cheat> {};

TEST_P(UnreadableAdversarial, IsBadInput) {
  const Cheat& fixture = GetParam();
  EXPECT_EQ(fixture.status, Status::invalid_plan);
  const Verdict verdict = evaluate(fixture);
  EXPECT_EQ(verdict.exit_status, 2) << verdict.output;
}

INSTANTIATE_TEST_SUITE_P(Plan, UnreadableAdversarial, testing::ValuesIn(unreadable_fixtures()),
                         name_of);

/// The others have had their verdict without a GPU.
std::vector<Cheat> late_fixtures() {
  std::vector<Cheat> late = fixtures();
  late.erase(std::remove_if(late.begin(), late.end(), is_early), late.end());
  return late;
}

class GpuAdversarial : public testing::TestWithParam<Cheat> {};

TEST_P(GpuAdversarial, GetsItsStatus) {
  const Result<Device> device = Device::open();
  if (!device) GTEST_SKIP() << "no GPU";
  const Cheat& fixture = GetParam();
  const Result<Candidate> candidate = load_candidate(fixture.folder);
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  const DeviceProperties& properties = device->properties();
  if (!runs_on(candidate->arch, properties.major, properties.minor)) {
    GTEST_SKIP() << "needs " << to_string(candidate->arch);
  }
  const Verdict verdict = evaluate(fixture);
  const std::optional<Evaluation> evaluation = verdict.evaluation();
  ASSERT_TRUE(evaluation.has_value()) << verdict.output;
  EXPECT_EQ(verdict.exit_status, evaluation->status == Status::passed ? 0 : 1) << verdict.output;
  EXPECT_TRUE(fixture.allows(evaluation->status))
      << to_string(evaluation->status) << " instead of " << to_string(fixture.status) << ": "
      << evaluation->message;
  if (evaluation->status != Status::passed) return;
  EXPECT_FALSE(evaluation->earned_badges().has_any(fixture.without_badges)) << verdict.output;
  if (fixture.worst_error_at_least) {
    ASSERT_TRUE(evaluation->errors.has_value());
    EXPECT_GE(evaluation->errors->worst_tolerance_ratio, *fixture.worst_error_at_least);
  }
  if (fixture.no_faster_than_ns) {
    ASSERT_TRUE(evaluation->timing.has_value());
    EXPECT_GE(evaluation->timing->median_ns, *fixture.no_faster_than_ns);
  }
  if (fixture.no_more_than_percent) {
    const ReferenceResult* headline = evaluation->headline();
    ASSERT_TRUE(headline && headline->percent_of_reference) << verdict.output;
    EXPECT_LE(headline->percent_of_reference->value,
              static_cast<double>(*fixture.no_more_than_percent));
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuAdversarial, testing::ValuesIn(late_fixtures()), name_of);

}  // namespace
}  // namespace rekernel
