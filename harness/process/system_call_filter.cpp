#include "harness/process/system_call_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>

namespace rekernel {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif

std::uint32_t number(long call) { return static_cast<std::uint32_t>(call); }

}  // namespace

bool SystemCallFilter::is_possible() { return architecture != 0; }

SystemCallFilter::SystemCallFilter(Refusals refusals) : refusals_(refusals) {
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  // A foreign architecture has other numbers, and nobody here calls by them.
  jump(BPF_JEQ, architecture, 1, 0);
  answer_error(EPERM);
  load_number();
#if defined(__x86_64__)
  constexpr std::uint32_t x32_calls = 0x40000000;
  jump(BPF_JGE, x32_calls, 0, 1);
  answer_error(EPERM);
#endif
}

// A rule begins and, for calls that it does not know, ends with the call's number loaded.

void SystemCallFilter::refuse(long call, int error) {
  jump(BPF_JEQ, number(call), 0, 1);
  answer_refusal(error);
}

void SystemCallFilter::say_unknown_beyond(long call) {
  jump(BPF_JGT, number(call), 0, 1);
  answer_error(ENOSYS);
}

void SystemCallFilter::say_unknown(long call) {
  jump(BPF_JEQ, number(call), 0, 1);
  answer_error(ENOSYS);
}

void SystemCallFilter::allow_with_bits(long call, int argument, std::uint32_t needed,
                                       std::uint32_t forbidden, int error) {
  jump(BPF_JEQ, number(call), 0, 5);
  load_argument(argument);
  add(BPF_ALU | BPF_AND | BPF_K, needed | forbidden);
  jump(BPF_JEQ, needed, 0, 1);
  answer_allowed();
  answer_refusal(error);
}

void SystemCallFilter::allow_for(long call, int argument, std::span<const std::uint32_t> values,
                                 int error) {
  jump(BPF_JEQ, number(call), 0, 2 + 2 * values.size());
  load_argument(argument);
  for (const std::uint32_t value : values) {
    jump(BPF_JEQ, value, 0, 1);
    answer_allowed();
  }
  answer_refusal(error);
}

void SystemCallFilter::refuse_for(long call, int argument, std::span<const std::uint32_t> values,
                                  int error) {
  jump(BPF_JEQ, number(call), 0, 2 + 2 * values.size());
  load_argument(argument);
  for (const std::uint32_t value : values) {
    jump(BPF_JEQ, value, 0, 1);
    answer_refusal(error);
  }
  answer_allowed();
}

void SystemCallFilter::allow_if(long call,
                                std::span<const std::pair<int, std::uint32_t>> arguments) {
  std::size_t to_the_end = 4 * arguments.size();  // where the number is loaded again
  jump(BPF_JEQ, number(call), 0, to_the_end + 2);
  for (const auto& [argument, value] : arguments) {
    load_argument(argument);
    jump(BPF_JEQ, value, 0, to_the_end - 1);
    load_argument(argument, true);
    jump(BPF_JEQ, 0, 0, to_the_end - 3);
    to_the_end -= 4;
  }
  answer_allowed();
  load_number();
}

void SystemCallFilter::allow(std::span<const long> calls) {
  std::vector<long> sorted(calls.begin(), calls.end());
  std::sort(sorted.begin(), sorted.end());
  // Neighbours take one comparison together.
  for (std::size_t first = 0, last = 0; first < sorted.size(); first = ++last) {
    while (last + 1 < sorted.size() && sorted[last + 1] <= sorted[last] + 1) ++last;
    jump(BPF_JGE, number(sorted[first]), 0, 2);
    jump(BPF_JGT, number(sorted[last]), 1, 0);
    answer_allowed();
  }
}

std::vector<sock_filter> SystemCallFilter::refuse_the_rest(int error) {
  answer_refusal(error);
  return std::move(code_);
}

void SystemCallFilter::load_number() { add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)); }

void SystemCallFilter::load_argument(int argument, bool high_half) {
  // Both architectures are little-endian: the low half comes first.
  const std::size_t offset = offsetof(seccomp_data, args) +
                             static_cast<std::size_t>(argument) * sizeof(std::uint64_t) +
                             (high_half ? sizeof(std::uint32_t) : 0);
  add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

void SystemCallFilter::jump(int test, std::uint32_t value, std::size_t if_true,
                            std::size_t if_false) {
  add(BPF_JMP | test | BPF_K, value, if_true, if_false);
}

void SystemCallFilter::answer_error(int error) {
  add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error));
}

void SystemCallFilter::answer_refusal(int error) {
  if (refusals_ == Refusals::silent) return answer_error(error);
  add(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
}

void SystemCallFilter::answer_allowed() { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); }

void SystemCallFilter::add(int code, std::uint32_t value, std::size_t if_true,
                           std::size_t if_false) {
  constexpr std::size_t farthest = 255;
  if (if_true > farthest || if_false > farthest) throw std::logic_error("filter: a jump too far");
  code_.push_back({static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(if_true),
                   static_cast<std::uint8_t>(if_false), value});
}

}  // namespace rekernel
