#include "tests/replay/model/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <stdexcept>

namespace rekernel::testing {
namespace {

/// A connection, closed at its end.
class Connection {
 public:
  Connection(int socket, SSL_CTX* tls) : socket_(socket), tls_(tls ? SSL_new(tls) : nullptr) {
    if (tls_ && (SSL_set_fd(tls_.get(), socket_) != 1 || SSL_accept(tls_.get()) != 1)) {
      refused_ = true;
    }
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (tls_ && !refused_) SSL_shutdown(tls_.get());
    ::close(socket_);
  }

  bool refused() const { return refused_; }

  /// The bytes that are there; none at the end.
  std::string receive() {
    std::string bytes(65536, '\0');
    const auto count = tls_ ? SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
                            : ::recv(socket_, bytes.data(), bytes.size(), 0);
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }

  void send(const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
      const auto size = std::min<std::size_t>(text.size() - sent, 1 << 20);
      const auto count = tls_ ? SSL_write(tls_.get(), text.data() + sent, static_cast<int>(size))
                              : ::send(socket_, text.data() + sent, size, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  }

 private:
  struct Free {
    void operator()(SSL* one) const { SSL_free(one); }
  };
  int socket_;
  std::unique_ptr<SSL, Free> tls_;
  bool refused_ = false;
};

HttpRequest receive(Connection& connection) {
  std::string text;
  std::size_t wanted = std::string::npos;
  while (text.size() < wanted) {
    const std::string bytes = connection.receive();
    constexpr char tls_handshake = 0x16;
    if (bytes.empty() || bytes[0] == tls_handshake) break;
    text += bytes;
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

/// A TLS context with this certificate.
SSL_CTX* tls_context(const Certificate& certificate) {
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  BIO* const pem = BIO_new_mem_buf(certificate.pem.data(), -1);
  BIO* const key_pem = BIO_new_mem_buf(certificate.key.data(), -1);
  X509* const own = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(key_pem, nullptr, nullptr, nullptr);
  const bool good =
      SSL_CTX_use_certificate(context, own) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1;
  EVP_PKEY_free(key);
  X509_free(own);
  BIO_free(key_pem);
  BIO_free(pem);
  if (!good) throw std::runtime_error("no TLS with this certificate");
  return context;
}

}  // namespace

FileDescriptor listen_on_loopback(int& port) {
  FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (!listener.is_open() || ::bind(listener.get(), any, size) != 0 ||
      ::listen(listener.get(), 64) != 0 || ::getsockname(listener.get(), any, &size) != 0) {
    throw std::runtime_error("no server on loopback");
  }
  port = ntohs(address.sin_port);
  return listener;
}

HttpServer::HttpServer(std::function<HttpAnswer(int, const HttpRequest&)> answer,
                       const std::optional<Certificate>& certificate)
    : answer_(std::move(answer)),
      tls_(certificate ? tls_context(*certificate) : nullptr),
      listener_(listen_on_loopback(port_)) {
  acceptor_ = std::jthread([this] {
    while (true) {
      const int connection = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      connections_.emplace_back([this, connection] { serve(connection); });
    }
  });
}

HttpServer::~HttpServer() {
  ::shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  connections_.clear();
}

void HttpServer::serve(int socket) {
  // A client that hangs up is no reason to end, whoever writes.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  Connection connection(socket, tls_.get());
  if (connection.refused()) return;
  const HttpRequest request = receive(connection);
  if (request.head.empty()) {
    connection.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    return;
  }
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
    connection.send("HTTP/1.1 " + answer.status + "\r\nConnection: close\r\n" + answer.headers +
                    "\r\n");
    for (const std::string& piece : answer.pieces) {
      connection.send(piece);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  } else if (!answer.hang_up) {
    connection.send("HTTP/1.1 " + answer.status + "\r\nConnection: close\r\n" + answer.headers +
                    "Content-Length: " + std::to_string(answer.body.size()) + "\r\n\r\n" +
                    answer.body);
  }
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
