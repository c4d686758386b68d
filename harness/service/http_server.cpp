#include "harness/service/http_server.h"

#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <deque>
#include <exception>

#include "harness/base/files.h"

namespace rekernel::service {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;

using Protocol = asio::generic::stream_protocol;
using Stream = beast::basic_stream<Protocol, asio::io_context::executor_type>;
using Acceptor = asio::basic_socket_acceptor<Protocol, asio::io_context::executor_type>;
using Code = boost::system::error_code;

struct AsioLoop::State {
  asio::io_context context{1};
  asio::signal_set signals{context};
};

AsioLoop::AsioLoop() : state_(std::make_unique<State>()) {}
AsioLoop::~AsioLoop() = default;

void AsioLoop::post(std::function<void()> work) { asio::post(state_->context, std::move(work)); }

void AsioLoop::after(std::chrono::milliseconds time, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(state_->context, time);
  timer->async_wait([timer, work = std::move(work)](Code failure) {
    if (!failure) work();
  });
}

void AsioLoop::on_end_signal(std::function<void(int)> work) {
  state_->signals.add(SIGINT);
  state_->signals.add(SIGTERM);
  state_->signals.async_wait([this, work = std::move(work)](Code failure, int number) {
    if (failure) return;
    Code ignored;
    state_->signals.clear(ignored);
    work(number);
  });
}

void AsioLoop::run() {
  const auto guard = asio::make_work_guard(state_->context);
  state_->context.run();
}

void AsioLoop::stop() { state_->context.stop(); }

struct HttpServer::State {
  explicit State(AsioLoop& loop) : context(loop.state().context), acceptor(context) {}
  void accept(const std::shared_ptr<State>& self);

