#include "replay/chat_completion.h"

#include <boost/json.hpp>

namespace rekernel {
namespace {

namespace json = boost::json;

/// The text of a message: a string, or a list of parts of which those of text count.
std::string text_of(const json::value* content) {
  if (!content) return "";
  if (const json::string* text = content->if_string()) return std::string(*text);
  std::string text;
  const json::array* parts = content->if_array();
  for (std::size_t i = 0; parts && i < parts->size(); ++i) {
    const json::object* part = (*parts)[i].if_object();
    const json::value* piece = part ? part->if_contains("text") : nullptr;
    if (piece && piece->is_string()) text += std::string_view(piece->get_string());
  }
  return text;
}

std::optional<std::int64_t> count_of(const json::object* usage, const char* key) {
  const json::value* value = usage ? usage->if_contains(key) : nullptr;
  const std::int64_t* count = value ? value->if_int64() : nullptr;
  if (!count || *count < 0 || *count > max_counted_tokens) return std::nullopt;
  return *count;
}

}  // namespace

std::optional<ModelReply> reply_from_completion(std::string_view body) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;  // recorded as it came
  json::error_code status;
  const json::value value = json::parse(body, status, {}, options);
  const json::object* root = status ? nullptr : value.if_object();
  const json::value* choices = root ? root->if_contains("choices") : nullptr;
  if (!choices || !choices->is_array() || choices->get_array().empty()) return std::nullopt;
  const json::object* choice = choices->get_array()[0].if_object();
  const json::value* message = choice ? choice->if_contains("message") : nullptr;
  if (!message || !message->is_object()) return std::nullopt;

  ModelReply reply;
  reply.text = text_of(message->get_object().if_contains("content"));
  const json::value* finish = choice->if_contains("finish_reason");
  reply.truncated = finish && *finish == "length";
  if (reply.text.empty()) {
    const std::string refusal = text_of(message->get_object().if_contains("refusal"));
    reply.failure = "the model gave no text" + (refusal.empty() ? "" : ": " + refusal);
  }
  const json::value* usage = root->if_contains("usage");
  reply.prompt_tokens = count_of(usage ? usage->if_object() : nullptr, "prompt_tokens");
  reply.completion_tokens = count_of(usage ? usage->if_object() : nullptr, "completion_tokens");
  return reply;
}

}  // namespace rekernel
