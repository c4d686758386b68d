#include "harness/process/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace rekernel {
namespace {

using namespace std::chrono_literals;

struct Pair {
  Channel ours;
  FileDescriptor theirs;
};

Pair connected() {
  auto sockets = Channel::sockets();
  if (!sockets) throw std::runtime_error(sockets.error().message);
  return {Channel(std::move(sockets->first)), std::move(sockets->second)};
}

Channel::Clock::time_point soon() { return Channel::Clock::now() + 5s; }

TEST(Channel, CarriesFieldsOfAnySize) {
  Pair pair = connected();
  Channel theirs(std::move(pair.theirs));
  const Fields sent = {"load", "", std::string(3 << 20, 'x'), std::string("a\0b", 3)};
  std::jthread sender([&] { EXPECT_TRUE(theirs.send(sent)); });
  const Result<Message> message = pair.ours.receive(soon());
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->fields, sent);
  EXPECT_TRUE(message->descriptors.empty());
}

TEST(Channel, CarriesDescriptors) {
  Pair pair = connected();
  Channel theirs(std::move(pair.theirs));
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_TRUE(theirs.send({"map"}, ends));
  Result<Message> message = pair.ours.receive(soon());
  ASSERT_TRUE(message) << message.error().message;
  ASSERT_EQ(message->descriptors.size(), 2u);
  ASSERT_EQ(::write(message->descriptors[1].get(), "!", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(ends[0], &byte, 1), 1);
  EXPECT_EQ(byte, '!');
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Channel, CarriesAsManyDescriptorsAsLinuxTakes) {
  Pair pair = connected();
  Channel theirs(std::move(pair.theirs));
  const std::vector<int> most(Channel::most_descriptors, 0);
  ASSERT_TRUE(theirs.send({"map"}, most));
  const Result<Message> message = pair.ours.receive(soon());
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->descriptors.size(), most.size());
  EXPECT_FALSE(theirs.send({"map"}, std::vector<int>(most.size() + 1, 0)));
}

TEST(Channel, SaysWhenTheOtherSideIsGone) {
  Pair pair = connected();
  EXPECT_FALSE(pair.ours.is_hung_up());
  pair.theirs.close();
  EXPECT_TRUE(pair.ours.is_hung_up());
  const Result<Message> message = pair.ours.receive(soon());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().message, "the other process is gone");
  EXPECT_FALSE(pair.ours.is_open());
  EXPECT_FALSE(pair.ours.send({"run"}));
}

TEST(Channel, AMessageCutShortIsNoMessage) {
  for (const std::size_t bytes : {1u, 7u, 8u, 12u}) {
    Pair pair = connected();
    const char text[] =
        "\x20\0\0\0\0\0\0\0"
        "5:ready";  // 32 bytes are announced
    ASSERT_EQ(::write(pair.theirs.get(), text, bytes), static_cast<ssize_t>(bytes));
    pair.theirs.close();
    const Result<Message> message = pair.ours.receive(soon());
    ASSERT_FALSE(message) << bytes;
    EXPECT_EQ(message.error().message, "the other process ended in the middle of a message");
  }
}

TEST(Channel, AMessageWithoutEndIsRefusedBeforeItTakesMemory) {
  Pair pair = connected();
  ASSERT_EQ(::write(pair.theirs.get(), "\xff\xff\xff\xff\xff\xff\xff\x7f", 8), 8);
  const Result<Message> message = pair.ours.receive(soon());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().message, "the other process sent a message without end");
}

TEST(Channel, AMessageThatIsTooLongIsNotSent) {
  Pair pair = connected();
  const Result<Ok> sent = pair.ours.send({std::string(Channel::longest_message, 'x')});
  ASSERT_FALSE(sent);
  EXPECT_NE(sent.error().message.find("expected at most "), std::string::npos);
  ASSERT_TRUE(pair.ours.send({"a short one"}));
}

TEST(Channel, MalformedFieldsAreRefused) {
  for (const std::string body : {"9:short", "x:1", "1", "3:abcd"}) {
    Pair pair = connected();
    const std::uint64_t size = body.size();
    ASSERT_EQ(::write(pair.theirs.get(), &size, sizeof size), 8);
    ASSERT_EQ(::write(pair.theirs.get(), body.data(), size), static_cast<ssize_t>(size));
    const Result<Message> message = pair.ours.receive(soon());
    ASSERT_FALSE(message) << body;
    EXPECT_EQ(message.error().message, "the other process sent a malformed message");
  }
}

TEST(Channel, HasADeadline) {
  Pair pair = connected();
  const auto begin = Channel::Clock::now();
  const Result<Message> message = pair.ours.receive(begin + 50ms);
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().message, "the other process did not answer by the deadline");
  EXPECT_LT(Channel::Clock::now() - begin, 5s);
}

}  // namespace
}  // namespace rekernel
