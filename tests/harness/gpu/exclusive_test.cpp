#include "harness/gpu/exclusive.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <thread>

#include "harness/base/files.h"
#include "harness/gpu/cuda.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Clock = GpuLock::Clock;
using Kind = GpuContext::Kind;

const std::string uuid = "0123456789abcdef0123456789abcdef";

Result<GpuLock> try_lock(const fs::path& folder) {
  return GpuLock::acquire(uuid, Clock::now(), nullptr, folder);
}

/// A process that holds the lock until it is killed. Give `become` to do something first.
class Holder {
 public:
  explicit Holder(const fs::path& folder, const std::function<bool()>& become = nullptr) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    id_ = ::fork();
    if (id_ == 0) {
      const bool became = !become || become();
      const Result<GpuLock> lock = try_lock(folder);
      const char answer = became && lock ? 'y' : 'n';
      if (::write(ends[1], &answer, 1) == 1) ::pause();
      ::_exit(0);
    }
    char answer = 'n';
    locked_ = ::read(ends[0], &answer, 1) == 1 && answer == 'y';
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Holder() { kill(); }
  bool locked() const { return locked_; }
  pid_t id() const { return id_; }
  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(std::exchange(id_, 0), nullptr, 0);
  }

 private:
  pid_t id_ = 0;
  bool locked_ = false;
};

TEST(ExclusiveLock, IsFreeOnceItsOwnerIsGone) {
  const TemporaryFolder folder;
  int waits = 0;
  const auto count = [&](const std::string&) { ++waits; };
  for (int i = 0; i < 2; ++i) {
    const Result<GpuLock> lock = GpuLock::acquire(uuid, std::nullopt, count, folder.path());
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_FALSE(try_lock(folder.path()));
  }
  EXPECT_EQ(waits, 0);
}

TEST(ExclusiveLock, SaysOnceWhoHoldsItAndStopsAtTheDeadline) {
  const TemporaryFolder folder;
  const Holder holder(folder.path());
  ASSERT_TRUE(holder.locked());
  std::vector<std::string> said;
  const Clock::time_point start = Clock::now();
  const Result<GpuLock> lock = GpuLock::acquire(
      uuid, start + 100ms, [&](const std::string& who) { said.push_back(who); }, folder.path());
  ASSERT_FALSE(lock);
  EXPECT_GE(Clock::now() - start, 100ms);
  const std::string name = "process " + std::to_string(holder.id()) + " (";
  ASSERT_EQ(said.size(), 1u);
  EXPECT_TRUE(said[0].starts_with(name)) << said[0];
  EXPECT_NE(lock.error().message.find(name), std::string::npos) << lock.error().message;
}

TEST(ExclusiveLock, IsFreeOnceItsHolderWasKilled) {
  const TemporaryFolder folder;
  Holder holder(folder.path());
  ASSERT_TRUE(holder.locked());
  ASSERT_FALSE(try_lock(folder.path()));
  holder.kill();
  EXPECT_TRUE(try_lock(folder.path()));
}

/// Until a child runs this program it is a copy of this process. False where it ends before, or
/// takes too long.
bool comes_to_run(pid_t child, const std::string& program) {
  for (const Clock::time_point end = Clock::now() + 20s; Clock::now() < end;) {
    const std::optional<ProcessFacts> facts = process_facts(child);
    if (!facts || ::waitpid(child, nullptr, WNOHANG) != 0) return false;
    if (facts->name == program) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

TEST(ExclusiveLock, AProgramThatCannotBeStartedIsNotWaitedFor) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/nowhere/sleep", "sleep", "60", nullptr);
    ::_exit(127);
  }
  EXPECT_FALSE(comes_to_run(child, "sleep"));
}

