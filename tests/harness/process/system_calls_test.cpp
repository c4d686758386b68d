#include "harness/process/system_calls.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/process/isolate.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_call_list.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

ChildOutcome tried_calls(bool through_the_sandbox) {
  ChildCommand command;
  command.arguments = {own_executable(), "misbehave", "system-calls"};
  command.deadline = std::chrono::seconds(20);
  Result<ChildOutcome> outcome = through_the_sandbox
                                     ? run_sandboxed(std::move(command), SandboxDevices::none)
                                     : run_child(command);
  if (!outcome) throw std::runtime_error(outcome.error().message);
  return *std::move(outcome);
}

constexpr const char* what_the_calls_give =
    "io_uring_setup: Operation not permitted\n"
    "bpf: Operation not permitted\n"
    "userfaultfd: Operation not permitted\n"
    "keyctl: Operation not permitted\n"
    "unshare: Operation not permitted\n"
    "ptrace: Operation not permitted\n"
    "process_vm_readv: Operation not permitted\n"
    "kill: Operation not permitted\n"
    "kill itself: done\n"
    "setrlimit: Operation not permitted\n"
    "limit of the stack: done\n"
    "getrlimit: done\n"
    "type into the terminal: Operation not permitted\n"
    "ioctl: done\n"
    "packets: Permission denied\n"
    "netlink: Permission denied\n"
    "unix: done\n"
    "dumpable: Operation not permitted\n"
    "name: done\n"
    "clone with namespaces: Resource temporarily unavailable\n"
    "a call of tomorrow: Function not implemented\n"
    "memory: done\n"
    "event: done\n";

TEST(SystemCalls, OnlyThoseOfTheListAreAllowed) {
  EXPECT_EQ(tried_calls(false).result, what_the_calls_give);
}

TEST(SystemCalls, AReportTellsWhatWasRefusedAndRefusesTheSame) {
  const ScopedVariable variable("REKERNEL_SANDBOX", "report");
  testing::internal::CaptureStderr();
  const ChildOutcome outcome = tried_calls(true);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(outcome.result, what_the_calls_give);
  const std::string mark = refused_call_mark;
  for (const long call : {SYS_io_uring_setup, SYS_keyctl, SYS_kill, SYS_prlimit64}) {
    EXPECT_NE(told.find(mark + std::to_string(call) + " ("), std::string::npos) << told;
  }
  EXPECT_EQ(told.find(mark + std::to_string(SYS_clone3) + " ("), std::string::npos) << told;
}

TEST(SystemCallList, NamesEachCallOnceAndNoneThatOpensADoor) {
  std::vector<long> calls(harmless_system_calls().begin(), harmless_system_calls().end());
  std::sort(calls.begin(), calls.end());
  EXPECT_EQ(std::adjacent_find(calls.begin(), calls.end()), calls.end());
  EXPECT_LE(calls.back(), newest_considered_call);
  for (const long call : {SYS_clone, SYS_execve, SYS_socket, SYS_prctl, SYS_ioctl, SYS_kill,
                          SYS_ptrace, SYS_mount, SYS_setns, SYS_pidfd_getfd}) {
    EXPECT_FALSE(std::binary_search(calls.begin(), calls.end(), call)) << call;
  }
}

}  // namespace
}  // namespace rekernel
