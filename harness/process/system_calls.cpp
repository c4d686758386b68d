#include "harness/process/system_calls.h"

#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/base/files.h"
#include "harness/process/system_call_filter.h"
#include "harness/process/system_call_list.h"

namespace rekernel {

namespace {

using Refusals = SystemCallFilter::Refusals;

/// A thread, and none with namespaces of its own.
constexpr std::uint32_t new_namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr std::uint32_t name_of_memory = 0x53564d41;  // PR_SET_VMA

/// Operations of prctl: what a process asks about itself or gives up.
constexpr auto harmless_controls = std::to_array<std::uint32_t>(
    {PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE,
     PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ, PR_GET_TIMERSLACK,
     PR_SET_TIMERSLACK, PR_GET_THP_DISABLE, PR_SET_THP_DISABLE, PR_GET_SPECULATION_CTRL, PR_GET_TSC,
     name_of_memory});

/// Requests of ioctl that put text into the terminal's input, as if its owner had typed it.
constexpr auto typing_into_terminals = std::to_array<std::uint32_t>({TIOCSTI, TIOCLINUX});

/// The error for a call that is refused for what it is; others get EPERM.
int error_for(long call) {
  switch (call) {
#ifdef SYS_fork
    case SYS_fork:
    case SYS_vfork:
#endif
    case SYS_clone:
      return EAGAIN;
    case SYS_execve:
    case SYS_execveat:
    case SYS_socket:
    case SYS_socketpair:
      return EACCES;
    default:
      return EPERM;
  }
}

std::vector<sock_filter> filter(Refusals refusals) {
  SystemCallFilter filter(refusals);
  const auto own = std::to_array<std::uint32_t>({static_cast<std::uint32_t>(::getpid())});
  const auto own_or_implied = std::to_array<std::uint32_t>({0, own[0]});
  const auto asked_not_changed = std::to_array<std::uint32_t>({0xffffffff});
  const auto unix_sockets = std::to_array<std::uint32_t>({AF_UNIX});
  // The C library makes its threads by clone when there is no clone3, whose flags lie in memory
  // where no filter can see them.
  filter.say_unknown(SYS_clone3);
  filter.say_unknown_beyond(newest_considered_call);
  filter.allow(harmless_system_calls());
  filter.allow_with_bits(SYS_clone, 0, CLONE_THREAD, new_namespaces, error_for(SYS_clone));
  filter.allow_for(SYS_socket, 0, unix_sockets, error_for(SYS_socket));
  filter.allow_for(SYS_socketpair, 0, unix_sockets, error_for(SYS_socketpair));
  filter.refuse_for(SYS_ioctl, 1, typing_into_terminals, error_for(SYS_ioctl));
  filter.allow_for(SYS_prctl, 0, harmless_controls, error_for(SYS_prctl));
  for (const long call : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo}) {
    filter.allow_for(call, 0, own, error_for(call));
  }
  // Only its own memory. Limits can be read; a process of root's could raise them again. But for
  // that of the stack, which NVRTC raises.
  filter.allow_for(SYS_move_pages, 0, own_or_implied, error_for(SYS_move_pages));
  filter.allow_if(SYS_prlimit64, std::array{std::pair{2, std::uint32_t{0}}});
  filter.allow_if(SYS_prlimit64, std::array{std::pair{0, std::uint32_t{0}},
                                            std::pair{1, std::uint32_t{RLIMIT_STACK}}});
  filter.allow_for(SYS_personality, 0, asked_not_changed, error_for(SYS_personality));
  for (const long call : {SYS_execve, SYS_execveat}) {
    filter.refuse(call, error_for(call));
  }
#ifdef SYS_fork
  filter.refuse(SYS_fork, error_for(SYS_fork));
  filter.refuse(SYS_vfork, error_for(SYS_vfork));
#endif
  return filter.refuse_the_rest(EPERM);
}

Error seccomp_error() { return Error{std::string("seccomp: ") + std::strerror(errno)}; }

/// What the kernel gives for an installed filter, or −1.
int install(std::vector<sock_filter> code, unsigned flags) {
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  // Without this flag, some kernels switch a mitigation on that slows the process itself down. Some
  // do not know the flag.
  const long done = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                              flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
  if (done >= 0) return static_cast<int>(done);
  return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
}

/// Tells every refused call, and refuses it.
void tell_refused_calls(int listener) {
  while (true) {
    seccomp_notif call{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
      if (errno == EINTR || errno == ENOENT) continue;  // the caller went on or ended
      return;
    }
    (void)write_all(STDERR_FILENO, refused_call_mark + std::to_string(call.data.nr) + " (" +
                                       std::to_string(call.data.args[0]) + ", " +
                                       std::to_string(call.data.args[1]) + ", …)\n");
    seccomp_notif_resp answer{};
    answer.id = call.id;
    answer.error = -error_for(call.data.nr);
    (void)::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  }
}

/// The thread that tells begins before the filter, which binds those that begin later.
Result<Ok> install_with_reports() {
  std::promise<int> installed;
  std::thread([listener = installed.get_future()]() mutable {
    tell_refused_calls(listener.get());
  }).detach();
  const int listener = install(filter(Refusals::told), SECCOMP_FILTER_FLAG_NEW_LISTENER);
  const Error failure = seccomp_error();
  installed.set_value(listener);
  if (listener < 0) return failure;
  return Ok{};
}

}  // namespace

Result<Ok> lock_down() {
  if (!SystemCallFilter::is_possible()) {
    return Error{"no system call filter for this architecture"};
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Error{std::string("no_new_privs: ") + std::strerror(errno)};
  }
  const char* sandbox = std::getenv("REKERNEL_SANDBOX");
  if (sandbox && std::string_view(sandbox) == "report") return install_with_reports();
  if (install(filter(Refusals::silent), 0) != 0) return seccomp_error();
  return Ok{};
}

}  // namespace rekernel
