// The program as a user meets it: exit statuses, one-line errors, help.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "harness/gpu/cuda.h"
#include "harness/problems/catalog.h"
#include "harness/records/noise.h"
#include "harness/records/record.h"
#include "program.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

using testing::ProgramOutcome;

ProgramOutcome shell(const std::string& command) {
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot start " + command);
  ProgramOutcome outcome;
  std::array<char, 4096> chunk;
  for (std::size_t count; (count = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;) {
    outcome.output.append(chunk.data(), count);
  }
  outcome.exit_status = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

ProgramOutcome rekernel_program(const std::string& arguments,
                                const std::string& folder = REKERNEL_SOURCE_DIR) {
  return shell("cd \"" + folder + "\" && \"" + REKERNEL_PROGRAM + "\" " + arguments + " 2>&1");
}

void expect_bad_input(const std::string& arguments, const std::string& part_of_message,
                      const std::string& folder = REKERNEL_SOURCE_DIR) {
  const ProgramOutcome outcome = rekernel_program(arguments, folder);
  EXPECT_EQ(outcome.exit_status, 2) << arguments << "\n" << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("rekernel: ")) << outcome.output;
  EXPECT_NE(outcome.output.find(part_of_message), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
}

class CommandTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
  }

  TemporaryFolder folder_;
};

using Command = CommandTest;
using NvrtcCommand = CommandTest;

TEST_F(Command, WhatCannotBeWrittenIsAnError) {
  for (const char* command : {"list", "list --json", "report", "--help", "--version",
                              "report --markdown", "check --help", "replay softmax --walk"}) {
    const ProgramOutcome outcome = shell("cd \"" + std::string(REKERNEL_SOURCE_DIR) + "\" && \"" +
                                         REKERNEL_PROGRAM + "\" " + command + " 2>&1 >/dev/full");
    EXPECT_EQ(outcome.exit_status, 2) << command;
    EXPECT_TRUE(
        outcome.output.starts_with("rekernel: standard output: not everything could be "
                                   "written"))
        << command << "\n"
        << outcome.output;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
}

TEST_F(Command, AReaderThatLeavesEndsTheProgramQuietly) {
  for (const char* command : {"list", "replay softmax --walk"}) {
    const ProgramOutcome outcome =
        shell("cd \"" + std::string(REKERNEL_SOURCE_DIR) + "\" && { \"" + REKERNEL_PROGRAM + "\" " +
              command + "; echo $? >" + (folder_ / "status").string() + "; } 2>&1 | true");
    EXPECT_EQ(outcome.output, "") << command;
    int status = 0;
    std::ifstream(folder_ / "status") >> status;
    EXPECT_TRUE(status == 0 || status == 128 + SIGPIPE) << status;
  }
}

TEST_F(Command, ErrorsSpeakToNoTerminal) {
  const ProgramOutcome outcome =
      rekernel_program("check \"$(printf 'a\\033[31m\\nsoftmax/x: passed')\"");
  EXPECT_EQ(outcome.exit_status, 2);
  EXPECT_EQ(outcome.output.find('\x1b'), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("\nsoftmax/x"), std::string::npos) << outcome.output;
}

TEST_F(Command, BadUsageIsOneLineAndStatusTwo) {
  expect_bad_input("frobnicate", "unknown command 'frobnicate'");
  expect_bad_input("list --frobnicate", "--frobnicate");
  expect_bad_input("evalute softmax", "unknown command 'evalute' (did you mean 'evaluate'?)");
  expect_bad_input("bench no_such_problem", "unknown problem 'no_such_problem'");
  expect_bad_input("bench --samples 3", "--samples: expected 10 to 10000");
  expect_bad_input("new no_such_problem name", "unknown problem");
  expect_bad_input("new softmax '../escape'", "name");
  expect_bad_input("noise no_such_thing", "unknown problem 'no_such_thing'");
  expect_bad_input("noise --runs 0", "--runs: expected 1 to 10000");
  expect_bad_input("noise --starts 0", "--starts: expected 1 to 10000");
  expect_bad_input("noise --samples 3", "--samples: expected 10 to 10000");
  expect_bad_input("errors no_such_problem", "unknown problem 'no_such_problem'");
  expect_bad_input("errors --jobs 0", "--jobs: expected 1 to 64");
  expect_bad_input(
      "evaluate",
      "evaluate: expected KERNEL, or --from-dataset DIR --row ID; see rekernel help evaluate");
  expect_bad_input("evaluate /nonexistent", "/nonexistent");
  expect_bad_input("capture softmax", "capture: expected PROGRAM; see rekernel help capture");
  expect_bad_input("capture no_such_problem -- p.py", "unknown problem 'no_such_problem'");
  expect_bad_input("capture softmax --samples 3 -- p.py", "--samples: expected 10 to 10000");
  expect_bad_input("capture softmax --deadline 0 -- p.py", "--deadline: expected 1 to 86400");
  const std::string program = (folder_ / "p.py").string();
  write("p.py", "def softmax(x):\n  return x\n");
  expect_bad_input("capture softmax -- /nonexistent.py", "/nonexistent.py: not a file");
  expect_bad_input("capture softmax --name c_Softmax -- " + program, "c_Softmax");
  expect_bad_input("capture softmax --function soft -- " + program, "the program has no 'soft'");
  expect_bad_input("capture softmax --into " + program + " -- " + program,
                   "--into: " + program + ": not a folder that can be written to");
  expect_bad_input("check /nonexistent", "/nonexistent");
  expect_bad_input("report --json --csv", "--json and --csv: expected one of them");
  expect_bad_input("replay --csv", "--csv: expected one trajectory");
  expect_bad_input("report --json --html x", "--json and --html: expected one of them");
  expect_bad_input("report --html /dev/null", "/dev/null: is no folder; expected a report");
  expect_bad_input("report --html .", "is no report; expected a report");
}

TEST_F(Command, AMalformedPlanNamesPlaceAndExpectation) {
  write("kernel.cu", "extern \"C\" __global__ void k() {}\n");
  write("kernel.json", "{\"schema\": 1,\n");
  expect_bad_input("check " + folder_.path().string(), "kernel.json");
  write("kernel.json", R"({"schema": 1, "problem": "softmax", "name": "n", "idea": "i",
    "arch": "sm_80", "origin": {"note": "n"},
    "launches": [{"kernel": "k", "grid": [-3], "block": [1], "args": []}]})");
  expect_bad_input("check " + folder_.path().string(), "launches[0].grid[0]: expected");
}

