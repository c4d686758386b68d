#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/claims/claim_tools.h"
#include "harness/claims/claims_file.h"
#include "harness/claims/claims_record.h"
#include "harness/claims/claims_run.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/report/data.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

constexpr const char* text_of_program = "the program of a stranger";

std::string claim_text_of(const std::string& name, const std::string& file) {
  return R"({"name": ")" + name + R"(", "problem": "matmul_fp16", "axes": {"m": 128, "n": 256},
    "source": {"file": ")" +
         file + R"(", "sha256": ")" + sha256_hex(text_of_program) + R"("},
    "claimed": [{"quantity": "speedup", "value": 1.25, "unit": "x", "over": "pytorch_eager"}]})";
}

std::string file_text(const std::string& claims) {
  return R"({"schema": 1, "name": "others", "title": "Other people's", "repository": "https://example.org",
    "revision": "abc", "licence": "MIT", "device": "NVIDIA H100 80GB HBM3", "method": "warm cache",
    "compile": ["compiler", "{source}", "-o", "{program}"], "claims": [)" +
         claims + "]}";
}

std::string complaint(const std::string& before, const std::string& after) {
  std::string text = file_text(claim_text_of("one", "one.cu"));
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  text.replace(at, before.size(), after);
  const Result<ClaimsFile> file = parse_claims(text, "f");
  return file ? "" : file.error().message;
}

TEST(ClaimsFile, IsRead) {
  const Result<ClaimsFile> file = parse_claims(
      file_text(claim_text_of("one", "one.cu") + "," + claim_text_of("two", "two.py")), "f");
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->claims.size(), 2u);
  const Claim& one = file->claims[0];
  EXPECT_EQ(one.axes, (std::vector<std::pair<std::string, std::int64_t>>{{"m", 128}, {"n", 256}}));
  EXPECT_EQ(one.compile.front(), "compiler");    // the file's
  EXPECT_TRUE(file->claims[1].compile.empty());  // Python is not compiled
  EXPECT_EQ(one.claimed.front().value, 1.25);
}

TEST(ClaimsFile, IsLookedAt) {
  EXPECT_EQ(complaint("\"schema\": 1", "\"schema\": 2"),
            "f: schema: expected an integer from 1 to 1, got 2");
  EXPECT_EQ(complaint("\"name\": \"others\"", "\"name\": \"../others\""),
            "f: name: expected 1 to 64 of a-z, 0-9 and _");
  EXPECT_EQ(complaint("\"name\": \"one\"", "\"name\": \"a/b\""),
            "f: claims[0].name: expected 1 to 64 of a-z, 0-9 and _");
  EXPECT_EQ(complaint("one.cu", "../one.cu"),
            "f: claims[0].source.file: expected a path below the folder of sources");
  EXPECT_EQ(complaint("one.cu", "/etc/passwd"),
            "f: claims[0].source.file: expected a path below the folder of sources");
  EXPECT_EQ(complaint("\"matmul_fp16\"", "\"../3_Model.py\""),
            "f: claims[0].problem: expected an id, a file (.json) beside the file of claims, or a "
            "program (.py) below the folder of sources");
  EXPECT_EQ(complaint(sha256_hex(text_of_program), "12"),
            "f: claims[0].source.sha256: expected 64 digits of 0-9 and a-f");
  EXPECT_EQ(complaint("1.25", "-1"), "f: claims[0].claimed: value: expected a number above 0");
  EXPECT_EQ(complaint("\"unit\": \"x\"", "\"unit\": \"%\""),
            "f: claims[0].claimed: unit: expected \"x\" or \"ms\", got \"%\"");
  EXPECT_EQ(complaint(", \"over\": \"pytorch_eager\"", ""),
            "f: claims[0].claimed: over: expected what it is faster than with unit \"x\" alone");
  EXPECT_NE(complaint("\"axes\"", "\"axis\"").find("unknown key"), std::string::npos)
      << complaint("\"axes\"", "\"axis\"");
  const Result<ClaimsFile> twice =
      parse_claims(file_text(claim_text_of("one", "a") + "," + claim_text_of("one", "b")), "f");
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().message, "f: claims[1].name: there is another claim \"one\"");
}

