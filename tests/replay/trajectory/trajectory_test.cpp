#include "replay/trajectory/trajectory.h"
#include "replay/trajectory/inspection.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>

#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using testing::read_text;
using testing::write_text;

const json::object header{{"event", "header"}, {"schema", 1}};
const json::object stop{{"event", "stop"}, {"reason", "rounds"}};

Trajectory opened(const std::filesystem::path& path, Trajectory::Access access) {
  Result<Trajectory> trajectory = Trajectory::open(path, access);
  if (!trajectory) throw std::runtime_error(trajectory.error().message);
  return std::move(*trajectory);
}

TEST(TrajectoryFile, AppendsThenComparesTheSameEvents) {
  TemporaryFolder folder;
  {
    Trajectory writing = opened(folder / "t.jsonl", Trajectory::Access::append);
    EXPECT_FALSE(writing.put(header));
    EXPECT_FALSE(writing.put(stop));
  }
  const std::string text = read_text(folder / "t.jsonl");
  EXPECT_EQ(text, testing::with_fresh_chain("{\"event\":\"header\",\"schema\":1}\n"
                                            "{\"event\":\"stop\",\"reason\":\"rounds\"}\n"));
  Trajectory reading = opened(folder / "t.jsonl", Trajectory::Access::read);
  EXPECT_FALSE(reading.put(header));
  EXPECT_FALSE(*reading.at_end());
  EXPECT_FALSE(reading.put(stop));
  EXPECT_TRUE(*reading.at_end());
  const auto beyond = reading.put(stop);
  ASSERT_TRUE(beyond);
  EXPECT_EQ(beyond->kind, Interruption::Kind::mismatch);
  EXPECT_EQ(read_text(folder / "t.jsonl"), text);
}

TEST(TrajectoryFile, CutsATornLineWhenAppendingAndRefusesItWhenReading) {
  TemporaryFolder folder;
  const std::string whole =
      testing::with_fresh_chain(canonical_json(header) + "\n" + canonical_json(stop) + "\n");
  const std::size_t first = whole.find('\n') + 1;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_text(folder / "t.jsonl", whole.substr(0, size));
    const Result<Trajectory> reading =
        Trajectory::open(folder / "t.jsonl", Trajectory::Access::read);
    EXPECT_EQ(reading.ok(), size == first) << size;
    {
      Trajectory writing = opened(folder / "t.jsonl", Trajectory::Access::append);
      EXPECT_FALSE(writing.put(header)) << size;
      EXPECT_FALSE(writing.put(stop)) << size;
    }
    EXPECT_EQ(read_text(folder / "t.jsonl"), whole) << size;
  }
}

TEST(TrajectoryFile, LetsOneWriterInAtATime) {
  TemporaryFolder folder;
  const Trajectory writing = opened(folder / "t.jsonl", Trajectory::Access::append);
  const auto second = Trajectory::open(folder / "t.jsonl", Trajectory::Access::append);
  ASSERT_FALSE(second);
  EXPECT_TRUE(second.error().message.ends_with("another search is writing this file"));
}

/// In a process of its own: what is said on a file system that knows no locks, as Lustre's may.
[[noreturn]] void open_without_locks(const std::filesystem::path& path) {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{4, steps};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) ::_exit(2);
  const auto trajectory = Trajectory::open(path, Trajectory::Access::append);
  std::fprintf(stderr, "%s\n", trajectory ? "opened" : trajectory.error().message.c_str());
  ::_exit(is_being_written(path) ? 1 : 0);
}

TEST(TrajectoryFile, SaysWhereItCannotBeLocked) {
  TemporaryFolder folder;
  EXPECT_EXIT(open_without_locks(folder / "t.jsonl"), ::testing::ExitedWithCode(0),
              "t.jsonl: cannot be locked: Function not implemented");
}