TEST_F(Command, ListIsJsonOnRequest) {
  const ProgramOutcome outcome = rekernel_program("list --json");
  ASSERT_EQ(outcome.exit_status, 0);
  Result<boost::json::value> json = parse_json(outcome.output, "list");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->at("problems").as_array().size(), catalog().size());
}

TEST_F(Command, ReportIsJsonOrCsvOnRequest) {
  const ProgramOutcome json = rekernel_program("report --json");
  ASSERT_EQ(json.exit_status, 0);
  const Result<boost::json::value> value = parse_json(json.output, "report");
  ASSERT_TRUE(value.ok()) << value.error().message;
  const boost::json::array& benches = value->at("benches").as_array();
  ASSERT_EQ(benches.size(), recorded_benches(REKERNEL_SOURCE_DIR).size());
  std::size_t rows = 0;
  for (const boost::json::value& bench : benches) rows += bench.at("rows").as_array().size();
  EXPECT_FALSE(value->at("published_runs").as_array().empty());

  const ProgramOutcome csv = rekernel_program("report --csv");
  ASSERT_EQ(csv.exit_status, 0);
  EXPECT_TRUE(csv.output.starts_with("problem,kernel,reference,")) << csv.output;
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.output.begin(), csv.output.end(), '\n')),
            rows + 1);
}

/// The longest line in columns.
std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0, columns = 0;
  for (const char byte : text) {
    if (byte == '\n') columns = 0;
    if (byte != '\n' && (byte & 0xC0) != 0x80) longest = std::max(longest, ++columns);
  }
  return longest;
}

TEST_F(Command, TablesFitAHundredColumnsUnlessTheyMayBeWide) {
  for (const char* arguments : {"report", "list", "show conv2d", "replay --table", "doctor"}) {
    const ProgramOutcome outcome = rekernel_program(arguments);
    EXPECT_LE(longest_line(outcome.output), 100u) << arguments << "\n" << outcome.output;
    EXPECT_EQ(outcome.output.find('\x1b'), std::string::npos) << "no colour in a pipe";
  }
  const ProgramOutcome wide = rekernel_program("report --wide");
  EXPECT_GT(longest_line(wide.output), 100u);
  EXPECT_NE(wide.output.find("% of torch.compile"), std::string::npos);
}

