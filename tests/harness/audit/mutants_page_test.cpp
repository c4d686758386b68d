#include "harness/audit/mutants_page.h"

#include <gtest/gtest.h>

#include "harness/base/files.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

ErrorRow row(ErrorSource source, const std::string& name, const std::string& status,
             const std::string& message = {}, const std::string& check = {}) {
  ErrorRow row;
  row.problem = "softmax";
  row.source = source;
  row.name = name;
  row.measured = "2000-01-01";
  row.status = status;
  row.message = message;
  row.check = check;
  return row;
}

ErrorRow with_badges(ErrorRow row, const Badges& badges) {
  row.badges = badges;
  return row;
}

TEST(MutantOutcome, IsCaughtByItsStatusOrByTheLossOfABadge) {
  Mutant mutant;
  mutant.expected = {Status::wrong_result};
  const auto caught = [&](const ErrorRow& row) { return mutant_outcome(mutant, row).as_it_must; };
  EXPECT_TRUE(caught(row(ErrorSource::mutant, "a/b", "wrong_result")));
  EXPECT_FALSE(caught(row(ErrorSource::mutant, "a/b", "crashed")));
  EXPECT_FALSE(caught(row(ErrorSource::mutant, "a/b", "passed")));
  mutant.expected = {Status::wrong_result, Status::passed};
  mutant.refused_badges = {Badge::robust};
  const ErrorRow passed = row(ErrorSource::mutant, "a/b", "passed");
  EXPECT_TRUE(caught(with_badges(passed, {Badge::strict})));
  EXPECT_FALSE(caught(with_badges(passed, {Badge::strict, Badge::robust})));
  EXPECT_TRUE(caught(row(ErrorSource::mutant, "a/b", "wrong_result")));
  EXPECT_EQ(mutant_outcome(mutant, passed).caught_by, "no badge `robust`");
}

TEST(MutantOutcome, NamesTheCheckThatSpoke) {
  const auto caught_by = [](const std::string& status, const std::string& check) {
    return mutant_outcome({}, row(ErrorSource::mutant, "a/b", status, "why", check)).caught_by;
  };
  EXPECT_EQ(caught_by("wrong_result", "rms error in a timed run"), "rms error in a timed run");
  EXPECT_EQ(caught_by("crashed", ""), "crashed");
}

TEST(MutantOutcome, AnHonestKernelMustHaveItsBadges) {
  HonestKernel kernel;
  kernel.badges = {Badge::robust};
  const ErrorRow passed = row(ErrorSource::honest, "a", "passed");
  EXPECT_TRUE(
      honest_outcome(kernel, with_badges(passed, {Badge::strict, Badge::robust})).as_it_must);
  EXPECT_FALSE(honest_outcome(kernel, with_badges(passed, {Badge::strict})).as_it_must);
  const ErrorRow wrong = row(ErrorSource::honest, "a", "wrong_result");
  EXPECT_FALSE(honest_outcome(kernel, with_badges(wrong, {Badge::robust})).as_it_must);
}

/// A tree with four mutants, two honest kernels and a page.
class MutantsPage : public ::testing::Test {
 protected:
  void SetUp() override {
    write("tests/mutants/softmax/base.json", R"({"base": "generated/softmax/base", "mutants": [
      {"name": "caught", "what": "", "status": "wrong_result"},
      {"name": "without_badge", "what": "", "without_badges": ["robust"]},
      {"name": "missed", "what": "", "status": "wrong_result"},
      {"name": "too_new", "what": "", "status": "wrong_result"}]})");
    for (const char* name : {"good", "refused"}) {
      write(std::string("tests/honest/softmax/") + name + "/expected.json",
            R"({"status": "passed", "badges": ["robust"]})");
    }
    write("tests/mutants/README.md", "<!-- mutants:start -->\n<!-- mutants:end -->\n");
  }

  void write(const fs::path& path, const std::string& text) {
    fs::create_directories((root() / path).parent_path());
    ASSERT_TRUE(write_file_atomically(root() / path, text).ok());
  }

  const fs::path& root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

ErrorsRecord record() {
  ErrorsRecord record;
  record.device_name = "NVIDIA Test 1";
  record.rows = {
      // Neither of the two: a library, and a committed kernel with the name of an honest one.
      row(ErrorSource::library, "refused", ""),
      row(ErrorSource::committed, "refused", "passed"),
      with_badges(row(ErrorSource::honest, "good", "passed"), {Badge::robust}),
      row(ErrorSource::honest, "refused", "wrong_result", "rms error 1", "rms error"),
      row(ErrorSource::mutant, "base/caught", "wrong_result", "4 elements were never written",
          "unwritten elements"),
      row(ErrorSource::mutant, "base/without_badge", "passed", "robust: large: rms error 1"),
      row(ErrorSource::mutant, "base/missed", "passed"),
      row(ErrorSource::mutant, "base/too_new", "", "the kernel needs sm_90a"),
      row(ErrorSource::mutant, "base/no_longer_there", "passed")};
  return record;
}

TEST_F(MutantsPage, WithoutRecordsSaysSo) {
  const Result<std::string> page = mutants_page(root());
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(*page, "<!-- mutants:start -->\n\nNot measured yet.\n\n<!-- mutants:end -->\n");
}

TEST_F(MutantsPage, ShowsTheRatesOfTheErrorsRecord) {
  ASSERT_TRUE(record_errors(root(), record()).ok());
  const Result<std::string> page = mutants_page(root());
  ASSERT_TRUE(page.ok()) << page.error().message;
  for (const char* line :
       {"\nNVIDIA Test 1, 2000-01-01:\n", "\n| softmax | 3 | 1 | 1 | 66.7% | 2 | 1 | 50.0% |\n",
        "\n| all | 3 | 1 | 1 | 66.7% | 2 | 1 | 50.0% |\n", "\n| unwritten elements | 1 |\n",
        "\n| no badge `robust` | 1 |\n",
        "\n- Not as required: mutant `softmax/base/missed`: passed\n",
        "\n- False alarm: `softmax/refused`: wrong_result: rms error 1\n"}) {
    EXPECT_NE(page->find(line), std::string::npos) << line << "in\n" << *page;
  }
}

TEST(MutantsPageOfTheTree, IsThatOfTheRecords) {
  const Result<std::string> page = mutants_page(REKERNEL_SOURCE_DIR);
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_EQ(*page, *read_file(fs::path(REKERNEL_SOURCE_DIR) / "tests/mutants/README.md"))
      << "run `rekernel report --readme`";
}

}  // namespace
}  // namespace rekernel
