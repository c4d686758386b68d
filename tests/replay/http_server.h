#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace rekernel::testing {

struct HttpRequest {
  std::string head;
  std::string body;
};

struct HttpAnswer {
  std::string status = "200 OK";
  std::string headers;  ///< whole lines, each with its \r\n
  std::string body;
  int delay_ms = 0;
  bool hang_up = false;  ///< close the connection instead
  /// Sent behind the head one by one, instead of `body`; their end is the connection's.
  std::vector<std::string> pieces = {};
};

/// A web server on loopback, one answer a connection.
class HttpServer {
 public:
  /// `answer` gets every request with its number, from 0; calls can overlap.
  explicit HttpServer(std::function<HttpAnswer(int number, const HttpRequest&)> answer);
  ~HttpServer();

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_) + "/v1"; }
  std::vector<HttpRequest> requests() const;
  int most_at_once() const;

 private:
  void serve(int connection);

  std::function<HttpAnswer(int, const HttpRequest&)> answer_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  int at_once_ = 0;
  int most_at_once_ = 0;
  std::vector<std::jthread> connections_;
  std::jthread acceptor_;
};

/// What an endpoint answers with this text.
std::string completion(const std::string& text, const std::string& finish_reason = "stop");

}  // namespace rekernel::testing
