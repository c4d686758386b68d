#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/base/fields.h"
#include "harness/base/file_descriptor.h"
#include "ops/result.h"

namespace rekernel {

/// What came over a channel: fields, and descriptors of this process for what the other side sent.
struct Message {
  Fields fields;
  std::vector<FileDescriptor> descriptors;
};

/// One side of a conversation between two of our processes, over a Unix socket. A message comes
/// whole or not at all; nothing that the other side sends can take more than a bounded memory.
class Channel {
 public:
  using Clock = std::chrono::steady_clock;

  Channel() = default;
  explicit Channel(FileDescriptor socket) : socket_(std::move(socket)) {}
  /// Two connected sockets, for two processes.
  static Result<std::pair<FileDescriptor, FileDescriptor>> sockets();

  /// The other side gets copies of the descriptors, at most `most_descriptors`. An error when it is
  /// gone, or does not read.
  Result<Ok> send(const Fields& fields, std::span<const int> descriptors = {});

  /// The next message. Errors: the other side is gone (also in the middle of a message), the
  /// message is too long or malformed, or the deadline is over. After an error there is no next
  /// message.
  Result<Message> receive(std::optional<Clock::time_point> deadline = std::nullopt);

  bool is_open() const { return socket_.is_open(); }
  /// For somebody else who goes on with the conversation.
  FileDescriptor release() { return std::move(socket_); }

  /// Whether the other side hung up. What it sent before may still be there to be received.
  bool is_hung_up() const;

  static constexpr std::size_t longest_message = std::size_t{256}
                                                 << 20;  ///< a candidate's code fits
  static constexpr std::size_t most_descriptors = 253;   ///< Linux takes no more (SCM_MAX_FD)

 private:
  FileDescriptor socket_;
};

}  // namespace rekernel