std::string peek_error(const TemporaryFolder& folder, const std::string& text) {
  write_text(folder / "t.jsonl", text);
  Result<Trajectory> trajectory = Trajectory::open(folder / "t.jsonl", Trajectory::Access::read);
  if (!trajectory) return trajectory.error().message.substr(folder.path().string().size());
  while (true) {
    const auto event = trajectory->peek();
    if (!event) return event.error().message.substr(folder.path().string().size());
    if (!*event) return "good";
    const auto skipped = trajectory->skip();
    if (!skipped) return skipped.error().message.substr(folder.path().string().size());
  }
}

TEST(TrajectoryFile, NamesWhatIsWrongWithALine) {
  TemporaryFolder folder;
  const std::string first = event_line(canonical_json(header), "x");
  EXPECT_EQ(peek_error(folder, first), "good");
  EXPECT_EQ(peek_error(folder, ""), "/t.jsonl: empty; expected a trajectory's events");
  EXPECT_EQ(peek_error(folder, first + "{\"event\": \n"),
            "/t.jsonl: line 2: line 1: not valid JSON: incomplete JSON");
  EXPECT_EQ(peek_error(folder, first + "{\"event\":\"party\",\"chain\":\"\"}\n"),
            "/t.jsonl: line 2: unknown event \"party\"; known: header, request, response, "
            "evaluation, selection, stop, continue, endpoints, unusable, profile");
  EXPECT_EQ(peek_error(folder, first + "{\"event\":\"stop\"}\n"),
            "/t.jsonl: line 2: the key \"chain\" is missing");
  EXPECT_EQ(peek_error(folder, first + "{\"event\":\"stop\",\"a\":[0.5],\"chain\":\"\"}\n"),
            "/t.jsonl: line 2: a floating-point number; events hold integers and text");
  EXPECT_EQ(peek_error(folder, first + "{\"event\":\"stop\",\"a\":1,\"a\":2,\"chain\":\"\"}\n"),
            "/t.jsonl: line 2: line 1: not valid JSON: the key \"a\" appears twice");
  EXPECT_EQ(peek_error(folder, "{\"event\":\"stop\",\"chain\":\"\"}\n"),
            "/t.jsonl: line 1: expected the header, got stop");
  EXPECT_EQ(peek_error(folder, first + first), "/t.jsonl: line 2: a second header");
  EXPECT_EQ(peek_error(folder, "{\"event\":\"header\",\"schema\":2,\"chain\":\"\"}\n"),
            "/t.jsonl: line 1: schema 2 is newer than this program's 1; update rekernel");
}

TEST(TrajectoryFile, TellsAnEditFromAnotherSearch) {
  TemporaryFolder folder;
  const auto message = [&](const std::string& text) {
    write_text(folder / "t.jsonl", text);
    Trajectory trajectory = opened(folder / "t.jsonl", Trajectory::Access::read);
    const auto difference = trajectory.put(header);
    if (difference) return difference->message;
    return trajectory.put(stop)->message;
  };
  const std::string whole =
      testing::with_fresh_chain(canonical_json(header) + "\n" + canonical_json(stop) + "\n");
  std::string edited = whole;
  edited.replace(edited.find("\"schema\":1"), 10, "\"schema\":1,\"a\":1");
  EXPECT_NE(message(edited).find("line 1: header differs"), std::string::npos) << message(edited);
  edited = whole;
  edited.replace(edited.find("\"event\":\"stop\""), 14, "\"event\":\"stop\",\"event\":\"stop\"");
  EXPECT_NE(message(edited).find("line 2: line 1: not valid JSON: the key \"event\" appears twice"),
            std::string::npos)
      << message(edited);
  edited = whole;
  edited.insert(edited.find("\"event\":\"stop\""), " ");
  EXPECT_NE(message(edited).find("line 2: stop was edited"), std::string::npos) << message(edited);
  edited = whole;
  edited[edited.size() - 5] ^= 1;  // in the last chain value
  EXPECT_NE(message(edited).find("line 2: stop was edited after it was recorded"),
            std::string::npos)
      << message(edited);
}

}  // namespace
}  // namespace rekernel
