#include "harness/capture/gpu_turn.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>

namespace rekernel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// What a process does that wants the GPU.
class Asker {
 public:
  explicit Asker(const std::string& uuid, milliseconds patience = seconds(60)) {
    auto turn = GpuTurn::offer(take_alone(uuid, GpuLock::Clock::now() + patience,
                                          [this](const std::string& holder) { holder_ = holder; }));
    if (!turn) throw std::runtime_error(turn.error().message);
    turn_ = std::move(*turn);
    socket_ = FileDescriptor(turn_->take_their_end());
  }
  void ask() { ASSERT_EQ(::send(socket_.get(), "?", 1, 0), 1); }
  bool is_answered(milliseconds within) const {
    pollfd watched{socket_.get(), POLLIN, 0};
    return ::poll(&watched, 1, static_cast<int>(within.count())) == 1;
  }
  bool is_granted() const {
    char byte = 0;
    return ::recv(socket_.get(), &byte, 1, 0) == 1;
  }
  void end() {
    socket_.close();
    turn_.reset();
  }
  const std::string& holder() const { return holder_; }

 private:
  std::string holder_;
  std::unique_ptr<GpuTurn> turn_;
  FileDescriptor socket_;
};

const std::string uuid = "0123456789abcdef0123456789abcde7";

TEST(GpuTurn, IsOneProcessesAtATime) {
  Asker first(uuid), second(uuid);
  // Nobody has it before he asked.
  second.ask();
  ASSERT_TRUE(second.is_answered(seconds(20)));
  EXPECT_TRUE(second.is_granted());
  first.ask();
  EXPECT_FALSE(first.is_answered(milliseconds(100)));
  second.end();
  ASSERT_TRUE(first.is_answered(seconds(20)));
  EXPECT_TRUE(first.is_granted());
  EXPECT_NE(first.holder(), "");
}

TEST(GpuTurn, IsNotWaitedForWithoutEnd) {
  Asker first(uuid), second(uuid, milliseconds(50));
  first.ask();
  ASSERT_TRUE(first.is_granted());
  second.ask();
  ASSERT_TRUE(second.is_answered(seconds(20)));
  EXPECT_FALSE(second.is_granted());
}

TEST(GpuTurn, KeepsNobodyWaitingWhoDoesNotAsk) {
  const auto begin = GpuLock::Clock::now();
  Asker(uuid).end();
  EXPECT_LT(GpuLock::Clock::now() - begin, seconds(20));
}

TEST(GpuTurn, IsThereAtOnceWithoutAGpu) {
  Asker first(""), second("");
  first.ask();
  EXPECT_TRUE(first.is_granted());
  second.ask();
  EXPECT_TRUE(second.is_granted());
}

}  // namespace
}  // namespace rekernel