TEST(ExclusiveLock, IsNotInheritedByPrograms) {
  const TemporaryFolder folder;
  pid_t child = 0;
  {
    const Result<GpuLock> lock = try_lock(folder.path());
    ASSERT_TRUE(lock);
    child = ::fork();
    if (child == 0) {
      ::execl("/bin/sleep", "sleep", "60", nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(comes_to_run(child, "sleep"));
  }
  const Result<GpuLock> lock = try_lock(folder.path());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(lock);
}

TEST(ExclusiveLock, IsOnePerGpu) {
  const TemporaryFolder folder;
  const Result<GpuLock> one = try_lock(folder.path());
  const Result<GpuLock> other =
      GpuLock::acquire("fedcba9876543210", Clock::now(), nullptr, folder.path());
  EXPECT_TRUE(one);
  EXPECT_TRUE(other);
}

TEST(ExclusiveLock, ComesToThoseWhoWaitForIt) {
  const TemporaryFolder folder;
  std::atomic<bool> stop = false;
  std::atomic<int> rounds = 0;
  // It asks again as soon as it has released the lock.
  std::thread greedy([&] {
    while (!stop) {
      const Result<GpuLock> lock = GpuLock::acquire(uuid, std::nullopt, nullptr, folder.path());
      if (!lock) break;
      ++rounds;
      std::this_thread::sleep_for(2ms);
    }
  });
  while (rounds == 0) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    const Result<GpuLock> lock = GpuLock::acquire(uuid, Clock::now() + 5s, nullptr, folder.path());
    EXPECT_TRUE(lock) << lock.error().message;
  }
  stop = true;
  greedy.join();
}

TEST(ExclusiveLock, KnowsWhetherSomebodyWaits) {
  const TemporaryFolder folder;
  Result<GpuLock> held = try_lock(folder.path());
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->is_wanted());
  std::atomic<bool> got = false;
  std::jthread waiting(
      [&] { got = GpuLock::acquire(uuid, Clock::now() + 20s, nullptr, folder.path()).ok(); });
  const auto patience = Clock::now() + 10s;
  while (!held->is_wanted() && Clock::now() < patience) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(held->is_wanted());
  EXPECT_FALSE(got);
  held = Error{"released"};
  waiting.join();
  EXPECT_TRUE(got);
}

TEST(ExclusiveLock, FilesServeAllUsers) {
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  const mode_t mask = ::umask(0077);
  const Result<GpuLock> lock = try_lock(folder.path());
  ::umask(mask);
  ASSERT_TRUE(lock) << lock.error().message;
  int files = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder.path())) {
    EXPECT_EQ(static_cast<int>(file.status().permissions()), 0666) << file.path();
    ++files;
  }
  EXPECT_EQ(files, 2);  // nothing else is left
}

TEST(ExclusiveLock, IsSharedWithAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 01777), 0);
  ASSERT_TRUE(try_lock(folder.path()));  // makes the files, as root
  constexpr uid_t nobody = 65534;
  Holder holder(folder.path(), [] { return ::setresuid(nobody, nobody, nobody) == 0; });
  EXPECT_TRUE(holder.locked());
  EXPECT_FALSE(try_lock(folder.path()));
}

TEST(ExclusiveLock, FollowsNoLinkAndTakesFilesOnly) {
  const TemporaryFolder folder;
  const fs::path path = folder / ("rekernel-gpu-" + uuid + ".lock");
  fs::create_symlink(folder / "elsewhere", path);
  const Result<GpuLock> link = try_lock(folder.path());
  ASSERT_FALSE(link);
  EXPECT_NE(link.error().message.find("symbolic link"), std::string::npos) << link.error().message;
  EXPECT_FALSE(fs::exists(folder / "elsewhere"));

  fs::remove(path);
  fs::create_directory(path);
  const Result<GpuLock> directory = try_lock(folder.path());
  ASSERT_FALSE(directory);
  EXPECT_NE(directory.error().message.find("expected a regular file"), std::string::npos)
      << directory.error().message;

  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);  // opening it must not wait either
  EXPECT_FALSE(try_lock(folder.path()));
}

TEST(ExclusiveLock, TakesUuidsOnly) {
  const TemporaryFolder folder;
  for (const char* bad : {"", "../../etc/passwd", "a b"}) {
    EXPECT_FALSE(GpuLock::acquire(bad, Clock::now(), nullptr, folder.path())) << bad;
  }
}

TEST(SharedLockFolder, IsTheFirstInWhichEverybodyMayMakeAndNobodyRemoveFiles) {
  const TemporaryFolder folder;
  const std::vector<fs::path> choices{folder / "absent",  folder / "link",   folder / "private",
                                      folder / "lawless", folder / "shared", folder / "second"};
  for (std::size_t i = 2; i < choices.size(); ++i) fs::create_directory(choices[i]);
  ::chmod((folder / "private").c_str(), 0755);
  ::chmod((folder / "lawless").c_str(), 0777);
  ::chmod((folder / "shared").c_str(), 01777);
  ::chmod((folder / "second").c_str(), 01777);
  fs::create_directory_symlink(folder / "shared", folder / "link");
  const Result<fs::path> found = shared_lock_folder(choices);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, folder / "shared");

  const std::vector<fs::path> none{folder / "absent", folder / "private"};
  const Result<fs::path> missing = shared_lock_folder(none);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find((folder / "private").string()), std::string::npos);
}

