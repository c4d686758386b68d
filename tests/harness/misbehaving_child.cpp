#include "misbehaving_child.h"
#include "harness/base/files.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "harness/process/isolate.h"
#include "harness/process/system_calls.h"

extern char** environ;

namespace rekernel::testing {
namespace {

void put(int descriptor, const std::string& text) {
  if (!write_all(descriptor, text)) std::exit(3);
}

void say(const std::string& text) { put(result_descriptor, text); }

/// "done" or the reason why not.
std::string outcome(bool done) { return done ? "done" : std::strerror(errno); }

int allocate_without_end(char**) {
  for (std::size_t total = 0;; total += 1 << 20) {
    char* block = static_cast<char*>(::malloc(1 << 20));
    if (!block) {
      say("refused after " + std::to_string(total >> 20));
      return 0;
    }
    std::memset(block, 1, 1 << 20);
  }
}

int spin(char**) {
  for (volatile unsigned turns = 0;;) turns = turns + 1;
}

int start_processes(char**) {
  const Result<Ok> locked = lock_down();
  if (!locked) {
    say(locked.error().message);
    return 0;
  }
  const pid_t forked = ::fork();
  if (forked == 0) ::_exit(0);
  say("fork: " + outcome(forked > 0));
  pid_t spawned = 0;
  char* const arguments[] = {const_cast<char*>("true"), nullptr};
  const int refusal = ::posix_spawn(&spawned, "/bin/true", nullptr, nullptr, arguments, environ);
  say(std::string(", spawn: ") + (refusal ? std::strerror(refusal) : "done"));
  ::execv("/bin/true", arguments);
  say(", exec: " + outcome(false));
  bool ran = false;
  std::thread([&] { ran = true; }).join();
  say(std::string(", thread: ") + (ran ? "done" : "no"));
  return 0;
}

/// What each of these gives once the process is locked down.
int try_system_calls(char**) {
  const Result<Ok> locked = lock_down();
  if (!locked) {
    say(locked.error().message);
    return 0;
  }
  const auto tried = [](const char* name, long result) {
    say(std::string(name) + ": " + outcome(result >= 0) + "\n");
  };
  char byte = 0;
  iovec memory{&byte, 1};
  rlimit limit{1 << 23, 1 << 23};
  tried("io_uring_setup", ::syscall(SYS_io_uring_setup, 1, nullptr));
  tried("bpf", ::syscall(SYS_bpf, 0, nullptr, 0));
  tried("userfaultfd", ::syscall(SYS_userfaultfd, 1));
  tried("keyctl", ::syscall(SYS_keyctl, 0, -3, 0));
  tried("unshare", ::unshare(CLONE_NEWUSER));
  tried("ptrace", ::syscall(SYS_ptrace, 0, 0, 0, 0));
  tried("process_vm_readv", ::process_vm_readv(::getppid(), &memory, 1, &memory, 1, 0));
  tried("kill", ::kill(::getppid(), 0));
  tried("kill itself", ::kill(::getpid(), 0));
  tried("setrlimit", ::setrlimit(RLIMIT_CORE, &limit));
  tried("limit of the stack", ::setrlimit(RLIMIT_STACK, &limit));
  tried("getrlimit", ::getrlimit(RLIMIT_CORE, &limit));
  tried("type into the terminal", ::ioctl(STDIN_FILENO, TIOCSTI, &byte));
  tried("ioctl", ::ioctl(STDIN_FILENO, FIONREAD, &limit));
  tried("packets", ::socket(AF_PACKET, SOCK_RAW, 0));
  tried("netlink", ::socket(AF_NETLINK, SOCK_RAW, 0));
  tried("unix", ::socket(AF_UNIX, SOCK_STREAM, 0));
  tried("dumpable", ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
  tried("name", ::prctl(PR_SET_NAME, "locked", 0, 0, 0));
  tried("clone with namespaces",
        ::syscall(SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_NEWNET, 0, 0, 0, 0));
  tried("a call of tomorrow", ::syscall(4000));
  tried("memory", ::memfd_create("x", MFD_CLOEXEC));
  tried("event", ::eventfd(0, EFD_CLOEXEC));
  return 0;
}

int write_a_huge_file(char** arguments) {
  const int file = ::open(arguments[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) {
    say(outcome(false));
    return 0;
  }
  const std::string block(1 << 16, 'x');
  std::size_t total = 0;
  ssize_t count = 0;
  while (total < (std::size_t{1} << 30) &&
         (count = ::write(file, block.data(), block.size())) > 0) {
    total += static_cast<std::size_t>(count);
  }
  say(std::to_string(total) + ", then " + outcome(count > 0));
  return 0;
}

int print_gigabytes(char**) {
  const std::string block(1 << 20, 'y');
  for (int i = 0; i < 1024; ++i) {
    put(STDOUT_FILENO, block);
    if (i % 16 == 0) put(STDERR_FILENO, block);
  }
  put(STDERR_FILENO, "\nlast words\n");
  return 0;
}

int report_without_end(char**) {
  for (const std::string block(1 << 20, 'z');;) say(block);
}

int open_files(char**) {
  int count = 0;
  while (count < 1'000'000 && ::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) ++count;
  say(std::to_string(count) + ", then " + outcome(false));
  return 0;
}

int list_descriptors(char**) {
  std::vector<int> open;
  for (int i = 0; i < 4096; ++i) {
    if (::fcntl(i, F_GETFD) >= 0) open.push_back(i);
  }
  for (const int descriptor : open) say(std::to_string(descriptor) + " ");
  return 0;
}

int read_a_file(char** arguments) {
  std::ifstream file(arguments[0]);
  std::string word;
  say(file >> word ? word : "unreadable");
  return 0;
}

int create_a_file(char** arguments) {
  const int file = ::open(arguments[0], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  say(outcome(file >= 0 && ::write(file, "x", 1) == 1));
  return 0;
}

/// Connects to a port of this machine: to what listens there if it shares the parent's network.
int connect_to(char** arguments) {
  if (std::string_view(arguments[1]) == "locked") (void)lock_down().ok();
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) {
    say("no socket");
    return 0;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(arguments[0])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected =
      ::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  say(connected ? "connected" : "refused");
  return 0;
}

int forge_a_report(char**) {
  const std::string forged = "0:{\"failure\":\"\",\"status\":\"passed\"}";
  put(STDOUT_FILENO, forged);
  put(STDERR_FILENO, forged + "\n");
  return 0;
}

int die_while_writing(char**) {
  say("{\"status\":\"pas");
  ::raise(SIGKILL);
  return 0;
}

int close_the_pipe_and_hang(char**) {
  say("all is well");
  ::close(result_descriptor);
  ::pause();
  return 0;
}

int die_of_segmentation(char**) {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
  return 0;
}

int fail_with_status(char**) {
  put(STDERR_FILENO, "first\nthe reason\n");
  return 7;
}

int count_input(char**) {
  say(std::to_string(read_all(STDIN_FILENO).size()));
  return 0;
}

/// Leaves a process that is in a session of its own and holds the pipes.
int leave_a_process(char** arguments) {
  if (::fork() == 0) {
    ::setsid();
    std::ofstream(arguments[0]) << ::getpid();
    ::pause();
  }
  ::pause();
  return 0;
}

int show_environment(char**) {
  for (char** variable = environ; *variable; ++variable) say(std::string(*variable) + "\n");
  return 0;
}

}  // namespace

int misbehave(char** arguments) {
  const std::map<std::string, std::function<int(char**)>> modes = {
      {"allocate", allocate_without_end},
      {"close-and-hang", close_the_pipe_and_hang},
      {"connect", connect_to},
      {"count-input", count_input},
      {"create", create_a_file},
      {"die-while-writing", die_while_writing},
      {"environment", show_environment},
      {"fail", fail_with_status},
      {"forge", forge_a_report},
      {"leave-a-process", leave_a_process},
      {"list-descriptors", list_descriptors},
      {"open-files", open_files},
      {"print", print_gigabytes},
      {"read", read_a_file},
      {"report", report_without_end},
      {"segfault", die_of_segmentation},
      {"spin", spin},
      {"start-processes", start_processes},
      {"system-calls", try_system_calls},
      {"write", write_a_huge_file},
  };
  const auto mode = modes.find(arguments[0]);
  return mode == modes.end() ? 99 : mode->second(arguments + 1);
}

}  // namespace rekernel::testing
