#include "replay/model/response.h"

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "replay/trajectory/event.h"

namespace rekernel {

namespace json = boost::json;

namespace {

void put_reply(json::object& event, const ModelRequest& request, const ModelReply& reply) {
  const bool counted = reply.prompt_tokens && reply.completion_tokens;
  put_text(event, "text", reply.text);
  event["prompt_tokens"] = counted ? *reply.prompt_tokens : estimated_tokens(request.prompt.size());
  event["completion_tokens"] =
      counted ? *reply.completion_tokens : estimated_tokens(reply.text.size());
  event["tokens"] = counted ? "counted" : "estimated";
  event["truncated"] = reply.truncated;
  event["failure"] = printable(reply.failure, 1000);
}

}  // namespace

json::object response_event(const ModelRequest& request, const ModelReply& reply) {
  json::object event{{"event", "response"}, {"id", request.id}};
  put_reply(event, request, reply);
  return event;
}

json::object unusable_event(const ModelRequest& request, const ModelReply& reply, int attempt,
                            const std::string& reason) {
  json::object event{{"event", "unusable"}, {"id", request.id}, {"attempt", attempt}};
  put_reply(event, request, reply);
  event["reason"] = printable(reason, 1000);
  return event;
}

Result<ModelReply> reply_from_event(const json::value& event, const std::string& where) {
  JsonReader reader(where, event);
  ModelReply reply;
  reply.text = take_text(reader, "text");
  const std::int64_t prompt_tokens =
      reader.required("prompt_tokens").integer(0, max_counted_tokens);
  const std::int64_t completion_tokens =
      reader.required("completion_tokens").integer(0, max_counted_tokens);
  if (reader.required("tokens").string(16) == "counted") {
    reply.prompt_tokens = prompt_tokens;
    reply.completion_tokens = completion_tokens;
  }
  reply.truncated = reader.required("truncated").boolean();
  reply.failure = reader.required("failure").string();
  if (auto error = reader.error()) return *error;
  return reply;
}

}  // namespace rekernel