TEST(LockHolder, IsWhoHasAFlockOnTheFile) {
  const std::string locks =
      "1: POSIX  ADVISORY  WRITE 700 fe:01:5678 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 701 fe:01:56789 0 EOF\n"
      "3: FLOCK  ADVISORY  WRITE 702 fe:02:5678 0 EOF\n"
      "4: FLOCK  ADVISORY  WRITE 703 fe:01:5678 0 EOF\n"
      "4: -> FLOCK  ADVISORY  WRITE 704 fe:01:5678 0 EOF\n";
  EXPECT_EQ(lock_holder(locks, makedev(0xfe, 1), 5678), 703);
  EXPECT_EQ(lock_holder(locks, makedev(0xfe, 1), 56789), 701);
  EXPECT_EQ(lock_holder(locks, makedev(0xfe, 3), 5678), std::nullopt);
  // A holder of a namespace that is not seen from here.
  EXPECT_EQ(lock_holder("1: FLOCK  ADVISORY  WRITE 0 fe:01:5678 0 EOF\n", makedev(0xfe, 1), 5678),
            std::nullopt);
  EXPECT_EQ(lock_holder("", 0, 0), std::nullopt);
}

TEST(ProcessFacts, AreThoseOfProc) {
  const std::optional<ProcessFacts> own = process_facts(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->parent, ::getppid());
  EXPECT_EQ(own->name, fs::read_symlink("/proc/self/exe").filename());
  EXPECT_FALSE(process_facts(0x7ffffff0));
}

/// 100 is our program, 110 a sandbox below it, 111 a worker in that; 200 a shell, 210 another's
/// Python, 300 a display server.
ProcessTable machine() {
  return [](pid_t process) -> std::optional<ProcessFacts> {
    static const std::map<pid_t, ProcessFacts> facts{
        {1, {0, "init"}},        {90, {1, "bash"}},        {100, {90, "rekernel"}},
        {110, {100, "bwrap"}},   {111, {110, "rekernel"}}, {200, {1, "bash"}},
        {210, {200, "python3"}}, {300, {1, "Xorg"}}};
    const auto found = facts.find(process);
    if (found == facts.end()) return std::nullopt;
    return found->second;
  };
}

std::vector<pid_t> numbers(const std::vector<GpuProcess>& processes) {
  std::vector<pid_t> result;
  for (const GpuProcess& process : processes) result.push_back(process.pid);
  return result;
}

const std::vector<pid_t> ours{100};
using Contexts = std::vector<GpuContext>;
using Numbers = std::vector<pid_t>;

TEST(Occupants, OfOthersAreNamedAndOursAreNot) {
  const GpuOccupants found = occupants(
      Contexts{{111, Kind::compute, 1 << 30}, {210, Kind::compute, 1 << 20}}, machine(), true);
  EXPECT_EQ(found.incomplete, "");
  const std::vector<GpuProcess> foreign = foreign_compute(found, ours);
  ASSERT_EQ(numbers(foreign), Numbers{210});
  EXPECT_EQ(to_text(foreign[0]), "process 210 (python3)");
  EXPECT_EQ(foreign[0].memory_bytes, 1 << 20);
  EXPECT_EQ(numbers(foreign_compute(found, {})), (Numbers{111, 210}));
  EXPECT_EQ(numbers(foreign_compute(found, Numbers{111, 200})), Numbers{});
}

TEST(Occupants, ThatOnlyDrawAreNotForeignCompute) {
  const GpuOccupants found =
      occupants(Contexts{{300, Kind::graphics, std::nullopt}}, machine(), true);
  EXPECT_EQ(numbers(foreign_compute(found, ours)), Numbers{});
  EXPECT_EQ(numbers(graphics_only(found)), Numbers{300});
}

TEST(Occupants, ThatDrawAndComputeAreForeignCompute) {
  for (const Contexts& contexts :
       {Contexts{{300, Kind::graphics, 5}, {300, Kind::compute, 5}},
        Contexts{{300, Kind::compute, 5}, {300, Kind::graphics, 5}},
        Contexts{{300, Kind::graphics, std::nullopt}, {300, Kind::mps_client, 5}}}) {
    const GpuOccupants found = occupants(contexts, machine(), true);
    EXPECT_EQ(numbers(foreign_compute(found, ours)), Numbers{300});
    EXPECT_EQ(numbers(graphics_only(found)), Numbers{});
    EXPECT_EQ(found.processes[0].memory_bytes, 5);
  }
}