TEST_F(Command, ColoursAreForTerminalsAndForThoseWhoWantThem) {
  const auto on_a_terminal = [](const std::string& variables) {
    const std::string command = "cd \"" REKERNEL_SOURCE_DIR "\" && " + variables +
                                " script -qec '\"" REKERNEL_PROGRAM "\" report' /dev/null";
    return shell(command).output;
  };
  if (shell("command -v script").exit_status != 0) GTEST_SKIP() << "no script(1)";
  EXPECT_NE(on_a_terminal("TERM=xterm NO_COLOR=").find("\x1b[32mpassed"), std::string::npos);
  EXPECT_EQ(on_a_terminal("TERM=xterm NO_COLOR=1").find('\x1b'), std::string::npos);
  EXPECT_EQ(on_a_terminal("TERM=dumb NO_COLOR=").find('\x1b'), std::string::npos);
}

TEST_F(NvrtcCommand, ReproduceWithoutAGpuIsJsonOnRequest) {
  if (Device::open()) GTEST_SKIP() << "this machine has a GPU";
  const ProgramOutcome outcome = rekernel_program("reproduce --json");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const Result<boost::json::value> json = parse_json(outcome.output, "reproduce");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_FALSE(json->at("measured_here").as_bool());
  EXPECT_FALSE(json->at("compiled").as_array().empty());
}

TEST_F(Command, APublishedRunIsWalkedThroughBeforeItsTable) {
  const ProgramOutcome outcome = rekernel_program("replay conv2d-13-rounds");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const std::size_t last_round = outcome.output.find("\n+++ r13.i1.b1/kernel.cu\n");
  const std::size_t table = outcome.output.find("58 events reproduced byte for byte");
  ASSERT_NE(last_round, std::string::npos) << outcome.output;
  ASSERT_NE(table, std::string::npos) << outcome.output;
  EXPECT_LT(last_round, table);
}

TEST_F(Command, ReplayPrintsTheTableAndTellsOfTheWalk) {
  const ProgramOutcome outcome = rekernel_program("replay conv2d-13-rounds --table");
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with("rekernel replay conv2d-13-rounds --walk\n"))
      << outcome.output;
  EXPECT_EQ(outcome.output.find("+++ "), std::string::npos);
}

TEST_F(Command, TheWalkShowsARoundsDifferenceBesideThePublishedTime) {
  const ProgramOutcome text = rekernel_program("replay conv2d-13-rounds --round 5");
  ASSERT_EQ(text.exit_status, 0) << text.output;
  EXPECT_NE(text.output.find("\n--- r4.i1.b1/kernel.cu\n+++ r5.i1.b1/kernel.cu\n"),
            std::string::npos)
      << text.output;
  EXPECT_NE(text.output.find("\npublished: 1.910 ms"), std::string::npos);
  const ProgramOutcome markdown =
      rekernel_program("replay conv2d-13-rounds --walk --round 5 --code --markdown");
  ASSERT_EQ(markdown.exit_status, 0) << markdown.output;
  EXPECT_NE(markdown.output.find("\n```cuda\n"), std::string::npos);
  EXPECT_EQ(markdown.output.find("\n+++ "), std::string::npos);
}

TEST_F(Command, TheWalkRefusesWhatItCannotShow) {
  expect_bad_input("replay conv2d-13-rounds --walk --round 14", "no round 14; it has 0 to 13");
  expect_bad_input("replay conv2d-13-rounds --walk --table", "expected none of --json");
  expect_bad_input("replay conv2d-13-rounds --round 5 --json", "expected none of --json");
  expect_bad_input("replay conv2d-13-rounds --code --extract r1.i1.b1", "expected none of --json");
}

/// A project of its own, with the committed searches' files and nothing measured yet.
class ExtractCommand : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    for (const char* name : {"generated", "results"}) fs::create_directories(folder_ / name);
  }
  static std::string extract(const std::string& options,
                             const std::string& search = "conv2d-13-rounds") {
    return std::string("replay \"") + REKERNEL_SOURCE_DIR + "/trajectories/" + search +
           ".jsonl\" --extract " + options;
  }
  fs::path bench() const { return folder_ / "results/h200/bench.json"; }
};