  asio::io_context& context;
  Acceptor acceptor;
  HttpHandlers handlers;
  HttpLimits limits;
  std::string address;
  std::string unix_path;
  std::size_t connections = 0;
  bool waits_for_place = false;
};

namespace {

std::optional<HttpRequest> request_of(const http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target(message.target().data(), message.target().size());
  const std::size_t mark = std::min(target.find('?'), target.size());
  const auto path = url_decoded(target.substr(0, mark), false);
  if (!path || path->empty() || path->front() != '/') return std::nullopt;
  request.path = *path;
  std::string_view rest = target.substr(std::min(mark + 1, target.size()));
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const auto name = url_decoded(pair.substr(0, equals), true);
    const auto value = url_decoded(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!name || !value) return std::nullopt;
    request.query.emplace(*name, *value);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const auto& field : message) {
    std::string name(field.name_string());
    for (char& letter : name)
      letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    request.headers.emplace(std::move(name), std::string(field.value()));
  }
  return request;
}

/// One client's connection: requests one after the other.
class Connection : public HttpExchange, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<HttpServer::State> server, Stream::socket_type socket)
      : server_(std::move(server)), stream_(std::move(socket)) {
    ++server_->connections;
  }
  ~Connection() override {
    --server_->connections;
    if (!std::exchange(server_->waits_for_place, false)) return;
    asio::post(server_->context, [server = server_] { server->accept(server); });
  }

  void read() {
    parser_.emplace();
    parser_->header_limit(server_->limits.head_bytes);
    parser_->body_limit(server_->limits.body_bytes);
    stream_.expires_after(buffer_.size() > 0 ? server_->limits.request_time
                                             : server_->limits.idle_time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](Code failure, std::size_t) { self->head_arrived(failure); });
  }

  void respond(HttpResponse response) override {
    if (!open_) return;
    auto message = std::make_shared<http::response<http::string_body>>();
    message->version(11);
    message->result(static_cast<unsigned>(response.status));
    message->set(http::field::content_type, response.type);
    message->set(http::field::cache_control, "no-store");
    for (const auto& [name, value] : response.headers) message->set(name, value);
    message->body() = std::move(response.body);
    message->keep_alive(keep_alive_);
    if (is_head_) {
      message->content_length(message->body().size());
      message->body().clear();
    } else {
      message->prepare_payload();
    }
    stream_.expires_after(server_->limits.request_time);
    http::async_write(stream_, *message,
                      [self = shared_from_this(), message](Code failure, std::size_t) {
                        if (failure || !self->keep_alive_) return self->close();
                        self->read();
                      });
  }

  void begin_events() override {
    write(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n");
    beat();
  }
  void send_event(const std::string& name, const std::string& data) override {
    write("event: " + name + "\ndata: " + data + "\n\n");  // JSON in one line
  }
  void end_events() override {
    ending_ = true;
    if (waiting_.empty()) close();
  }
  bool is_open() const override { return open_; }

 private:
  void head_arrived(Code failure) {
    if (failure == http::error::end_of_stream || failure == beast::error::timeout) return close();
    if (failure == http::error::header_limit) return give_up(431, "the head is too large");
    if (failure == http::error::body_limit) return give_up(413, "the body is too large");
    if (failure.category() == http::make_error_code(http::error::bad_method).category()) {
      return give_up(400, "no HTTP/1.1: " + failure.message());
    }
    if (failure) return close();
    std::optional<HttpRequest> request = request_of(parser_->get());
    if (!request) return give_up(400, "a target that cannot be read");
    request_ = std::move(*request);
    keep_alive_ = parser_->get().keep_alive();
    is_head_ = request_.method == "HEAD";
    if (is_head_) request_.method = "GET";
    if (auto refusal = server_->handlers.gate(request_)) {
      // What is left of the request is not read.
      keep_alive_ = keep_alive_ && parser_->is_done();
      return respond(std::move(*refusal));
    }
    if (parser_->is_done()) return body_arrived({});
    const auto length = parser_->content_length();
    if (length && *length > server_->limits.body_bytes)
      return give_up(413, "the body is too large");
    stream_.expires_after(server_->limits.request_time);
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
      static constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
      asio::async_write(stream_, asio::buffer(go_on.data(), go_on.size()),
                        [self = shared_from_this()](Code failed, std::size_t) {
                          if (failed) return self->close();
                          self->read_body();
                        });
      return;
    }
    read_body();
  }

  void read_body() {
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](Code failure, std::size_t) { self->body_arrived(failure); });
  }

  void body_arrived(Code failure) {
    if (failure == http::error::body_limit) return give_up(413, "the body is too large");
    if (failure) return close();
    request_.body = std::move(parser_->get().body());
    parser_.reset();
    stream_.expires_never();
    try {
      server_->handlers.handle(std::move(request_), shared_from_this());
    } catch (const std::exception&) {
      give_up(500, "a defect of the service");
    }
  }

  void give_up(int status, const std::string& message) {
    keep_alive_ = false;
    respond(server_->handlers.refuse(status, message));
  }

  void write(std::string bytes) {
    if (!open_ || ending_) return;
    waiting_bytes_ += bytes.size();
    if (waiting_bytes_ > server_->limits.waiting_event_bytes) return close();
    waiting_.push_back(std::move(bytes));
    if (waiting_.size() == 1) write_next();
  }
  void write_next() {
    stream_.expires_after(server_->limits.request_time);
    asio::async_write(stream_, asio::buffer(waiting_.front()),
                      [self = shared_from_this()](Code failure, std::size_t) {
                        if (failure) return self->close();
                        self->waiting_bytes_ -= self->waiting_.front().size();
                        self->waiting_.pop_front();
                        if (!self->waiting_.empty()) return self->write_next();
                        if (self->ending_) self->close();
                      });
  }
  /// A comment now and then finds out whether the client is still there.
  void beat() {
    constexpr std::chrono::seconds pause{15};
    auto timer = std::make_shared<asio::steady_timer>(server_->context, pause);
    timer->async_wait([weak = weak_from_this(), timer](Code) {
      const auto self = weak.lock();
      if (!self || !self->open_ || self->ending_) return;
      self->write(": still there\n\n");
      self->beat();
    });
  }

  void close() {
    open_ = false;
    Code ignored;
    stream_.socket().shutdown(asio::socket_base::shutdown_both, ignored);
    stream_.close();
  }

  std::shared_ptr<HttpServer::State> server_;
  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;
  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  bool keep_alive_ = true;
  bool is_head_ = false;
  bool open_ = true;
  bool ending_ = false;
};

