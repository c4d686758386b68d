#include "harness/process/sandbox.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "harness/base/file_descriptor.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using End = ChildOutcome::End;

ChildOutcome run_in_sandbox(std::vector<std::string> mode,
                            std::chrono::milliseconds deadline = 20s) {
  ChildCommand command;
  command.arguments = {own_executable(), "misbehave"};
  command.arguments.insert(command.arguments.end(), mode.begin(), mode.end());
  command.deadline = deadline;
  command.limits.file_bytes = 1 << 20;
  Result<ChildOutcome> outcome = run_sandboxed(std::move(command), SandboxDevices::none);
  if (!outcome) throw std::runtime_error(outcome.error().message);
  return *outcome;
}

TEST(PythonAdditions, AreTheAbsoluteFoldersOfItsPath) {
  const std::optional<std::string> before =
      std::getenv("PYTHONPATH") ? std::optional<std::string>(std::getenv("PYTHONPATH"))
                                : std::nullopt;
  ::setenv("PYTHONPATH", "/opt/one:two::/opt/three", 1);
  const SandboxAdditions found = python_additions();
  ::unsetenv("PYTHONPATH");
  const SandboxAdditions without = python_additions();
  if (before) ::setenv("PYTHONPATH", before->c_str(), 1);
  EXPECT_TRUE(found.tools);
  EXPECT_EQ(found.readable, (std::vector<std::string>{"/opt/one", "/opt/three"}));
  EXPECT_EQ(found.variables, (std::vector<std::string>{"PYTHONDONTWRITEBYTECODE=1",
                                                       "PYTHONPATH=/opt/one:two::/opt/three"}));
  EXPECT_TRUE(without.readable.empty());
  EXPECT_EQ(without.variables, std::vector<std::string>{"PYTHONDONTWRITEBYTECODE=1"});
}

/// A port of this machine on which somebody listens.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(socket_.get(), 8) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = std::to_string(ntohs(address.sin_port));
  }
  const std::string& port() const { return port_; }

 private:
  FileDescriptor socket_;
  std::string port_;
};

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<std::string> found = sandbox();
    if (!found) GTEST_SKIP() << "no sandbox: " << found.error().message;
  }
};

TEST_F(Sandbox, IsLeftByTheResultPipe) {
  const ChildOutcome outcome = run_in_sandbox({"list-descriptors"});
  EXPECT_EQ(outcome.end, End::exited);
  EXPECT_EQ(outcome.result, "0 1 2 3 ");
}

TEST_F(Sandbox, TellsHowAChildEnded) {
  const ChildOutcome failed = run_in_sandbox({"fail"});
  EXPECT_EQ(failed.end, End::exited);
  EXPECT_EQ(failed.code, 7);
  EXPECT_EQ(failed.last_words, "the reason");
  const ChildOutcome crashed = run_in_sandbox({"segfault"});
  EXPECT_EQ(crashed.end, End::signalled);
  EXPECT_EQ(crashed.code, SIGSEGV);
}

TEST_F(Sandbox, DoesNotOutliveItsDeadline) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(run_in_sandbox({"spin"}, 200ms).end, End::deadline);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(Sandbox, HasNoHomeAndNoFilesOfOthers) {
  const fs::path folder = fs::path(::testing::TempDir());
  const fs::path file = folder / ("secret." + std::to_string(::getpid()));
  std::ofstream(file) << "secret\n";
  EXPECT_EQ(run_in_sandbox({"read", file.string()}).result, "unreadable");
  fs::remove(file);
  const char* home = std::getenv("HOME");
  if (!home) return;
  const fs::path at_home = fs::path(home) / (".rekernel-test." + std::to_string(::getpid()));
  if (!(std::ofstream(at_home) << "secret\n")) return;
  EXPECT_EQ(run_in_sandbox({"read", at_home.string()}).result, "unreadable");
  fs::remove(at_home);
}

TEST_F(Sandbox, SeesTheProjectAndCannotChangeIt) {
  const std::string project = REKERNEL_SOURCE_DIR;
  EXPECT_EQ(run_in_sandbox({"read", project + "/CMakeLists.txt"}).result,
            "cmake_minimum_required(VERSION");
  const std::string intruder = project + "/intruder";
  EXPECT_EQ(run_in_sandbox({"create", intruder}).result, "Read-only file system");
  EXPECT_FALSE(fs::exists(intruder));
  EXPECT_EQ(run_in_sandbox({"create", "/tmp/scratch"}).result, "done");
}

TEST_F(Sandbox, HasNoNetwork) {
  const Listener listener;
  EXPECT_EQ(run_in_sandbox({"connect", listener.port(), "free"}).result, "refused");
}

TEST_F(Sandbox, HasAHomeOfItsOwn) {
  EXPECT_NE(run_in_sandbox({"environment"}).result.find("HOME=/tmp\n"), std::string::npos);
}

TEST(NoSandbox, ChildrenGetNoKeys) {
  if (sandbox_is_refused()) GTEST_SKIP() << "REKERNEL_SANDBOX=off";
  ::setenv("A_SECRET_KEY", "secret", 1);
  const std::string variables = run_in_sandbox({"environment"}).result;
  ::unsetenv("A_SECRET_KEY");
  EXPECT_EQ(variables.find("A_SECRET_KEY"), std::string::npos);
  EXPECT_NE(variables.find("REKERNEL_CACHE=/"), std::string::npos) << variables;
  EXPECT_NE(variables.find("PATH="), std::string::npos);
}

TEST(NoSandbox, ALockedChildHasNoNetworkEither) {
  const Listener listener;
  ChildCommand command;
  command.arguments = {own_executable(), "misbehave", "connect", listener.port(), "locked"};
  command.deadline = 20s;
  const Result<ChildOutcome> locked = run_child(command);
  ASSERT_TRUE(locked.ok());
  EXPECT_EQ(locked->result, "no socket");
  command.arguments.back() = "free";
  const Result<ChildOutcome> free = run_child(command);
  ASSERT_TRUE(free.ok());
  EXPECT_EQ(free->result, "connected");
}

}  // namespace
}  // namespace rekernel
