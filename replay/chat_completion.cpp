#include "replay/chat_completion.h"

#include <algorithm>
#include <boost/json.hpp>

namespace rekernel {
namespace {

namespace json = boost::json;

std::optional<json::value> parsed(std::string_view text) {
  json::parse_options options;
  options.allow_invalid_utf8 = true;  // recorded as it came
  json::error_code status;
  json::value value = json::parse(text, status, {}, options);
  if (status) return std::nullopt;
  return value;
}

/// The first choice of a completion, or of an event of one; null without.
const json::object* first_choice(const json::object& root) {
  const json::value* choices = root.if_contains("choices");
  const json::array* list = choices ? choices->if_array() : nullptr;
  return list && !list->empty() ? (*list)[0].if_object() : nullptr;
}

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

void take_usage(const json::object& root, ModelReply& reply) {
  const json::value* usage = root.if_contains("usage");
  const json::object* counts = usage ? usage->if_object() : nullptr;
  if (!counts) return;
  reply.prompt_tokens = count_of(counts, "prompt_tokens");
  reply.completion_tokens = count_of(counts, "completion_tokens");
}

/// What a whole reply says beside its text. Without any it is a failure, with the model's own words
/// where it has some. No prompt and no text has no tokens: servers that do not count say 0.
void complete(const std::string& refusal, ModelReply& reply) {
  if (reply.prompt_tokens == 0) reply.prompt_tokens.reset();
  if (!reply.text.empty() && reply.completion_tokens == 0) reply.completion_tokens.reset();
  if (!reply.text.empty()) return;
  reply.failure = "the model gave no text" + (refusal.empty() ? "" : ": " + refusal);
}

}  // namespace

std::optional<ModelReply> reply_from_completion(std::string_view body) {
  const std::optional<json::value> value = parsed(body);
  const json::object* root = value ? value->if_object() : nullptr;
  const json::object* choice = root ? first_choice(*root) : nullptr;
  const json::value* message = choice ? choice->if_contains("message") : nullptr;
  if (!message || !message->is_object()) return std::nullopt;

  ModelReply reply;
  reply.text = text_of(message->get_object().if_contains("content"));
  const json::value* finish = choice->if_contains("finish_reason");
  reply.truncated = finish && *finish == "length";
  take_usage(*root, reply);
  complete(text_of(message->get_object().if_contains("refusal")), reply);
  return reply;
}

bool StreamedCompletion::take(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find_first_of("\r\n");
    line_ += bytes.substr(0, end);
    if (end == std::string_view::npos) break;
    take_line(line_);
    line_.clear();
    bytes.remove_prefix(end + 1);
  }
  return reply_.text.size() <= max_reply_bytes && line_.size() <= 6 * max_reply_bytes;
}

void StreamedCompletion::take_line(std::string_view line) {
  // Other fields ("event", "id", "retry") and comments, which keep a connection alive, say nothing.
  if (!line.starts_with("data:")) return;
  line.remove_prefix(5);
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    ended_ = true;
  } else if (!line.empty() && trouble_.empty()) {
    take_event(line);
  }
}

void StreamedCompletion::take_event(std::string_view data) {
  const std::optional<json::value> value = parsed(data);
  const json::object* root = value ? value->if_object() : nullptr;
  if (!root || root->contains("error")) {
    trouble_ = data;
    return;
  }
  take_usage(*root, reply_);
  const json::object* choice = first_choice(*root);
  if (!choice) return;  // the last event often holds the counts alone
  const json::value* delta = choice->if_contains("delta");
  if (const json::object* piece = delta ? delta->if_object() : nullptr) {
    reply_.text += text_of(piece->if_contains("content"));
    refusal_ += text_of(piece->if_contains("refusal"));
  }
  const json::value* finish = choice->if_contains("finish_reason");
  if (!finish || !finish->is_string()) return;
  reply_.truncated = *finish == "length";
  ended_ = true;
}

std::optional<ModelReply> StreamedCompletion::reply() const {
  if (!ended_ || !trouble_.empty()) return std::nullopt;
  ModelReply reply = reply_;
  complete(refusal_, reply);
  return reply;
}

bool looks_streamed(std::string_view body) {
  body.remove_prefix(std::min(body.find_first_not_of(" \r\n"), body.size()));
  return body.starts_with("data:") || body.starts_with("event:") || body.starts_with(":");
}

}  // namespace rekernel