TEST(ClaimsFile, FindsAProgramsText) {
  const TemporaryFolder folder;
  std::ofstream(folder / "one.cu") << text_of_program;
  std::ofstream(folder / "all.json") << R"({"id": 1, "code": "other"})"
                                     << "\n"
                                     << R"({"id": 2, "code": ")" << text_of_program << "\"}\n";
  Claim claim;
  claim.source = {"one.cu", 0, "", sha256_hex(text_of_program)};
  EXPECT_EQ(source_of(claim, folder.path()).value(), text_of_program);
  claim.source = {"all.json", 2, "code", sha256_hex(text_of_program)};
  EXPECT_EQ(source_of(claim, folder.path()).value(), text_of_program);
  const auto complaint_of = [&](ClaimSource source) {
    claim.source = std::move(source);
    const Result<std::string> text = source_of(claim, folder.path());
    return text ? "" : text.error().message;
  };
  EXPECT_EQ(complaint_of({"two.cu", 0, "", sha256_hex("")}),
            "two.cu: there is no such file in " + folder.path().string());
  EXPECT_EQ(
      complaint_of({"one.cu", 0, "", sha256_hex("")}),
      "one.cu: is not what the claim is about: its SHA-256 is " + sha256_hex(text_of_program));
  EXPECT_EQ(complaint_of({"all.json", 3, "code", ""}), "all.json: has no line 3");
  EXPECT_EQ(complaint_of({"all.json", 1, "id", ""}), "all.json: line 1 has no text \"id\"");
}

TEST(ClaimTools, FillCommands) {
  const std::map<std::string, std::string> words = {{"m", "128"}, {"source", "/a b.cu"}};
  EXPECT_EQ(filled_command({"-D", "M={m}", "{source}"}, words).value(),
            (std::vector<std::string>{"-D", "M=128", "/a b.cu"}));
  EXPECT_EQ(filled_command({"{n}"}, words).error().message, "unknown placeholder {n}");
}