TEST_F(ExtractCommand, TakesACandidateUnderAnotherName) {
  const ProgramOutcome outcome =
      rekernel_program(extract("r5.i1.b1 --to taken --name mine"), folder_.path().string());
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const Result<Candidate> candidate = load_candidate(folder_ / "taken/mine");
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  EXPECT_EQ(candidate->name, "mine");
  EXPECT_EQ(candidate->origin.candidate, "r5.i1.b1");
  EXPECT_FALSE(fs::exists(bench()));
  expect_bad_input(extract("r5.i1.b1 --to taken --name mine"), "exists already",
                   folder_.path().string());
  expect_bad_input(extract("r5.i1.b1 --name ../mine"), "--name: name: expected",
                   folder_.path().string());
  expect_bad_input(extract("r99.i1.b1 --name mine"), "no candidate \"r99.i1.b1\"",
                   folder_.path().string());
  expect_bad_input("replay conv2d-13-rounds --record", "expected --extract");
  expect_bad_input("replay conv2d-13-rounds --name mine", "expected --extract");
}

TEST_F(ExtractCommand, RecordsTheSearchsMeasurement) {
  const ProgramOutcome outcome =
      rekernel_program(extract("r7.i1.b1 --name port --record", "conv2d"), folder_.path().string());
  ASSERT_EQ(outcome.exit_status, 0) << outcome.output;
  const Result<Candidate> candidate = load_candidate(folder_ / "generated/conv2d/port");
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  const Result<Bench> made = load_bench(bench());
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->device_name, "NVIDIA H200");
  EXPECT_EQ(made->multiprocessors, 132);
  ASSERT_EQ(made->rows.size(), 1u);
  EXPECT_EQ(made->rows[0].kernel, "port");
  // What verify asks of a committed kernel: a row of its content that passed.
  EXPECT_EQ(made->rows[0].sha256, candidate_sha256(*candidate));
  EXPECT_EQ(made->rows[0].status, Status::passed);
  EXPECT_GT(made->rows[0].median_ns, 0);

  fs::copy_file(fs::path(REKERNEL_SOURCE_DIR) / "results/published.json",
                folder_ / "results/published.json");
  const ProgramOutcome report = rekernel_program("report", folder_.path().string());
  EXPECT_NE(report.output.find("port"), std::string::npos) << report.output;
  EXPECT_EQ(report.output.find("0.00 TB/s"), std::string::npos) << report.output;
}

TEST_F(ExtractCommand, MergesIntoARecordThatIsThere) {
  fs::create_directories(bench().parent_path());
  fs::copy_file(fs::path(REKERNEL_SOURCE_DIR) / "results/h200/bench.json", bench());
  const Result<Bench> before = load_bench(bench());
  ASSERT_TRUE(before.ok()) << before.error().message;
  ASSERT_EQ(
      rekernel_program(extract("r7.i1.b1 --name port --record", "conv2d"), folder_.path().string())
          .exit_status,
      0);
  const Result<Bench> after = load_bench(bench());
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_EQ(after->rows.size(), before->rows.size() + 1);
  EXPECT_GT(after->rows.front().speed_of_light_ns, 0);
  EXPECT_GE(after->ceilings.copy_bytes_per_s, before->ceilings.copy_bytes_per_s);
  EXPECT_EQ(after->l2_bytes, before->l2_bytes);
  EXPECT_EQ(after->memory_bus_bits, before->memory_bus_bits);
  EXPECT_EQ(after->toolchain.at("PyTorch"), before->toolchain.at("PyTorch"));
}

TEST_F(ExtractCommand, RefusesToRecordWhatHasNoPlaceOrDidNotPass) {
  const std::string folder = folder_.path().string();
  expect_bad_input(extract("r7.i1.b1 --name port --record --to elsewhere", "conv2d"),
                   "--record: expected", folder);
  expect_bad_input(extract("r1.i2.b2 --name wrong --record", "layernorm"),
                   "r1.i2.b2 did not pass (wrong_result)", folder);
  expect_bad_input(extract("r0.i1.b1 --name port --record"), "its record is from before samples",
                   folder);
  EXPECT_FALSE(fs::exists(folder_ / "generated/layernorm/wrong"));
  fs::create_directories(bench().parent_path());
  write("results/h200/bench.json", "{}");
  expect_bad_input(extract("r7.i1.b1 --name port --record", "conv2d"), "bench.json", folder);
  EXPECT_FALSE(fs::exists(folder_ / "generated/conv2d/port")) << "nothing was written";
}