TEST(Occupants, AreUnknownWhereNvmlDoesNotListThem) {
  const GpuOccupants found = occupants(Error{"NVML does not: Not Supported"}, machine(), true);
  EXPECT_EQ(found.incomplete, "NVML does not: Not Supported");
  EXPECT_TRUE(found.processes.empty());
}

TEST(Occupants, OfAnEmptyListAreUnknownInAContainerOnly) {
  EXPECT_EQ(occupants(Contexts{}, machine(), true).incomplete, "");
  EXPECT_NE(occupants(Contexts{}, machine(), false).incomplete, "");
}

TEST(Occupants, OfOurOwnContainerAreNamedAllTheSame) {
  const GpuOccupants found =
      occupants(Contexts{{111, Kind::compute, 1}, {210, Kind::compute, 1}}, machine(), false);
  EXPECT_EQ(numbers(foreign_compute(found, ours)), Numbers{210});
  EXPECT_NE(found.incomplete, "");
}

// An older driver in a container: 54321 is a number of the host's, and 210 may be so by chance.
TEST(Occupants, AreNotTakenForProcessesHereIfANumberIsNotFromHere) {
  const Contexts contexts{{54321, Kind::compute, 1}, {210, Kind::compute, 1}};
  const GpuOccupants inside = occupants(contexts, machine(), false);
  EXPECT_TRUE(inside.processes.empty());
  EXPECT_NE(inside.incomplete, "");
  // Outside of containers that number is of a process that has ended.
  const GpuOccupants outside = occupants(contexts, machine(), true);
  EXPECT_EQ(numbers(outside.processes), Numbers{210});
  EXPECT_NE(outside.incomplete, "");
}

TEST(Occupants, OfATreeThatChangesMeanwhileAreStillFound) {
  // A parent that has just ended, and one that is its own ancestor.
  const ProcessTable torn = [](pid_t process) -> std::optional<ProcessFacts> {
    if (process == 5) return ProcessFacts{6, "orphan"};
    if (process == 7) return ProcessFacts{8, "ring"};
    if (process == 8) return ProcessFacts{7, "ring"};
    return std::nullopt;
  };
  const GpuOccupants found =
      occupants(Contexts{{5, Kind::compute, 1}, {7, Kind::compute, 1}}, torn, true);
  EXPECT_EQ(numbers(foreign_compute(found, ours)), (Numbers{5, 7}));
}

TEST(Occupants, InASandboxOfOursAreOurs) {
  // A process of a PID namespace of its own, where it has the number 1.
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(1);
    const pid_t inner = ::fork();
    if (inner == 0) ::pause();
    ::waitpid(inner, nullptr, 0);
    ::_exit(0);
  }
  pid_t inner = 0;
  while (inner == 0 && ::waitpid(outer, nullptr, WNOHANG) == 0) {
    const std::string number = std::to_string(outer);
    std::ifstream("/proc/" + number + "/task/" + number + "/children") >> inner;
    std::this_thread::sleep_for(1ms);
  }
  if (inner == 0) GTEST_SKIP() << "no PID namespaces for us on this machine";
  const GpuOccupants found =
      occupants(Contexts{{inner, Kind::compute, 1}, {1, Kind::compute, 1}}, process_facts, true);
  const Numbers foreign = numbers(foreign_compute(found, Numbers{::getpid()}));
  ::kill(inner, SIGKILL);
  ::waitpid(outer, nullptr, 0);
  EXPECT_EQ(numbers(found.processes), (Numbers{inner, 1}));
  EXPECT_EQ(foreign, Numbers{1});
}

TEST(GpuOccupants, AreOurselvesOnceWeHaveAContext) {
  const Result<Device> device = Device::open();
  ASSERT_TRUE(device) << device.error().message;
  const Result<GpuMonitor> monitor = GpuMonitor::open(device->properties().uuid);
  ASSERT_TRUE(monitor) << monitor.error().message;
  const GpuOccupants found = occupants(*monitor);
  const Numbers listed = numbers(found.processes);
  const bool we_are = std::find(listed.begin(), listed.end(), ::getpid()) != listed.end();
  EXPECT_TRUE(we_are || !found.incomplete.empty());
  const Numbers foreign = numbers(foreign_compute(found, Numbers{::getpid()}));
  EXPECT_EQ(std::find(foreign.begin(), foreign.end(), ::getpid()), foreign.end());
}

}  // namespace
}  // namespace rekernel