TEST(ClaimTools, KnowTheProblemAtTheClaimsSizes) {
  const TemporaryFolder folder;
  Claim claim;
  claim.problem = "matmul_fp16";
  claim.axes = {{"m", 128}, {"k", 64}};
  const auto complaint = [&] {
    const Result<const Problem*> problem = claimed_problem(claim, folder.path(), folder.path());
    return problem ? "" : problem.error().message;
  };
  const Result<const Problem*> problem = claimed_problem(claim, folder.path(), folder.path());
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  EXPECT_EQ((*problem)->find_tensor("a")->shape, (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ((*problem)->find_tensor("b")->shape, (std::vector<std::int64_t>{64, 4096}));
  EXPECT_EQ(find_problem((*problem)->id), *problem);
  // Others of that id keep their sizes, and are judged at the same time.
  EXPECT_NE((*problem)->id, "matmul_fp16");
  EXPECT_EQ(find_problem("matmul_fp16")->find_tensor("a")->shape[0], 4096);
  EXPECT_EQ((*problem)->group, "claims");
  EXPECT_FALSE(is_strangers(**problem));
  EXPECT_FALSE(library_reference_ids((*problem)->id).empty());
  claim.axes = {{"q", 1}};
  EXPECT_EQ(complaint(), "matmul_fp16: has no axis \"q\"");
  claim.axes = {{"m", 0}};
  EXPECT_NE(complaint(), "");
  claim.axes = {};
  EXPECT_EQ(claimed_problem(claim, folder.path(), folder.path()).value(),
            find_problem("matmul_fp16"));
  claim.problem = "other.json";
  EXPECT_EQ(complaint().find("problem: "), 0u) << complaint();
  std::ofstream(folder / "other.json") << find_problem("softmax")->text;
  const Result<const Problem*> own = claimed_problem(claim, folder.path(), folder.path());
  ASSERT_TRUE(own.ok()) << own.error().message;
  EXPECT_NE((*own)->id, "softmax");
}

/// A run with tools that stand for a compiler and a GPU.
class ClaimsRun : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"one", "two", "three"}) {
      std::ofstream(folder_ / (std::string(name) + ".cu")) << text_of_program;
    }
    file_ = parse_claims(
                file_text(claim_text_of("one", "one.cu") + "," + claim_text_of("gone", "gone.cu") +
                          "," + claim_text_of("two", "two.cu") + "," +
                          claim_text_of("three", "three.cu")),
                "f")
                .value();
    options_.sources = folder_.path();
    options_.work = folder_ / "work";
    options_.devices = {0, 1};
    options_.compilers = 2;
    options_.judge_of = [this](const Claim&) { return judge_; };
    options_.arrived = [this](const ClaimsRecord& record) -> Result<Ok> {
      if (static_cast<int>(record.rows.size()) > most_rows_) return Error{"the disk is full"};
      return Ok{};
    };
    tools_.build = [this](const Claim& claim, const fs::path& source,
                          const fs::path& folder) -> Result<fs::path> {
      EXPECT_EQ(read_file(source).value(), text_of_program);
      const std::lock_guard lock(mutex_);
      built_.insert(claim.name);
      if (claim.name == "two") {
        return Error{"rekernel: " + (folder / "two.cu").string() + ": failed with status 1"};
      }
      return folder / claim.name;
    };
    tools_.judge = [this](const Claim& claim, const fs::path&, const fs::path&, int device,
                          ClaimRow& row) {
      const std::lock_guard lock(mutex_);
      judged_.insert(claim.name);
      devices_.insert(device);
      Evaluation evaluation;
      evaluation.status = Status::passed;
      evaluation.timing = Timing{{800}, 800, 790, 810};
      ReferenceResult eager;
      eager.id = "pytorch_eager";
      eager.timing.median_ns = 960;
      eager.percent_of_reference = Percent{120, 119, 121};
      evaluation.references = {eager};
      take_evaluation(evaluation, row);
    };
  }

  std::set<std::string> judged() { return std::exchange(judged_, {}); }

  TemporaryFolder folder_;
  ClaimsFile file_;
  ClaimsOptions options_;
  ClaimTools tools_;
  std::string judge_ = "judge 1";
  int most_rows_ = 100;
  std::mutex mutex_;
  std::set<std::string> built_, judged_;
  std::set<int> devices_;
};

TEST_F(ClaimsRun, GivesEachClaimARowInTheFilesOrder) {
  const Result<ClaimsRecord> record = run_claims(file_, {}, options_, tools_);
  ASSERT_TRUE(record.ok()) << record.error().message;
  ASSERT_EQ(record->rows.size(), 4u);
  EXPECT_EQ(record->file.name, "others");
  EXPECT_EQ(record->rows[0].claim.name, "one");
  EXPECT_EQ(record->rows[0].status, "passed");
  EXPECT_EQ(record->rows[1].outcome, ClaimOutcome::missing);
  EXPECT_EQ(record->rows[1].reason.rfind("gone.cu: there is no such file", 0), 0u);
  EXPECT_EQ(record->rows[2].outcome, ClaimOutcome::not_built);
  EXPECT_EQ(record->rows[2].reason, "two.cu: failed with status 1");
  EXPECT_EQ(record->rows[3].status, "passed");
  EXPECT_EQ(judged(), (std::set<std::string>{"one", "three"}));
}

TEST_F(ClaimsRun, GoesOnWhereItEnded) {
  const ClaimsRecord first = run_claims(file_, {}, options_, tools_).value();
  judged();
  built_.clear();
  // What has an answer is not asked again; a program that was missing is looked for.
  std::ofstream(folder_ / "gone.cu") << text_of_program;
  const ClaimsRecord second = run_claims(file_, first, options_, tools_).value();
  EXPECT_EQ(judged(), std::set<std::string>{"gone"});
  EXPECT_EQ(built_, std::set<std::string>{"gone"});
  ASSERT_EQ(second.rows.size(), 4u);
  EXPECT_EQ(second.rows[1].status, "passed");
  // Another judge makes another answer; so does another claim.
  judge_ = "judge 2";
  run_claims(file_, second, options_, tools_).value();
  EXPECT_EQ(judged(), (std::set<std::string>{"one", "gone", "three"}));
  judge_ = "judge 1";
  file_.claims[0].claimed[0].value = 2;
  run_claims(file_, second, options_, tools_).value();
  EXPECT_EQ(judged(), std::set<std::string>{"one"});
}

