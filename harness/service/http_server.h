#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/service/event_loop.h"
#include "harness/service/listen_address.h"
#include "ops/result.h"

namespace rekernel::service {

struct HttpRequest {
  std::string method;
  std::string path;                            ///< decoded, without the query
  std::map<std::string, std::string> query;    ///< decoded
  std::map<std::string, std::string> headers;  ///< names in lower case; the first of each
  std::string body;
  std::string client;  ///< whom the gate recognised
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// What a request is answered through, at once or later, on the event loop's thread. Answers to a
/// client that has gone are dropped.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual void respond(HttpResponse response) = 0;
  /// Instead: a stream of server-sent events, which goes on until its end or until the client has
  /// gone, or reads too slowly.
  virtual void begin_events() = 0;
  virtual void send_event(const std::string& name, const std::string& data) = 0;
  virtual void end_events() = 0;
  virtual bool is_open() const = 0;
};

struct HttpHandlers {
  /// Asked once the head is there and before any byte of the body is read: fills in the client, or
  /// gives the refusal.
  std::function<std::optional<HttpResponse>(HttpRequest&)> gate;
  std::function<void(HttpRequest, std::shared_ptr<HttpExchange>)> handle;
  /// The body of a response to what is no HTTP, or too large.
  std::function<HttpResponse(int status, const std::string& message)> refuse;
};

struct HttpLimits {
  std::uint64_t body_bytes = 8u << 20;
  std::uint32_t head_bytes = 16u << 10;
  std::chrono::seconds request_time{30};  ///< for a whole request to arrive, or a response to leave
  std::chrono::seconds idle_time{75};     ///< between requests
  std::size_t connections = 4096;
  std::size_t waiting_event_bytes = 8u << 20;  ///< of one client's stream
};

/// An event loop on the thread that calls run().
class AsioLoop : public EventLoop {
 public:
  AsioLoop();
  ~AsioLoop() override;
  void post(std::function<void()> work) override;
  void after(std::chrono::milliseconds time, std::function<void()> work) override;
  /// Once, on SIGINT or SIGTERM; a second signal ends the process.
  void on_end_signal(std::function<void(int)> work);
  void run();
  void stop();

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// HTTP/1.1 on a TCP or Unix socket, by Boost.Beast.
class HttpServer {
 public:
  /// "127.0.0.1:8420", "[::1]:0" (any free port), "unix:/run/rekernel.sock", which only its owner
  /// may open.
  static Result<std::unique_ptr<HttpServer>> listen(AsioLoop& loop, const std::string& address,
                                                    HttpHandlers handlers, HttpLimits limits);
  ~HttpServer();
  /// With the port that was chosen.
  std::string address() const;
  void stop_accepting();

  struct State;

 private:
  explicit HttpServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace rekernel::service
