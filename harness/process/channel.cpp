#include "harness/process/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace rekernel {

namespace {

using Header = std::uint64_t;  ///< bytes that follow
constexpr std::size_t control_bytes = CMSG_SPACE(Channel::most_descriptors * sizeof(int));

/// Descriptors travel with the first byte of a message.
struct Control {
  alignas(cmsghdr) std::array<char, control_bytes> bytes{};
};

Error system_error(const std::string& what) { return Error{what + ": " + std::strerror(errno)}; }

/// False past the deadline.
bool wait_for_input(int socket, std::optional<Channel::Clock::time_point> deadline) {
  for (;;) {
    int timeout_ms = -1;
    if (deadline) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(*deadline - Channel::Clock::now());
      if (left.count() < 0) return false;
      timeout_ms = static_cast<int>(std::min<std::int64_t>(left.count() + 1, 1 << 20));
    }
    pollfd watched{socket, POLLIN, 0};
    const int ready = ::poll(&watched, 1, timeout_ms);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // an error shows when reading
  }
}

void take_descriptors(msghdr& header, std::vector<FileDescriptor>& into) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof descriptor);
      into.emplace_back(descriptor);
    }
  }
}

}  // namespace

Result<std::pair<FileDescriptor, FileDescriptor>> Channel::sockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error("cannot make a socket");
  }
  return std::pair(FileDescriptor(ends[0]), FileDescriptor(ends[1]));
}

Result<Ok> Channel::send(const Fields& fields, std::span<const int> descriptors) {
  if (descriptors.size() > most_descriptors) return Error{"too many descriptors in one message"};
  const std::string body = joined_fields(fields);
  if (body.size() > longest_message) {
    return Error{"a message of " + std::to_string(body.size()) + " bytes: expected at most " +
                 std::to_string(longest_message)};
  }
  Header size = body.size();
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += body;

  Control control;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    iovec part{const_cast<char*>(rest.data()), rest.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!descriptors.empty() && rest.size() == bytes.size()) {
      header.msg_control = control.bytes.data();
      header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
    }
    const ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return system_error("the other process is gone");
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  return Ok{};
}

bool Channel::is_hung_up() const {
  pollfd watched{socket_.get(), 0, 0};
  return ::poll(&watched, 1, 0) > 0;  // an end alone is told unasked
}

Result<Message> Channel::receive(std::optional<Clock::time_point> deadline) {
  Message message;
  std::string bytes;
  std::size_t wanted = sizeof(Header);
  std::array<char, 65536> chunk;
  const auto end_with = [this](Error error) {
    socket_.close();
    return error;
  };
  while (bytes.size() < wanted) {
    if (!wait_for_input(socket_.get(), deadline)) {
      return end_with({"the other process did not answer by the deadline"});
    }
    Control control;
    iovec part{chunk.data(), std::min(chunk.size(), wanted - bytes.size())};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    const ssize_t count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return end_with(system_error("the other process is gone"));
    take_descriptors(header, message.descriptors);
    if (count == 0) {
      return end_with({bytes.empty() ? "the other process is gone"
                                     : "the other process ended in the middle of a message"});
    }
    bytes.append(chunk.data(), static_cast<std::size_t>(count));
    if (bytes.size() == sizeof(Header) && wanted == sizeof(Header)) {
      Header size = 0;
      std::memcpy(&size, bytes.data(), sizeof size);
      if (size > longest_message) return end_with({"the other process sent a message without end"});
      wanted += static_cast<std::size_t>(size);
    }
  }
  auto fields = split_fields(std::string_view(bytes).substr(sizeof(Header)));
  if (!fields) return end_with({"the other process sent a malformed message"});
  message.fields = *std::move(fields);
  return message;
}

}  // namespace rekernel
