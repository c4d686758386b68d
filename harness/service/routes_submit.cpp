#include <algorithm>
#include <boost/json.hpp>
#include <charconv>

#include "harness/base/files.h"
#include "harness/base/utf8.h"
#include "harness/service/problem_json.h"
#include "harness/service/responses.h"
#include "harness/service/routes.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

constexpr std::size_t longest_key = 200;
constexpr std::int64_t longest_deadline_s = 7 * 24 * 3600;

Result<JsonReader> body_of(const HttpRequest& request, json::value& into) {
  if (!header_of(request, "content-type").starts_with("application/json")) {
    return Error{"expected Content-Type: application/json"};
  }
  Result<json::value> body = parse_json(request.body, "body");
  if (!body) return body.error();
  into = std::move(*body);
  return JsonReader("body", into);
}

std::optional<Priority> priority_from(std::string_view text) {
  for (const Priority priority : {Priority::high, Priority::normal, Priority::low}) {
    if (text == to_string(priority)) return priority;
  }
  return std::nullopt;
}

}  // namespace

Result<std::chrono::seconds> Routes::wait_of(const HttpRequest& request) const {
  const auto found = request.query.find("wait");
  if (found == request.query.end()) return std::chrono::seconds(0);
  const std::string& text = found->second;
  std::int64_t seconds = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (code != std::errc() || end != text.data() + text.size() || seconds < 0 ||
      seconds > options_.longest_wait_s) {
    return Error{"wait: expected whole seconds from 0 to " +
                 std::to_string(options_.longest_wait_s)};
  }
  return std::chrono::seconds(seconds);
}

Result<Submission> Routes::submission_from(JsonReader reader) const {
  Submission submission;
  submission.task = read_task(reader);
  if (auto key = reader.optional("key")) {
    submission.key = key->string(longest_key);
    if (submission.key->empty()) key->expect("a key of 1 to 200 bytes");
  }
  if (auto priority = reader.optional("priority")) {
    const auto known = priority_from(priority->string(64));
    if (!known) priority->expect("high, normal or low");
    submission.priority = known.value_or(Priority::normal);
  }
  if (auto deadline = reader.optional("deadline_s")) {
    submission.deadline_s = deadline->integer(1, longest_deadline_s);
  }
  if (auto fresh = reader.optional("fresh")) submission.fresh = fresh->boolean();
  reader.no_other_keys();
  if (const auto error = reader.error()) return *error;
  if (Result<std::string> known = problem_json(submission.task.problem); !known)
    return known.error();
  return submission;
}

void Routes::submit(const HttpRequest& request, const std::string&, const Exchange& exchange) {
  const Result<std::chrono::seconds> wait = wait_of(request);
  if (!wait) return exchange->respond(bad_request(wait.error().message));
  json::value body;
  Result<JsonReader> reader = body_of(request, body);
  if (!reader) return exchange->respond(bad_request(reader.error().message));
  Result<Submission> submission = submission_from(*reader);
  if (!submission) return exchange->respond(bad_request(submission.error().message));
  if (const std::string key = header_of(request, "idempotency-key"); !key.empty()) {
    if (key.size() > longest_key || !is_utf8(key)) {
      return exchange->respond(bad_request("Idempotency-Key: expected at most 200 bytes of UTF-8"));
    }
    submission->key = key;
  }
  service_.submit(request.client, {std::move(*submission)}, std::nullopt,
                  [this, exchange, client = request.client, wait = *wait](const Views& views) {
                    if (const auto refusal = refusal_in(views)) {
                      return exchange->respond(problem_response(*refusal));
                    }
                    respond_when_answered(client, std::get<0>(views).front(), wait, exchange);
                  });
}

void Routes::submit_batch(const HttpRequest& request, const std::string&,
                          const Exchange& exchange) {
  const Result<std::chrono::seconds> wait = wait_of(request);
  if (!wait) return exchange->respond(bad_request(wait.error().message));
  json::value body;
  Result<JsonReader> reader = body_of(request, body);
  if (!reader) return exchange->respond(bad_request(reader.error().message));
  std::vector<Submission> submissions;
  for (const JsonReader& one : reader->required("evaluations").array(1, options_.most_in_batch)) {
    Result<Submission> submission = submission_from(one);
    if (!submission) return exchange->respond(bad_request(submission.error().message));
    submissions.push_back(std::move(*submission));
  }
  reader->no_other_keys();
  if (const auto error = reader->error()) return exchange->respond(bad_request(error->message));
  const std::string batch = random_digits() + random_digits();
  service_.submit(
      request.client, submissions, batch,
      [this, exchange, client = request.client, batch, wait = *wait](const Views& views) {
        if (const auto refusal = refusal_in(views)) {
          return exchange->respond(problem_response(*refusal));
        }
        const std::vector<View>& all = std::get<0>(views);
        const bool waits =
            std::any_of(all.begin(), all.end(), [](const View& view) { return !view.answered; });
        if (!waits || wait.count() == 0) {
          return exchange->respond(batch_response(batch, all));
        }
        respond_with_batch(client, batch, wait, exchange);
      });
}

}  // namespace rekernel::service
