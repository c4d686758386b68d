#include "http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <stdexcept>

namespace rekernel::testing {
namespace {

HttpRequest receive(int connection) {
  std::string text;
  char buffer[65536];
  std::size_t wanted = std::string::npos;
  while (text.size() < wanted) {
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
    const std::size_t end = text.find("\r\n\r\n");
    const std::size_t length = text.find("Content-Length: ");
    if (end != std::string::npos && length != std::string::npos) {
      wanted = end + 4 + std::stoul(text.substr(length + 16));
    }
  }
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return {};
  return {text.substr(0, end), text.substr(end + 4)};
}

void send_all(int connection, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

}  // namespace

HttpServer::HttpServer(std::function<HttpAnswer(int, const HttpRequest&)> answer)
    : answer_(std::move(answer)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no server on loopback");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::jthread([this] {
    while (true) {
      const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      connections_.emplace_back([this, connection] { serve(connection); });
    }
  });
}

HttpServer::~HttpServer() {
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  connections_.clear();
  ::close(listener_);
}

void HttpServer::serve(int connection) {
  const HttpRequest request = receive(connection);
  int number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = static_cast<int>(requests_.size());
    requests_.push_back(request);
    most_at_once_ = std::max(most_at_once_, ++at_once_);
  }
  const HttpAnswer answer = answer_(number, request);
  std::this_thread::sleep_for(std::chrono::milliseconds(answer.delay_ms));
  {
    const std::lock_guard lock(mutex_);
    --at_once_;
  }
  if (!answer.pieces.empty()) {
    send_all(connection,
             "HTTP/1.1 " + answer.status + "\r\nConnection: close\r\n" + answer.headers + "\r\n");
    for (const std::string& piece : answer.pieces) {
      send_all(connection, piece);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  } else if (!answer.hang_up) {
    send_all(connection, "HTTP/1.1 " + answer.status + "\r\nConnection: close\r\n" +
                             answer.headers + "Content-Length: " +
                             std::to_string(answer.body.size()) + "\r\n\r\n" + answer.body);
  }
  ::close(connection);
}

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

int HttpServer::most_at_once() const {
  const std::lock_guard lock(mutex_);
  return most_at_once_;
}

std::string completion(const std::string& text, const std::string& finish_reason) {
  return boost::json::serialize(
      boost::json::value{{"choices",
                          {{{"message", {{"role", "assistant"}, {"content", text}}},
                            {"finish_reason", finish_reason}}}},
                         {"usage", {{"prompt_tokens", 11}, {"completion_tokens", 22}}}});
}

}  // namespace rekernel::testing
