// Results of several people: merged, compared, ranked, signed.

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"
#include "harness/records/signature.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

using testing::ProgramOutcome;

std::vector<std::int64_t> samples_round(std::int64_t middle_ns) {
  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < 60; ++i) samples.push_back(middle_ns - 30 + i * 17 % 60);
  return samples;
}

void tell_device(Bench& bench, const std::string& name) {
  bench.device_name = name;
  bench.sm = "9.0";
  bench.multiprocessors = 132;
  bench.l2_bytes = 62'914'560;
  bench.clock_khz = 1'980'000;
  bench.memory_clock_khz = 3'201'000;
  bench.memory_bus_bits = 6016;
}

BenchRow timed(const std::string& kernel, std::int64_t middle_ns, const std::string& measured) {
  const Problem& problem = *find_problem("softmax");
  Evaluation evaluation;
  evaluation.problem = problem.id;
  evaluation.kernel = kernel;
  evaluation.sha256 = std::string(64, 'a');
  evaluation.status = Status::passed;
  evaluation.harness = "0123456789abcdef";
  evaluation.errors.emplace();
  evaluation.badge_notes = "strict: no; robust: not tried; deterministic: repeated runs differ";
  evaluation.evidence.emplace();
  evaluation.evidence->strict_share = 2.0;
  evaluation.evidence->digests = {{"1", "2", "3"}};
  evaluation.timing = summarise(samples_round(middle_ns));
  evaluation.ceilings = {4'280'000'000'000, 0};
  evaluation.ceiling_ns = ceiling_ns(problem, evaluation.ceilings);
  Bench h200;
  tell_device(h200, "NVIDIA H200");
  evaluation.speed_of_light_ns = speed_of_light_ns(problem, device_of(h200));
  BenchRow row = bench_row(evaluation, {{"NVRTC", "13.0"}});
  row.measured = measured;
  return row;
}