TEST_F(ClaimsRun, TakesSomeAloneAndKeepsTheOthers) {
  const ClaimsRecord first = run_claims(file_, {}, options_, tools_).value();
  judged();
  options_.only = {"three"};
  options_.again = true;
  const ClaimsRecord second = run_claims(file_, first, options_, tools_).value();
  EXPECT_EQ(judged(), std::set<std::string>{"three"});
  EXPECT_EQ(second.rows.size(), 4u);
}

TEST_F(ClaimsRun, EndsWhereTheRecordCannotBeWritten) {
  most_rows_ = 1;
  const Result<ClaimsRecord> record = run_claims(file_, {}, options_, tools_);
  ASSERT_FALSE(record.ok());
  EXPECT_EQ(record.error().message, "the disk is full");
}

TEST_F(ClaimsRun, RunsAWrapperInTheProgramsPlace) {
  std::ofstream(folder_ / "wrapper.py") << "from claimed_program import ModelNew";
  file_.folder = folder_.path();
  file_.claims.resize(1);
  file_.claims[0].source.file = "one.py";
  file_.claims[0].compile.clear();
  file_.claims[0].wrapper = "wrapper.py";
  std::ofstream(folder_ / "one.py") << text_of_program;
  fs::path ran, loaded;
  tools_.prepare = [&](const Claim&, const fs::path& program, const fs::path&) -> Result<Ok> {
    loaded = program;  // before a GPU is asked
    return Ok{};
  };
  tools_.judge = [&](const Claim&, const fs::path& program, const fs::path&, int, ClaimRow&) {
    ran = program;
  };
  run_claims(file_, {}, options_, tools_).value();
  EXPECT_EQ(ran.filename(), "one.py");
  EXPECT_EQ(loaded, ran);
  EXPECT_EQ(read_file(ran).value(), "from claimed_program import ModelNew");
  EXPECT_EQ(read_file(ran.parent_path() / "claimed_program.py").value(), text_of_program);
  file_.claims[0].wrapper = "gone.py";
  const ClaimsRecord record = run_claims(file_, {}, options_, tools_).value();
  EXPECT_EQ(record.rows[0].outcome, ClaimOutcome::missing);
  EXPECT_EQ(record.rows[0].reason.rfind("wrapper: ", 0), 0u) << record.rows[0].reason;
}

TEST_F(ClaimsRun, RehearsesAllBeforeTheFirstIsJudged) {
  for (Claim& claim : file_.claims) claim.compile.clear();
  file_.rehearse = true;
  std::set<std::string> rehearsed;
  std::size_t at_the_first_verdict = 0;
  tools_.prepare = [](const Claim& claim, const fs::path&, const fs::path&) -> Result<Ok> {
    if (claim.name == "two") return Error{"problem: it has none"};
    return Ok{};
  };
  tools_.rehearse = [&](const Claim& claim, const fs::path&, const fs::path&, int) {
    const std::lock_guard lock(mutex_);
    rehearsed.insert(claim.name);
  };
  tools_.judge = [&](const Claim&, const fs::path&, const fs::path&, int, ClaimRow& row) {
    const std::lock_guard lock(mutex_);
    if (at_the_first_verdict == 0) at_the_first_verdict = rehearsed.size();
    row.outcome = ClaimOutcome::judged;
  };
  const Result<ClaimsRecord> record = run_claims(file_, {}, options_, tools_);
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(rehearsed, (std::set<std::string>{"one", "three"}));
  EXPECT_EQ(at_the_first_verdict, 2u);
  EXPECT_EQ(record->rows[2].outcome, ClaimOutcome::not_evaluated);
  EXPECT_EQ(record->rows[2].reason, "problem: it has none");
}

