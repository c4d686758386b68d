#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/base/file_descriptor.h"
#include "tests/replay/model/certificates.h"

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
  /// Sent after the head one by one, instead of `body`; their end is the connection's.
  std::vector<std::string> pieces = {};
};

/// A socket that listens on a free port of loopback, which is put into `port`.
FileDescriptor listen_on_loopback(int& port);

/// A web server on loopback, one answer a connection.
class HttpServer {
 public:
  /// `answer` gets every request with its number, from 0; calls can overlap. With a certificate it
  /// speaks TLS alone, and a client that does not believe it has made no request.
  explicit HttpServer(std::function<HttpAnswer(int number, const HttpRequest&)> answer,
                      const std::optional<Certificate>& certificate = std::nullopt);
  ~HttpServer();

  std::string url() const {
    return (tls_ ? "https" : "http") + std::string("://127.0.0.1:") + std::to_string(port_) + "/v1";
  }
  std::vector<HttpRequest> requests() const;
  int most_at_once() const;

 private:
  void serve(int socket);

  struct FreeTls {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  std::function<HttpAnswer(int, const HttpRequest&)> answer_;
  std::unique_ptr<SSL_CTX, FreeTls> tls_;
  int port_ = 0;
  FileDescriptor listener_;
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