class Results : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"generated/softmax", "results/h200", "brought"}) {
      fs::create_directories(folder_ / folder);
    }
    write("results/h200/bench.json",
          {timed("online", 600'000, "2026-11-01"), timed("steady", 700'000, "2026-11-10")});
    write("brought/bench.json",
          {timed("online", 582'000, "2026-11-20"), timed("steady", 700'010, "2026-11-02"),
           timed("third", 800'000, "2026-11-20")});
  }
  void write(const std::string& path, std::vector<BenchRow> rows,
             const std::string& device = "NVIDIA H200") const {
    Bench bench;
    tell_device(bench, device);
    bench.rows = std::move(rows);
    summarise_rows(bench);
    std::ofstream(folder_ / path) << pretty_json(to_json(bench));
  }
  ProgramOutcome run(const std::string& arguments) const {
    return testing::run_program(arguments, folder_.path().string());
  }
  fs::path recorded() const { return folder_ / "results/h200/bench.json"; }

  TemporaryFolder folder_{fs::temp_directory_path()};
};

TEST_F(Results, CompareSaysWhatTheIntervalsAllow) {
  const ProgramOutcome outcome = run("results compare h200 brought/bench.json");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.output.find("3.0% ± 0.0 shorter"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("no difference seen (± 0.0%)"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(run("results compare h200").exit_status, 2);
  EXPECT_EQ(run("results compare h200 l40s").exit_status, 2);
}

TEST_F(Results, ALongerTimeIsAShareOfTheOldOne) {
  write("results/h200/bench.json", {timed("online", 511'200, "2026-11-01")});
  write("brought/bench.json", {timed("online", 714'600, "2026-11-20")});
  const ProgramOutcome outcome = run("results compare h200 brought/bench.json");
  EXPECT_NE(outcome.output.find("39.8% ± 0.0 longer"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("different GPUs"), std::string::npos) << outcome.output;
}

TEST_F(Results, CompareSaysThatTwoGpusAreTwoGpus) {
  write("brought/bench.json", {timed("online", 714'600, "2026-11-20")}, "NVIDIA Wonder 9000");
  for (const char* options : {"", " --csv"}) {
    const ProgramOutcome outcome =
        run(std::string("results compare h200 brought/bench.json") + options);
    EXPECT_EQ(outcome.exit_status, 0);
    EXPECT_NE(outcome.output.find("A and B were measured on different GPUs"), std::string::npos)
        << outcome.output;
  }
}

TEST_F(Results, CiteSaysWhatARowHoldsAndHowToCite) {
  const ProgramOutcome outcome = run("results cite softmax/online");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  std::string flat = outcome.output;
  std::replace(flat.begin(), flat.end(), '\n', ' ');
  const BenchRow row = timed("online", 600'000, "2026-11-01");
  for (const std::string& part :
       {std::string("On an NVIDIA H200 (sm 9.0)"), std::string("softmax/online takes 0.6000 ms"),
        std::string("(95% interval 0.60"), std::string("the median of 60 runs"), row.harness,
        std::string("an older judge than this program's"), std::string("the verdict passed"),
        std::string("Measured 2026-11-01, unsigned"), row.sha256,
        std::string("@software{rekernel,"), "version = {" + std::string(REKERNEL_VERSION) + "}"}) {
    EXPECT_NE(flat.find(part), std::string::npos) << part << "\n" << outcome.output;
  }
  EXPECT_NE(flat.find("the kernel is gone"), std::string::npos) << flat;
}

TEST_F(Results, CiteAndFiltersRefuseWhatIsNotRecorded) {
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"results cite", "expected one kernel, as PROBLEM/NAME"},
           {"results cite online", "expected one kernel, as PROBLEM/NAME"},
           {"results cite softmax/none", "softmax/none: no recorded result fits"},
           {"results cite softmax/online --on h300", "expected one of h200"},
           {"results compare h200 brought/bench.json --badge strict", "with best or cite alone"},
           {"results best --status passd", "--status passd: expected one of passed, "},
           {"report --html x --on h200", "expected no filter with them"}}) {
    const ProgramOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_status, 2) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << outcome.output;
  }
}

TEST_F(Results, RanksAreThoseAmongAllRows) {
  const ProgramOutcome outcome = run("results best --kernel steady --csv");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("steady"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find(",online,"), std::string::npos) << outcome.output;
}

TEST_F(Results, MergeRefusesAnotherDevice) {
  // The table knows what an H200 is; of an unknown one, the record that is there does.
  fs::create_directories(folder_ / "results/wonder_9000");
  write("results/wonder_9000/bench.json", {timed("online", 600'000, "2026-11-01")},
        "NVIDIA Wonder 9000");
  write("brought/bench.json", {timed("online", 582'000, "2026-11-20")}, "NVIDIA Wonder 9000");
  const fs::path brought = folder_ / "brought/bench.json";
  boost::json::value record = *read_json_file(brought);
  record.at("device").as_object()["l2_bytes"] = 1'000'000'000'000;
  record.at("rows").at(0).as_object()["speed_of_light_ns"] = 0;  // all bytes may lie in that cache
  std::ofstream(brought) << pretty_json(record);
  const Result<std::string> before = read_file(folder_ / "results/wonder_9000/bench.json");
  const ProgramOutcome outcome = run("results merge brought/bench.json");
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_NE(outcome.output.find("brought/bench.json: measured on another device than what is "
                                "recorded: device.l2_bytes: 1000000000000, before 62914560"),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(*read_file(folder_ / "results/wonder_9000/bench.json"), *before);
}

TEST_F(Results, AReferenceThatNobodyHasIsRefused) {
  boost::json::value record = *read_json_file(recorded());
  record.at("rows").at(0).at("references").as_object()["<b>cudnn</b>"] = {
      {"unavailable", "not here"}};
  std::ofstream(recorded()) << pretty_json(record);
  for (const char* command : {"results best", "report --markdown"}) {
    const ProgramOutcome outcome = run(command);
    EXPECT_EQ(outcome.exit_status, 2) << outcome.output;
  }
  EXPECT_NE(run("results best")
                .output.find("rows[0] (softmax/online): references: "
                             "'<b>cudnn</b>' is not a reference of softmax; expected "
                             "cudnn_softmax, pytorch_eager"),
            std::string::npos)
      << run("results best").output;
}

TEST_F(Results, ADeviceThatNobodyLookedAtIsShownWithoutARank) {
  write("results/h200/bench.json", {timed("online", 600'000, "2026-11-01")});
  fs::create_directories(folder_ / "results/wonder_9000");
  write("results/wonder_9000/bench.json", {timed("online", 600'000, "2026-11-01")},
        "NVIDIA Wonder 9000");
  const ProgramOutcome csv = run("results best softmax --csv");
  EXPECT_NE(csv.output.find("NVIDIA Wonder 9000,softmax,,online,"), std::string::npos)
      << csv.output;
}

TEST_F(Results, MergeTakesWhatIsNewerAndSaysWhatItKept) {
  const ProgramOutcome outcome = run("results merge brought/bench.json");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
  for (const char* line : {"softmax/online: newer (2026-11-20), 3.0% ± 0.0 shorter",
                           "softmax/steady: kept: what is recorded is of 2026-11-10",
                           "softmax/third: new, 0.8000 ms"}) {
    EXPECT_NE(outcome.output.find(line), std::string::npos) << outcome.output;
  }
  const Result<Bench> merged = load_bench(recorded());
  ASSERT_TRUE(merged.ok()) << merged.error().message;
  ASSERT_EQ(merged->rows.size(), 3u);
  EXPECT_EQ(merged->rows[0].median_ns, 582'000);
  EXPECT_EQ(merged->rows[1].median_ns, 700'000);
}

TEST_F(Results, MergeWritesNothingOfWhatContradictsItself) {
  std::vector<BenchRow> rows{timed("online", 582'000, "2026-11-20"),
                             timed("third", 800'000, "2026-11-20")};
  rows[1].median_ns = 1;
  write("brought/forged.json", rows);
  const Result<std::string> before = read_file(recorded());
  const ProgramOutcome outcome = run("results merge brought/bench.json brought/forged.json");
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_NE(outcome.output.find("(softmax/third): median_ns: 1, but its samples give 800000"),
            std::string::npos)
      << outcome.output;
  EXPECT_EQ(*read_file(recorded()), *before);
}

TEST_F(Results, BestRanksAndShowsStaleResultsAsSuch) {
  const ProgramOutcome text = run("results best --wide");
  EXPECT_EQ(text.exit_status, 0) << text.output;
  EXPECT_NE(text.output.find("stale: the kernel is gone"), std::string::npos) << text.output;
  const ProgramOutcome csv = run("results best softmax --csv");
  EXPECT_TRUE(csv.output.starts_with("device,problem,rank,kernel,")) << csv.output;
  EXPECT_EQ(run("results best no_such_problem").exit_status, 2);
  EXPECT_EQ(run("results").exit_status, 2);
}

TEST_F(Results, TheLeaderboardTellsHowTheBestTimeWentDown) {
  const fs::path scaffold = folder_ / "generated/softmax";
  ASSERT_EQ(run("new softmax online").exit_status, 0);
  const Result<Candidate> candidate = load_candidate(scaffold / "online");
  ASSERT_TRUE(candidate.ok());
  const auto commit = [&](std::int64_t middle_ns, const char* day, std::int64_t other_ns = 0) {
    BenchRow row = timed("online", middle_ns, day);
    row.sha256 = candidate_sha256(*candidate);
    std::vector<BenchRow> rows{row};
    if (other_ns > 0) rows.push_back(timed("shorter", other_ns, day));
    write("results/h200/bench.json", rows);
    const std::string date = std::string(day) + "T12:00:00Z";
    const ProgramOutcome made =
        testing::run_shell("git init -q -b main . && git add -A && GIT_AUTHOR_DATE=" + date +
                               " GIT_COMMITTER_DATE=" + date +
                               " git -c user.name=S -c user.email=s@example.org commit -q -m m",
                           folder_.path().string());
    ASSERT_EQ(made.exit_status, 0) << made.output;
  };
  commit(700'000, "2026-11-01");
  commit(710'000, "2026-11-05");
  commit(600'000, "2026-11-09");  // measured again, on a better day: no progress
  commit(610'000, "2026-11-12", 590'000);
  commit(580'000, "2026-11-14", 590'000);  // measured again: the first one is no news
  const ProgramOutcome outcome = run("results best --markdown");
  EXPECT_EQ(outcome.exit_status, 0);
  EXPECT_NE(outcome.output.find("## NVIDIA H200, softmax"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("| 1 | online | 0.5800 |"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("Best time: 0.6100 ms (`` online ``, 2026-11-01), then 0.5900 ms "
                                "(`` shorter ``, 2026-11-12)."),
            std::string::npos)
      << outcome.output;
}

TEST_F(Results, TablesShowWhoSigned) {
  if (testing::run_shell("ssh-keygen -q -t ed25519 -N '' -f key", folder_.path().string())
          .exit_status != 0) {
    GTEST_SKIP() << "no ssh-keygen here";
  }
  EXPECT_NE(run("results best --wide").output.find("unsigned"), std::string::npos);
  const ProgramOutcome made = run("results sign softmax/online --key key");
  EXPECT_EQ(made.exit_status, 0) << made.output;
  EXPECT_NE(run("results best --wide").output.find("unknown signer"), std::string::npos);
  std::ofstream(folder_ / "results/allowed_signers")
      << "somebody@example.org namespaces=\"rekernel\" " << *read_file(folder_ / "key.pub");
  const ProgramOutcome known = run("results best --wide");
  EXPECT_NE(known.output.find("somebody@example.org"), std::string::npos) << known.output;
  EXPECT_NE(known.output.find("unsigned"), std::string::npos) << "the other row";
  // Rows keep their signatures in other files.
  const ProgramOutcome merged = run("results merge brought/bench.json");
  ASSERT_EQ(merged.exit_status, 0);
  EXPECT_NE(merged.output.find("softmax/online: kept: what is recorded is signed by "
                               "somebody@example.org, this is unsigned; --replace softmax/online"),
            std::string::npos)
      << merged.output;
  EXPECT_EQ(load_bench(recorded())->rows[0].median_ns, 600'000);
  ASSERT_EQ(run("results sign softmax/steady softmax/third --key key").exit_status, 0);
  EXPECT_EQ(run("results best --wide").output.find("unsigned"), std::string::npos);
  const ProgramOutcome replaced = run("results merge brought/bench.json --replace softmax/online");
  EXPECT_NE(replaced.output.find("softmax/online: newer"), std::string::npos) << replaced.output;
  EXPECT_EQ(load_bench(recorded())->rows[0].median_ns, 582'000);
  ASSERT_EQ(run("results sign softmax/online --key key").exit_status, 0);

  // A consistent forgery does not carry the signature.
  Result<Bench> bench = load_bench(recorded());
  ASSERT_TRUE(bench.ok()) << bench.error().message;
  const std::string signature = bench->rows[0].signature;
  BenchRow forged = timed("online", 560'000, "2026-11-20");
  forged.signature = signature;
  write("results/h200/bench.json", {forged});
  const ProgramOutcome refused = run("results best");
  EXPECT_EQ(refused.exit_status, 2) << refused.output;
  EXPECT_NE(refused.output.find("rows[0] (softmax/online): signature: not of this row"),
            std::string::npos)
      << refused.output;
}

TEST_F(Results, WhoSignsNamesWhatTheyMeasured) {
  if (testing::run_shell("ssh-keygen -q -t ed25519 -N '' -f key", folder_.path().string())
          .exit_status != 0) {
    GTEST_SKIP() << "no ssh-keygen here";
  }
  fs::create_directories(folder_ / "trajectories");
  std::ofstream(folder_ / "trajectories/softmax.jsonl") << "{}\n";
  const std::string before = *read_file(recorded());
  for (const auto& [what, message] : std::vector<std::pair<std::string, std::string>>{
           {"", "expected what you measured"},
           {"softmax", "softmax: expected PROBLEM/KERNEL for a row, or trajectories/softmax"},
           {"softmax/nothing", "softmax/nothing: no row in results/"},
           {"softmax/online softmax/nothing", "softmax/nothing: no row in results/"},
           {"softmax/online --on l40s", "softmax/online: no row in results/l40s"},
           {"trajectories/nothing", "trajectories/nothing: no recorded search"}}) {
    const ProgramOutcome outcome = run("results sign " + what + " --key key");
    EXPECT_EQ(outcome.exit_status, 2) << what << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(*read_file(recorded()), before);
  EXPECT_EQ(run("results sign trajectories/softmax --key key").exit_status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "trajectories/softmax.jsonl.sig"));
  EXPECT_EQ(*read_file(recorded()), before);

  fs::create_directories(folder_ / "results/wonder_9000");
  write("results/wonder_9000/bench.json", {timed("online", 600'000, "2026-11-01")},
        "NVIDIA Wonder 9000");
  const ProgramOutcome both = run("results sign softmax/online --key key");
  EXPECT_EQ(both.exit_status, 2);
  EXPECT_NE(both.output.find("measured on h200 and wonder_9000; --on says which"),
            std::string::npos)
      << both.output;
  EXPECT_EQ(run("results sign softmax/online --on h200 --key key").exit_status, 0);
  EXPECT_EQ(run("results sign softmax/online --on h200 --key key").exit_status, 2);
}

}  // namespace
}  // namespace rekernel
