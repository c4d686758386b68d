#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rekernel {

/// A program for the kernel's packet filter machine, run before every system call of a process that
/// installed it. Rules are tried in the order in which they were added; the first one that knows
/// the call decides.
///
/// It is written here and not by libseccomp: what that library adds are the numbers of calls on
/// architectures that are not ours, for a dependency of every build.
class SystemCallFilter {
 public:
  /// What is refused gives an error number, or is first told to who listens
  /// (SECCOMP_RET_USER_NOTIF).
  enum class Refusals { silent, told };

  /// Whether filters can be made for this machine's architecture.
  static bool is_possible();

  explicit SystemCallFilter(Refusals refusals);

  void refuse(long call, int error);
  /// Every call with a higher number, never told: who gets ENOSYS tries an older call.
  void say_unknown_beyond(long call);
  void say_unknown(long call);
  /// Allowed if the low half of the argument has all bits of `needed` and none of `forbidden`.
  void allow_with_bits(long call, int argument, std::uint32_t needed, std::uint32_t forbidden,
                       int error);
  /// Allowed if the low half of the argument is one of the values; else refused.
  void allow_for(long call, int argument, std::span<const std::uint32_t> values, int error);
  /// Refused if the low half of the argument is one of the values; else allowed.
  void refuse_for(long call, int argument, std::span<const std::uint32_t> values, int error);
  /// Allowed if all 64 bits of every one of these arguments are the value beside it; else the rules
  /// that follow decide.
  void allow_if(long call, std::span<const std::pair<int, std::uint32_t>> arguments);
  /// Allowed with any arguments.
  void allow(std::span<const long> calls);

  /// The program, which refuses everything else.
  std::vector<sock_filter> refuse_the_rest(int error);

 private:
  void load_number();
  void load_argument(int argument, bool high_half = false);
  void jump(int test, std::uint32_t value, std::size_t if_true, std::size_t if_false);
  void answer_error(int error);
  void answer_refusal(int error);
  void answer_allowed();
  void add(int code, std::uint32_t value, std::size_t if_true = 0, std::size_t if_false = 0);

  Refusals refusals_;
  std::vector<sock_filter> code_;
};

}  // namespace rekernel
