#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/service/clients.h"
#include "harness/service/http_server.h"
#include "harness/service/service.h"

namespace rekernel::service {

/// The protocol: requests in HTTP to the service's members, and back. openapi.json describes it.
class Routes {
 public:
  struct Options {
    /// Nothing: everybody who can connect is the client "local". A browser's requests and other
    /// names than this machine's own are refused then, since a page of strangers could send them.
    std::optional<Clients> clients;
    std::size_t most_in_batch = 1000;
    std::int64_t longest_wait_s = 60;
    bool listens_on_unix_socket = false;
  };
  Routes(Service& service, EventLoop& loop, Options options);
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  /// For a server: both refer to this object.
  HttpHandlers handlers();

  /// "GET /v1/evaluations/{id}" each, as they stand in the document.
  static std::vector<std::string> operations();
  /// The OpenAPI 3.1 document.
  static std::string_view openapi();

 private:
  using Exchange = std::shared_ptr<HttpExchange>;
  struct Route;
  static const std::vector<Route>& table();

  std::optional<HttpResponse> gate(HttpRequest& request) const;
  void handle(const HttpRequest& request, const Exchange& exchange);

  void health(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void readiness(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void metrics(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void document(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void overview(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void list_problems(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void show_problem(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void submit(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void submit_batch(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void find(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void list(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void follow(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void cancel(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void find_batch(const HttpRequest& request, const std::string& id, const Exchange& exchange);
  void follow_batch(const HttpRequest& request, const std::string& id, const Exchange& exchange);

  Result<std::chrono::seconds> wait_of(const HttpRequest& request) const;
  Result<Submission> submission_from(JsonReader reader) const;
  /// Answers with the evaluation once it has its answer, or as it is when the time is over.
  void respond_when_answered(const std::string& client, const View& view, std::chrono::seconds wait,
                             const Exchange& exchange);
  void respond_with_batch(const std::string& client, const std::string& batch,
                          std::chrono::seconds wait, const Exchange& exchange);

  Service& service_;
  EventLoop& loop_;
  const Options options_;
};

}  // namespace rekernel::service
