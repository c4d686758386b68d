#include "harness/service/routes.h"

#include <boost/json.hpp>

#include "harness/base/harness_digest.h"
#include "harness/service/problem_json.h"
#include "harness/service/responses.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

/// Whether the Host header names this machine as nobody else can be named.
bool names_this_machine(std::string host) {
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  if (colon != std::string::npos && (bracket == std::string::npos || colon > bracket)) {
    host.resize(colon);
  }
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace

struct Routes::Route {
  const char* method;
  const char* path;  ///< may have one part in braces, which the member gets
  void (Routes::*member)(const HttpRequest&, const std::string&, const Exchange&);
  bool is_open = false;  ///< to those without a token
};

const std::vector<Routes::Route>& Routes::table() {
  static const std::vector<Route> routes = {
      {"GET", "/healthz", &Routes::health, true},
      {"GET", "/readyz", &Routes::readiness, true},
      {"GET", "/metrics", &Routes::metrics},
      {"GET", "/openapi.json", &Routes::document},
      {"GET", "/v1/service", &Routes::overview},
      {"GET", "/v1/problems", &Routes::list_problems},
      {"GET", "/v1/problems/{id}", &Routes::show_problem},
      {"POST", "/v1/evaluations", &Routes::submit},
      {"GET", "/v1/evaluations", &Routes::list},
      {"GET", "/v1/evaluations/{id}", &Routes::find},
      {"DELETE", "/v1/evaluations/{id}", &Routes::cancel},
      {"GET", "/v1/evaluations/{id}/events", &Routes::follow},
      {"POST", "/v1/batches", &Routes::submit_batch},
      {"GET", "/v1/batches/{id}", &Routes::find_batch},
      {"GET", "/v1/batches/{id}/events", &Routes::follow_batch},
  };
  return routes;
}

namespace {

/// What stands for the part in braces; nothing if the path is another.
std::optional<std::string> match(std::string_view pattern, std::string_view path) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) {
    return pattern == path ? std::optional<std::string>("") : std::nullopt;
  }
  const std::string_view before = pattern.substr(0, open);
  const std::string_view after = pattern.substr(pattern.find('}') + 1);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) ||
      !path.ends_with(after)) {
    return std::nullopt;
  }
  const std::string part(path.substr(before.size(), path.size() - before.size() - after.size()));
  return part.find('/') == std::string::npos ? std::optional(part) : std::nullopt;
}

}  // namespace

Routes::Routes(Service& service, EventLoop& loop, Options options)
    : service_(service), loop_(loop), options_(std::move(options)) {
  if (!options_.clients) return;
  for (const Client& client : options_.clients->all()) {
    service_.set_client(client.name, client.weight, client.most_queued);
  }
}

std::vector<std::string> Routes::operations() {
  std::vector<std::string> operations;
  for (const Route& route : table())
    operations.push_back(std::string(route.method) + " " + route.path);
  return operations;
}

std::string_view Routes::openapi() {
  static constexpr std::string_view text =
#include "openapi.inc"
      ;
  return text;
}

HttpHandlers Routes::handlers() {
  return {
      [this](HttpRequest& request) { return gate(request); },
      [this](const HttpRequest& request, const Exchange& exchange) { handle(request, exchange); },
      [](int status, const std::string& message) {
        return problem_response({status,
                                 status == 413   ? "too_large"
                                 : status == 500 ? "defect"
                                                 : "bad_request",
                                 message,
                                 {}});
      }};
}

std::optional<HttpResponse> Routes::gate(HttpRequest& request) const {
  bool known_path = false;
  for (const Route& route : table()) {
    if (!match(route.path, request.path)) continue;
    known_path = true;
    if (request.method == route.method && route.is_open) return std::nullopt;
  }
  if (options_.clients) {
    const std::string authorization = header_of(request, "authorization");
    constexpr std::string_view scheme = "Bearer ";
    const Client* client = nullptr;
    if (authorization.starts_with(scheme)) {
      client = options_.clients->by_token(std::string_view(authorization).substr(scheme.size()));
    }
    if (!client) return problem_response({401, "unauthorized", "expected a bearer token", {}});
    request.client = client->name;
  } else {
    request.client = "local";
    if (!options_.listens_on_unix_socket && !names_this_machine(header_of(request, "host"))) {
      return problem_response(
          {403, "forbidden", "without tokens, expected the host localhost", {}});
    }
    if (request.headers.contains("origin")) {
      return problem_response({403, "forbidden", "without tokens, browsers are refused", {}});
    }
  }
  if (!known_path) return problem_response({404, "unknown_path", "there is no such path", {}});
  return std::nullopt;
}

void Routes::handle(const HttpRequest& request, const Exchange& exchange) {
  std::string allowed;
  for (const Route& route : table()) {
    const std::optional<std::string> part = match(route.path, request.path);
    if (!part) continue;
    if (request.method == route.method) return (this->*route.member)(request, *part, exchange);
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
  }
  HttpResponse response = problem_response({405, "method", "expected " + allowed, {}});
  response.headers.emplace_back("Allow", allowed);
  exchange->respond(std::move(response));
}

void Routes::health(const HttpRequest&, const std::string&, const Exchange& exchange) {
  exchange->respond(json_response(200, R"({"status":"ok"})"));
}

void Routes::readiness(const HttpRequest&, const std::string&, const Exchange& exchange) {
  const std::string reason = service_.not_ready();
  json::object body{{"ready", reason.empty()}};
  if (!reason.empty()) body["reason"] = reason;
  exchange->respond(json_response(reason.empty() ? 200 : 503, json::serialize(body)));
}

void Routes::metrics(const HttpRequest&, const std::string&, const Exchange& exchange) {
  exchange->respond({200, service_.metrics(), "text/plain; version=0.0.4; charset=utf-8"});
}

void Routes::document(const HttpRequest&, const std::string&, const Exchange& exchange) {
  exchange->respond(json_response(200, std::string(openapi())));
}

void Routes::overview(const HttpRequest& request, const std::string&, const Exchange& exchange) {
  const JudgeBackend& judge = service_.judge();
  const json::object body{{"version", REKERNEL_VERSION},
                          {"judge", harness_digests().judge},
                          {"devices", judge.devices()},
                          {"devices_usable", service_.scheduler().usable_devices()},
                          {"no_device", judge.no_device()},
                          {"client", request.client},
                          {"queued", service_.scheduler().queued_of(request.client)},
                          {"most_in_batch", options_.most_in_batch},
                          {"longest_wait_s", options_.longest_wait_s}};
  exchange->respond(json_response(200, json::serialize(body)));
}

void Routes::list_problems(const HttpRequest&, const std::string&, const Exchange& exchange) {
  exchange->respond(json_response(200, problems_json()));
}

void Routes::show_problem(const HttpRequest&, const std::string& id, const Exchange& exchange) {
  Result<std::string> problem = problem_json(id);
  if (!problem) {
    return exchange->respond(
        problem_response({404, "unknown_problem", problem.error().message, {}}));
  }
  exchange->respond(json_response(200, std::move(*problem)));
}

}  // namespace rekernel::service
