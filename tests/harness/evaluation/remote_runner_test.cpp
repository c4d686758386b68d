// What the referee makes of a runner process that fails before its first word is over. All later
// failures need a GPU: tests/adversarial/ has them.

#include "harness/evaluation/remote_runner.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace rekernel {
namespace {

using namespace std::chrono_literals;

/// Why there is no runner, after `speak` had the other end of the conversation.
template <class Speak>
std::string refusal(Speak speak, std::chrono::milliseconds deadline = 5s) {
  auto sockets = Channel::sockets();
  if (!sockets) throw std::runtime_error(sockets.error().message);
  Result<FileDescriptor> words = WordPage::create();
  if (!words) throw std::runtime_error(words.error().message);
  std::jthread other([&] { speak(std::move(sockets->second)); });
  PendingRunner process(Channel(std::move(sockets->first)), std::move(*words));
  process.open();
  const auto runner = process.ready(deadline);
  return runner ? "" : runner.error().message;
}

TEST(RemoteRunner, IsToldToOpenTheDeviceAndWhatForBeforeAnybodyWaits) {
  auto sockets = Channel::sockets();
  ASSERT_TRUE(sockets);
  Result<FileDescriptor> words = WordPage::create();
  ASSERT_TRUE(words);
  PendingRunner process(Channel(std::move(sockets->first)), std::move(*words));
  process.open({"cublas_fp32"});
  Channel other(std::move(sockets->second));
  const Result<Message> told = other.receive(Channel::Clock::now() + 5s);
  ASSERT_TRUE(told);
  EXPECT_EQ(told->fields, (Fields{"open", "cublas_fp32"}));
  process.hang_up();
  EXPECT_FALSE(other.receive(Channel::Clock::now() + 5s));
}

TEST(RemoteRunner, SaysWhyTheDeviceCouldNotBeOpened) {
  EXPECT_EQ(refusal([](FileDescriptor socket) {
              EXPECT_TRUE(Channel(std::move(socket)).send({"failed", "no usable GPU"}));
            }),
            "no usable GPU");
}

TEST(RemoteRunner, AProcessThatIsGoneIsAnError) {
  const std::string gone = refusal([](FileDescriptor socket) { socket.close(); });
  EXPECT_TRUE(gone.starts_with("the other process is gone")) << gone;
}

TEST(RemoteRunner, AFirstWordThatMakesNoSenseIsAnError) {
  for (const Fields& words : {Fields{"hello"}, Fields{}, Fields{"ready", "now"}}) {
    EXPECT_EQ(refusal([&](FileDescriptor socket) {
                EXPECT_TRUE(Channel(std::move(socket)).send(words));
              }),
              "the runner's first word makes no sense");
  }
}

TEST(RemoteRunner, SilenceEndsAtTheDeadline) {
  EXPECT_EQ(refusal([](const FileDescriptor&) { std::this_thread::sleep_for(300ms); }, 50ms),
            "the other process did not answer by the deadline");
}

}  // namespace
}  // namespace rekernel