TEST_F(ClaimsRun, BuildsAloneWithoutAGpu) {
  tools_.judge = nullptr;
  const ClaimsRecord record = run_claims(file_, {}, options_, tools_).value();
  EXPECT_EQ(record.rows[0].outcome, ClaimOutcome::not_evaluated);
  EXPECT_EQ(record.rows[2].outcome, ClaimOutcome::not_built);
}

TEST_F(ClaimsRun, ItsRecordIsReadAsItWasWritten) {
  const ClaimsRecord record = run_claims(file_, {}, options_, tools_).value();
  const std::string text = pretty_json(to_json(record));
  EXPECT_EQ(text.find(text_of_program), std::string::npos);
  EXPECT_EQ(text.find("compiler\""), std::string::npos);
  const Result<ClaimsRecord> again = claims_record_from_json(text, "r");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(pretty_json(to_json(*again)), text);
  EXPECT_FALSE(claims_record_from_json("{}", "r").ok());
}

TEST_F(ClaimsRun, ItsRecordStandsInTheReport) {
  const ClaimsRecord record = run_claims(file_, {}, options_, tools_).value();
  const fs::path path = claims_record_path(folder_.path(), "others");
  fs::create_directories(path.parent_path());
  std::ofstream(path) << pretty_json(to_json(record));
  std::ofstream(path.parent_path() / "others.claims.json") << "a list is no record";
  RecordComplaints complaints(folder_.path());
  const boost::json::array told = report_claims(complaints);
  EXPECT_TRUE(complaints.all().empty());
  EXPECT_TRUE(report_devices(complaints).empty());  // their folder is no device's
  ASSERT_EQ(told.size(), 1u);
  const boost::json::object& row = told[0].at("rows").at(0).as_object();
  EXPECT_EQ(row.at("status").as_string(), "passed");
  EXPECT_EQ(row.at("axes").at("m").as_int64(), 128);
  EXPECT_EQ(row.at("claimed").at(0).at("measured").at("value").as_double(), 120);
  EXPECT_FALSE(row.at("claimed").at(0).at("holds").as_bool());
  EXPECT_FALSE(told[0].at("rows").at(1).at("claimed").at(0).as_object().contains("measured"));
  std::ofstream(path) << "{";
  EXPECT_TRUE(report_claims(complaints).empty());
  EXPECT_TRUE(complaints.any_unreadable());
}

TEST_F(ClaimsRun, ComparesWhatWasClaimedWithWhatWasMeasured) {
  ClaimRow row = run_claims(file_, {}, options_, tools_).value().rows[0];
  const std::vector<ClaimComparison> comparisons = compare(row);
  ASSERT_EQ(comparisons.size(), 1u);
  EXPECT_EQ(comparisons[0].reference, "pytorch_eager");
  EXPECT_EQ(comparisons[0].measured->value, 120);
  EXPECT_FALSE(comparisons[0].holds);  // 1.25 was claimed
  row.claim.claimed[0].value = 1.21;   // the interval reaches it
  EXPECT_TRUE(compare(row)[0].holds);
  row.claim.claimed[0].over = "library";  // none was timed
  EXPECT_EQ(compare(row)[0].reference, "");
  EXPECT_FALSE(compare(row)[0].holds);
  row.references.push_back({"cublas_fp16", "", 900, {112, 111, 113}});
  row.references.push_back({"cublas_tf32", "", 850, {106, 105, 107}});
  EXPECT_EQ(compare(row)[0].reference, "cublas_tf32");  // the fastest
  row.claim.claimed[0] = {"time", 0.0008, "ms", ""};
  EXPECT_TRUE(compare(row)[0].holds);
  row.status = "wrong_result";
  EXPECT_FALSE(compare(row)[0].holds);
}

}  // namespace
}  // namespace rekernel
