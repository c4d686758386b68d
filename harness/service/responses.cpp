#include "harness/service/responses.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/utf8.h"

namespace rekernel::service {

namespace json = boost::json;

HttpResponse json_response(int status, std::string body) { return {status, std::move(body)}; }

/// RFC 9457, with a word for programs.
HttpResponse problem_response(const Refusal& refusal) {
  HttpResponse response{refusal.status,
                        json::serialize(json::object{{"type", "about:blank"},
                                                     {"status", refusal.status},
                                                     {"code", refusal.code},
                                                     {"detail", one_line(refusal.message, 2000)}}),
                        "application/problem+json"};
  if (refusal.retry_after) {
    response.headers.emplace_back("Retry-After", std::to_string(refusal.retry_after->count()));
  }
  if (refusal.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

HttpResponse bad_request(const std::string& message) {
  return problem_response({400, "bad_request", message, {}});
}

HttpResponse view_response(const View& view) {
  HttpResponse response = json_response(view.answered ? 200 : 202, view.json);
  response.headers.emplace_back("Location", "/v1/evaluations/" + view.id);
  return response;
}

std::string views_json(const std::vector<View>& views) {
  std::string text = "[";
  for (const View& view : views) text += (text.size() > 1 ? "," : "") + view.json;
  return text + "]";
}

HttpResponse batch_response(const std::string& batch, const std::vector<View>& views) {
  const auto answered =
      std::count_if(views.begin(), views.end(), [](const View& view) { return view.answered; });
  const json::object head{{"batch", batch}, {"total", views.size()}, {"answered", answered}};
  std::string text = json::serialize(head);
  text.pop_back();
  const bool all = static_cast<std::size_t>(answered) == views.size();
  return json_response(all ? 200 : 202, text + ",\"evaluations\":" + views_json(views) + "}");
}

std::optional<Refusal> refusal_in(const Views& views) {
  if (const Refusal* refusal = std::get_if<Refusal>(&views)) return *refusal;
  return std::nullopt;
}

std::string header_of(const HttpRequest& request, const char* name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

}  // namespace rekernel::service