Result<Protocol::endpoint> endpoint_of(const ListenAddress& address) {
  if (address.unix_path.empty()) {
    Code failure;
    const auto host = asio::ip::make_address(address.host, failure);
    if (failure) return Error{address.host + ": expected a number like 127.0.0.1 or ::1"};
    return Protocol::endpoint(asio::ip::tcp::endpoint(host, address.port));
  }
  constexpr std::size_t longest = sizeof(sockaddr_un{}.sun_path) - 1;
  if (address.unix_path.size() > longest) {
    return Error{address.unix_path + ": expected at most " + std::to_string(longest) + " bytes"};
  }
  return Protocol::endpoint(asio::local::stream_protocol::endpoint(address.unix_path));
}

std::string bound_address(const Acceptor& acceptor, const ListenAddress& address) {
  if (!address.unix_path.empty()) return "unix:" + address.unix_path;
  const Protocol::endpoint bound = acceptor.local_endpoint();
  asio::ip::tcp::endpoint tcp;
  std::memcpy(tcp.data(), bound.data(), bound.size());
  tcp.resize(bound.size());
  const bool six = tcp.address().is_v6();
  return (six ? "[" : "") + tcp.address().to_string() + (six ? "]:" : ":") +
         std::to_string(tcp.port());
}

}  // namespace

void HttpServer::State::accept(const std::shared_ptr<State>& self) {
  if (!acceptor.is_open()) return;
  if (connections >= limits.connections) {
    waits_for_place = true;
    return;
  }
  acceptor.async_accept([self](Code failure, Stream::socket_type socket) {
    if (!self->acceptor.is_open()) return;
    if (!failure) {
      std::make_shared<Connection>(self, std::move(socket))->read();
      return self->accept(self);
    }
    // Out of descriptors, say: others may close some.
    constexpr std::chrono::milliseconds pause{50};
    auto timer = std::make_shared<asio::steady_timer>(self->context, pause);
    timer->async_wait([self, timer](Code) { self->accept(self); });
  });
}

HttpServer::HttpServer(std::shared_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() { stop_accepting(); }

void HttpServer::stop_accepting() {
  Code ignored;
  state_->acceptor.close(ignored);
  if (!state_->unix_path.empty()) ::unlink(state_->unix_path.c_str());
}

std::string HttpServer::address() const { return state_->address; }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(AsioLoop& loop, const std::string& text,
                                                       HttpHandlers handlers, HttpLimits limits) {
  const Result<ListenAddress> address = parse_listen_address(text);
  if (!address) return address.error();
  const Result<Protocol::endpoint> endpoint = endpoint_of(*address);
  if (!endpoint) return endpoint.error();
  auto state = std::make_shared<State>(loop);
  state->handlers = std::move(handlers);
  state->limits = limits;
  Code failure;
  state->acceptor.open(endpoint->protocol(), failure);
  if (!failure && address->unix_path.empty()) {
    state->acceptor.set_option(Acceptor::reuse_address(true), failure);
  }
  if (!address->unix_path.empty()) {
    struct stat present {};
    // The store's lock says that no service of ours listens there any more.
    if (::lstat(address->unix_path.c_str(), &present) == 0 && S_ISSOCK(present.st_mode)) {
      ::unlink(address->unix_path.c_str());
    }
  }
  const mode_t mask = ::umask(0077);
  if (!failure) state->acceptor.bind(*endpoint, failure);
  ::umask(mask);
  if (!failure) state->acceptor.listen(asio::socket_base::max_listen_connections, failure);
  if (failure) return Error{text + ": cannot listen: " + failure.message()};
  state->address = bound_address(state->acceptor, *address);
  state->unix_path = address->unix_path;
  state->accept(state);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

}  // namespace rekernel::service
