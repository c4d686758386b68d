#include "replay/model/chat_completion.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::array thoughts_fields = {"reasoning_content", "reasoning"};

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

/// Where servers put a model's thoughts that they tell from its text.
bool holds_thoughts(const json::object& message) {
  return std::any_of(thoughts_fields.begin(), thoughts_fields.end(), [&](const char* field) {
    return !text_of(message.if_contains(field)).empty();
  });
}

std::string_view without_blanks_before(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

/// The text after the thoughts that a server left in it: often their opening mark is in the
/// prompt, so that the closing one alone is here.
std::string_view behind_thoughts(std::string_view text) {
  constexpr std::string_view open = "<think>";
  constexpr std::string_view close = "</think>";
  while (true) {
    const std::size_t end = text.find(close);
    if (end != std::string_view::npos) {
      text = without_blanks_before(text.substr(end + close.size()));
    } else {
      return without_blanks_before(text).starts_with(open) ? std::string_view() : text;
    }
  }
}

/// Why a reply has no text, in the model's own words where it has some.
std::string failure_text(const ReplyEnding& ending) {
  std::string text = "the model gave no text";
  if (ending.thought) text += " after its thoughts";
  if (ending.finish == "length") {
    text += " (it stopped at its limit of length)";
  } else if (!ending.finish.empty() && ending.finish != "stop") {
    text += " (it ended with \"" + ending.finish + "\")";
  }
  return text + (ending.refusal.empty() ? "" : ": " + ending.refusal);
}

/// What a whole reply says beside its text. Without any it is a failure. No prompt and no text has
/// no tokens: servers that do not count say 0.
void complete(ReplyEnding ending, ModelReply& reply) {
  if (reply.prompt_tokens == 0) reply.prompt_tokens.reset();
  if (!reply.text.empty() && reply.completion_tokens == 0) reply.completion_tokens.reset();
  reply.truncated = ending.finish == "length";
  const std::string_view text = behind_thoughts(reply.text);
  if (text.size() < reply.text.size()) {
    ending.thought = true;
    reply.text = std::string(text);
  }
  if (reply.text.empty()) reply.failure = failure_text(ending);
}

/// Whether the reply has ended.
bool take_finish(const json::object& choice, ReplyEnding& ending) {
  const json::value* finish = choice.if_contains("finish_reason");
  if (!finish || !finish->is_string()) return false;
  ending.finish = std::string_view(finish->get_string());
  return true;
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
  take_usage(*root, reply);
  ReplyEnding ending;
  ending.refusal = text_of(message->get_object().if_contains("refusal"));
  ending.thought = holds_thoughts(message->get_object());
  take_finish(*choice, ending);
  complete(std::move(ending), reply);
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
    ending_.refusal += text_of(piece->if_contains("refusal"));
    ending_.thought = ending_.thought || holds_thoughts(*piece);
  }
  if (take_finish(*choice, ending_)) ended_ = true;
}

std::optional<ModelReply> StreamedCompletion::reply() const {
  if (!ended_ || !trouble_.empty()) return std::nullopt;
  ModelReply reply = reply_;
  complete(ending_, reply);
  return reply;
}

bool looks_streamed(std::string_view body) {
  body.remove_prefix(std::min(body.find_first_not_of(" \r\n"), body.size()));
  return body.starts_with("data:") || body.starts_with("event:") || body.starts_with(":");
}

}  // namespace rekernel
