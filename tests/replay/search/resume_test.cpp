// Kills a search, in a process of its own, at bytes and at events of its run, and resumes it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <csignal>
#include <map>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::FakeEvaluator;
using testing::FakeModel;
using testing::read_text;
using testing::recorded_search;
using testing::run_on_file;
using testing::small_header;

constexpr unsigned arrival_seed = 3;

/// Where a run dies.
struct Death {
  rlim_t file_bytes = RLIM_INFINITY;  ///< no file grows beyond this
  int call = -1;                      ///< before this call to a model or evaluator is answered
};

/// Appends a line to a file that several processes share.
void note(int file, const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(file, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) ::_exit(9);
}

/// Runs the search in a child; true if it came to its end.
bool run_in_child(const TemporaryFolder& folder, const Death& death) {
  // The log is a pipe, so that the limit on file sizes does not apply to it.
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    rlimit limit{death.file_bytes, death.file_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int calls = 0;
    const auto before = [&](const std::string& kind) {
      return [&, kind](const std::string& id) {
        note(ends[1], kind + " " + id);
        if (calls++ == death.call) ::raise(SIGKILL);
      };
    };
    FakeModel model(arrival_seed);
    FakeEvaluator evaluator(arrival_seed);
    model.before = before("ask");
    evaluator.before = before("evaluate");
    const SearchEnd end = run_on_file(folder / "t.jsonl", small_header(), model, evaluator);
    ::_exit(end.interruption ? 7 : 0);
  }
  ::close(ends[1]);
  std::string log;
  char buffer[4096];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    log.append(buffer, count);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  testing::write_text(folder / "log", read_text(folder / "log") + log);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << "a run failed instead of dying";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::map<std::string, int> calls_of(const TemporaryFolder& folder) {
  std::map<std::string, int> calls;
  for (const std::string& line : testing::lines_of(read_text(folder / "log"))) ++calls[line];
  return calls;
}

class Resume : public ::testing::Test {
 protected:
  /// Kills once, resumes, and compares. `repeated` calls may happen twice: those in flight.
  void kill_and_resume(const Death& death, int repeated) {
    TemporaryFolder folder;
    const bool finished = run_in_child(folder, death);
    ASSERT_TRUE(run_in_child(folder, {}));
    EXPECT_EQ(read_text(folder / "t.jsonl"), expected);
    EXPECT_FALSE(std::filesystem::exists(folder / "t.jsonl.pending"));
    int again = 0;
    for (const auto& [call, count] : calls_of(folder)) again += count - 1;
    EXPECT_LE(again, finished ? 0 : repeated);
  }

  TemporaryFolder own;
  const std::string expected = recorded_search(own / "t.jsonl", small_header());
};

TEST_F(Resume, GivesTheSameFileAfterADeathAtAnyByte) {
  // The reply or evaluation that was being written when the process died had not been kept yet, so
  // that one call is repeated at most.
  constexpr rlim_t points = 150;
  for (rlim_t i = 0; i < points && !HasFailure(); ++i) {
    SCOPED_TRACE(i);
    kill_and_resume({(expected.size() + 10) * i / points + i % 7, -1}, 1);
  }
}

TEST_F(Resume, GivesTheSameFileAfterADeathAtAnyCall) {
  // The call that the process died in had no answer yet.
  for (int call = 0; call < 60 && !HasFailure(); ++call) {
    SCOPED_TRACE(call);
    kill_and_resume({RLIM_INFINITY, call}, 1);
  }
}

TEST_F(Resume, GivesTheSameFileAfterManyDeaths) {
  TemporaryFolder folder;
  int deaths = 0;
  for (rlim_t bytes = 1000; !run_in_child(folder, {bytes, -1}); bytes += 5000) ++deaths;
  EXPECT_GT(deaths, 5);
  EXPECT_EQ(read_text(folder / "t.jsonl"), expected);
}

}  // namespace
}  // namespace rekernel