TEST_F(Command, OutsideOfAProjectItSaysWhichIsReadAndWritesIntoNone) {
  const std::string folder = folder_.path().string();
  const std::string note = "rekernel: the working directory is not in a project: using " +
                           std::string(REKERNEL_SOURCE_DIR) +
                           ", which this program was built from\n";
  const ProgramOutcome listed = rekernel_program("list", folder);
  EXPECT_EQ(listed.exit_status, 0) << listed.output;
  EXPECT_TRUE(listed.output.starts_with(note)) << listed.output;
  EXPECT_EQ(listed.output.find(note, 1), std::string::npos) << "said once";
  for (const char* command :
       {"new softmax stray", "report --readme", "results merge x.json", "bench softmax --record",
        "noise softmax --record", "errors softmax --record", "search stray --problem softmax",
        "results sign softmax/x --key x"}) {
    const ProgramOutcome outcome = rekernel_program(command, folder);
    EXPECT_EQ(outcome.exit_status, 2) << command << outcome.output;
    EXPECT_NE(
        outcome.output.find("the working directory is not in a project, and nothing is written "
                            "elsewhere"),
        std::string::npos)
        << command << outcome.output;
  }
  EXPECT_FALSE(fs::exists(fs::path(REKERNEL_SOURCE_DIR) / "generated/softmax/stray"));
  EXPECT_FALSE(fs::exists(fs::path(REKERNEL_SOURCE_DIR) / "trajectories/stray.jsonl"));
  // With a project there, that is the one: a program that was carried to another machine.
  for (const char* name : {"generated", "results"}) fs::create_directories(folder_ / name);
  const ProgramOutcome made = rekernel_program("new softmax stray", folder);
  EXPECT_EQ(made.exit_status, 0) << made.output;
  EXPECT_TRUE(fs::exists(folder_ / "generated/softmax/stray/kernel.cu"));
  EXPECT_EQ(made.output.find("no project"), std::string::npos) << made.output;
}

TEST_F(Command, EvaluateWithoutAGpuSaysSo) {
  if (Device::open()) GTEST_SKIP() << "this machine has a GPU";
  ASSERT_EQ(rekernel_program("new softmax mine --into " + folder_.path().string()).exit_status, 0);
  expect_bad_input("evaluate " + (folder_ / "mine").string(), "no NVIDIA driver");
  write("p.py", "def softmax(x):\n  return x\n");
  expect_bad_input("capture softmax -- " + (folder_ / "p.py").string(), "no NVIDIA driver");
}

TEST_F(Command, ExportTakesWhatIsWrittenInCudaAlone) {
  write("kernel.ptx", ".version 8.0\n");
  const std::string plan = R"({"schema": 1, "problem": "softmax", "name": "taken", "idea": "i",
    "arch": "sm_80", "origin": {"note": "n"}, "workspace": {"rest": 64}, "launches": [
    {"kernel": "k", "grid": [1], "block": [1], "args": ["x"]}]})";
  write("kernel.json", plan);
  const std::string folder = folder_.path().string();
  expect_bad_input("export --to cpp " + folder, "only CUDA C++ in one kernel.cu can be exported");
}

