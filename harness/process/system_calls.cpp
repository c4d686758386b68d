#include "harness/process/system_calls.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rekernel {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif

/// The filter is a program for the kernel's packet filter machine, run before every system call.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    // A foreign architecture has other numbers, and nobody here calls by them.
    jump(BPF_JEQ, architecture, 1, 0);
    answer_error(EPERM);
    load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
    constexpr std::uint32_t x32_calls = 0x40000000;
    jump(BPF_JGE, x32_calls, 0, 1);
    answer_error(EPERM);
#endif
  }

  void refuse(long call, int error) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 1);
    answer_error(error);
  }

  /// Refused when the low half of the call's argument has none of the bits.
  void refuse_without(long call, int argument, std::uint32_t bits, int error) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 4);
    load(argument_offset(argument));
    jump(BPF_JSET, bits, 1, 0);
    answer_error(error);
    allow();
  }

  /// Refused when the low half of the call's argument is one of two values.
  void refuse_for(long call, int argument, std::uint32_t one, std::uint32_t other, int error) {
    jump(BPF_JEQ, static_cast<std::uint32_t>(call), 0, 5);
    load(argument_offset(argument));
    jump(BPF_JEQ, one, 1, 0);
    jump(BPF_JEQ, other, 0, 1);
    answer_error(error);
    allow();
  }

  std::vector<sock_filter> finish() {
    allow();
    return std::move(code_);
  }

 private:
  // Both architectures are little-endian: the low half comes first.
  static std::uint32_t argument_offset(int argument) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) +
                                      static_cast<std::size_t>(argument) * sizeof(std::uint64_t));
  }
  void load(std::uint32_t offset) { add(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0); }
  void jump(int test, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
    add(BPF_JMP | test | BPF_K, value, if_true, if_false);
  }
  void answer_error(int error) {
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error), 0, 0);
  }
  void allow() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0); }
  void add(int code, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false) {
    code_.push_back({static_cast<std::uint16_t>(code), if_true, if_false, value});
  }

  std::vector<sock_filter> code_;
};

std::vector<sock_filter> filter() {
  Filter filter;
#ifdef SYS_fork
  filter.refuse(SYS_fork, EAGAIN);
  filter.refuse(SYS_vfork, EAGAIN);
#endif
  // The C library makes its threads by clone when there is no clone3, whose flags lie in memory
  // where no filter can see them.
  filter.refuse(SYS_clone3, ENOSYS);
  filter.refuse_without(SYS_clone, 0, CLONE_THREAD, EAGAIN);
  filter.refuse(SYS_execve, EACCES);
  filter.refuse(SYS_execveat, EACCES);
  filter.refuse_for(SYS_socket, 0, AF_INET, AF_INET6, EACCES);
  for (const long call : {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev}) {
    filter.refuse(call, EPERM);
  }
  return filter.finish();
}

}  // namespace

Result<Ok> lock_down() {
  if (architecture == 0) return Error{"no system call filter for this architecture"};
  std::vector<sock_filter> code = filter();
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Error{std::string("no_new_privs: ") + std::strerror(errno)};
  }
  // Without this flag, some kernels switch a mitigation on that slows the process itself down. Some
  // do not know the flag.
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) ==
          0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0) {
    return Ok{};
  }
  return Error{std::string("seccomp: ") + std::strerror(errno)};
}

}  // namespace rekernel