TEST_F(Command, WhatIsCitedIsThisVersion) {
  std::ifstream file(std::string(REKERNEL_SOURCE_DIR) + "/CITATION.cff");
  const std::string citation((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(citation.find(std::string("\nversion: ") + REKERNEL_VERSION + "\n"), std::string::npos)
      << citation;
}

TEST_F(Command, NewNeverOverwrites) {
  ASSERT_EQ(rekernel_program("new softmax mine --into " + folder_.path().string()).exit_status, 0);
  expect_bad_input("new softmax mine --into " + folder_.path().string(), "exists already");
}

TEST_F(NvrtcCommand, PublishedScaffoldsCompileForEveryArchitecture) {
  for (const Problem& problem : published_problems()) {
    const std::string name = "start_" + problem.id;
    const ProgramOutcome made =
        rekernel_program("new " + problem.id + " " + name + " --into " + folder_.path().string());
    ASSERT_EQ(made.exit_status, 0) << made.output;
    const ProgramOutcome checked = rekernel_program("check " + (folder_ / name).string());
    EXPECT_EQ(checked.exit_status, 0) << checked.output;
    EXPECT_NE(checked.output.find("sm_90a"), std::string::npos) << checked.output;
  }
}

TEST_F(NvrtcCommand, ASourceThatDoesNotCompileFailsTheCheck) {
  ASSERT_EQ(rekernel_program("new softmax mine --into " + folder_.path().string()).exit_status, 0);
  write("mine/kernel.cu",
        "extern \"C\" __global__ void softmax(const float*, float*) { nonsense }");
  const ProgramOutcome outcome = rekernel_program("check " + (folder_ / "mine").string());
  EXPECT_EQ(outcome.exit_status, 1);
  EXPECT_NE(outcome.output.find("nonsense"), std::string::npos) << outcome.output;
}

using GpuCommand = CommandTest;

TEST_F(GpuCommand, NoiseTimesAKernelAgainstItself) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  ASSERT_EQ(rekernel_program("new matmul_fp16 mine --into " + folder_.path().string()).exit_status,
            0);
  const ProgramOutcome outcome =
      rekernel_program("noise " + (folder_ / "mine").string() + " --runs 2 --samples 10 --json");
  EXPECT_LE(outcome.exit_status, 1) << outcome.output;  // so few runs need not hold
  const Result<boost::json::value> json = parse_json(outcome.output, "noise");
  ASSERT_TRUE(json.ok()) << outcome.output;
  const Result<NoiseRecord> record = noise_from_json(*json, "noise");
  ASSERT_TRUE(record.ok()) << record.error().message;
  ASSERT_EQ(record->rows.size(), 1u);
  EXPECT_EQ(record->rows[0].problem, "matmul_fp16");
  EXPECT_EQ(record->rows[0].subject, "mine");
  ASSERT_EQ(record->rows[0].runs.size(), 2u);
  for (const NoiseRun& run : record->rows[0].runs) {
    for (const auto* side : {&run.first_ns, &run.second_ns}) {
      EXPECT_EQ(side->size(), 10u);
      EXPECT_TRUE(std::all_of(side->begin(), side->end(), [](auto time) { return time > 0; }));
    }
  }
}

// Each interval misses guessing once in forty where there is nothing to find: three of three tries,
// never.
TEST_F(GpuCommand, RunsCannotBeToldApartAndAPlantedGapIsFound) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  int blind = 0;
  for (int attempt = 0; attempt < 3 && blind == 0; ++attempt) {
    const ProgramOutcome outcome = rekernel_program("blinding conv2d --runs 500");
    ASSERT_NE(outcome.exit_status, 2) << outcome.output;
    if (outcome.exit_status == 0) ++blind;
  }
  EXPECT_EQ(blind, 1);
  const ProgramOutcome planted = rekernel_program("blinding conv2d --runs 300 --planted-gap 3000");
  EXPECT_EQ(planted.exit_status, 1) << planted.output;
}

TEST_F(Command, BlindingSaysWhatItExpects) {
  expect_bad_input("blinding no_such_problem", "unknown problem 'no_such_problem'");
  expect_bad_input("blinding softmax --runs 3", "--runs: expected 20 to 5000");
  expect_bad_input("blinding softmax --planted-gap -1", "--planted-gap: expected 0 to 100000");
}

class GpuScaffold : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuScaffold, Passes) {
  if (!Device::open()) GTEST_SKIP() << "no GPU";
  const TemporaryFolder folder;
  const ProgramOutcome made =
      rekernel_program("new " + GetParam() + " mine --into " + folder.path().string());
  ASSERT_EQ(made.exit_status, 0) << made.output;
  const ProgramOutcome outcome =
      rekernel_program("evaluate " + (folder / "mine").string() + " --samples 10");
  EXPECT_EQ(outcome.exit_status, 0) << outcome.output;
}

std::vector<std::string> problem_ids() {
  std::vector<std::string> ids;
  for (const Problem& problem : published_problems()) ids.push_back(problem.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuScaffold, ::testing::ValuesIn(problem_ids()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace rekernel
