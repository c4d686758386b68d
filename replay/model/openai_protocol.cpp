#include "replay/model/openai_protocol.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "harness/base/utf8.h"
#include "replay/model/chat_completion.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr const char* base_url_hint =
    " (expected a base URL of OpenAI's protocol; most end in /v1)";
constexpr const char* new_limit = "max_completion_tokens";
constexpr const char* old_limit = "max_tokens";

/// Nothing if the body is no JSON object.
std::optional<json::object> object_in(const std::string& body) {
  json::error_code status;
  json::value value = json::parse(body, status);
  if (status || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

bool may_succeed_later(long status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

/// What an error of OpenAI's protocol says; empty texts if the body is none.
struct ErrorWords {
  std::string message;
  std::string code;
  std::string type;

  explicit ErrorWords(const std::string& body) {
    const std::optional<json::object> object = object_in(body);
    const json::value* error = object ? object->if_contains("error") : nullptr;
    const json::object* details = error ? error->if_object() : nullptr;
    if (!details) return;
    for (auto [name, text] : {std::pair{"message", &message}, {"code", &code}, {"type", &type}}) {
      const json::value* member = details->if_contains(name);
      if (member && member->is_string()) *text = std::string_view(member->get_string());
    }
  }

  /// Status 429 as well, but a pause does not fix it.
  bool is_out_of_credit() const {
    constexpr const char* word = "insufficient_quota";
    return code == word || type == word;
  }
};

/// Whether an answer says that there is no such model, and not that there is no such address.
bool is_unknown_model(long status, const std::string& error, const std::string& model) {
  const auto says = [&](std::string_view words) { return error.find(words) != std::string::npos; };
  const bool refused = status == 404 || (status == 400 && says("nvalid model"));
  return refused && says("model") && says(model);
}

class OpenAiAnswer : public ChatAnswer {
 public:
  bool take(std::string_view bytes) override {
    if (body_.empty() && !streamed_ && looks_streamed(bytes)) streamed_.emplace();
    if (streamed_) {
      body_ += bytes.substr(0, shown_answer_bytes - std::min(body_.size(), shown_answer_bytes));
      return streamed_->take(bytes);
    }
    if (body_.size() + bytes.size() > max_answer_bytes) return false;
    body_ += bytes;
    return true;
  }

  std::variant<ModelReply, AnswerFault> read() override {
    if (!streamed_ && looks_streamed(body_)) {  // its first bytes came one by one
      streamed_.emplace().take(body_);
    }
    if (auto reply = streamed_ ? streamed_->reply() : reply_from_completion(body_)) {
      return std::move(*reply);
    }
    return fault();
  }

  const std::string& body() const override { return body_; }

 private:
  AnswerFault fault() const {
    if (streamed_) {
      const std::string& trouble = streamed_->trouble();
      return {trouble.empty() ? "the stream ended early"
                              : "in the stream: " + one_line(trouble, shown_answer_bytes),
              false};
    }
    AnswerFault fault{"not a chat completion"};
    // A JSON object that is no completion and no error either comes from another protocol, every
    // time.
    const std::optional<json::object> object = object_in(body_);
    fault.lasting = object && !object->contains("choices") && !object->contains("error");
    if (fault.lasting) {
      fault.hint = " (another API? expected OpenAI's /chat/completions)";
    } else if (body_.starts_with('<')) {
      fault.hint = base_url_hint;
    }
    return fault;
  }

  std::string body_;  ///< of a streamed answer, its first bytes alone
  std::optional<StreamedCompletion> streamed_;
};

class OpenAiProtocol : public ChatProtocol {
 public:
  OpenAiProtocol(const Endpoint& endpoint, std::int64_t reply_tokens) : endpoint_(endpoint) {
    const ModelSettings& record = endpoint.record;
    reply_tokens_ = record.reply_tokens > 0 ? record.reply_tokens : reply_tokens;
    limit_known_ = !record.limit_field.empty();
    limit_field_ = limit_known_ ? record.limit_field : new_limit;
  }

  std::string address() const override { return completions_address(endpoint_.record.base_url); }

  std::vector<std::string> headers() const override {
    std::vector<std::string> lines{"Content-Type: application/json"};
    if (!endpoint_.key.empty()) lines.push_back("Authorization: Bearer " + endpoint_.key);
    return lines;
  }

  ChatRequest request(const ModelRequest& request) const override {
    const ModelSettings& record = endpoint_.record;
    json::object body;
    if (!record.body.empty()) body = json::parse(record.body).as_object();
    body["model"] = asked_as(request);
    body["messages"] =
        json::array{json::object{{"role", "user"}, {"content", request.prompt.text()}}};
    if (reply_tokens_ > 0) body[limit_field_] = reply_tokens_;
    if (record.stream) {
      body["stream"] = true;
      body["stream_options"] = json::object{{"include_usage", true}};
    }
    return {json::serialize(body), limit_field_};
  }

  std::unique_ptr<ChatAnswer> new_answer() const override {
    return std::make_unique<OpenAiAnswer>();
  }

  AnswerFault refusal(long status, const std::string& body,
                      const ModelRequest& request) const override {
    const ErrorWords error(body);
    AnswerFault fault{"HTTP status " + std::to_string(status)};
    fault.lasting = !may_succeed_later(status) || error.is_out_of_credit();
    if (fault.lasting) fault.hint = hint(status, error.message, asked_as(request));
    return fault;
  }

  /// Whether an answer refuses the name of the limit that was sent, and the other is worth a try.
  std::optional<std::string> adapt_to_refusal(long status, const std::string& body,
                                              const ChatRequest& sent) override {
    if (reply_tokens_ == 0 || (status != 400 && status != 422)) return std::nullopt;
    const bool has_another = !limit_known_ || sent.limit != limit_field_;
    if (!has_another || body.find(sent.limit) == std::string::npos) return std::nullopt;
    take_other_limit();
    return "does not take " + sent.limit;
  }

  /// An endpoint that does not know a member may ignore it.
  std::optional<std::string> adapt_to_reply(const ModelReply& reply) override {
    const bool ignored = !limit_known_ && reply_tokens_ > 0 && reply.completion_tokens &&
                         *reply.completion_tokens > reply_tokens_;
    if (!ignored) return std::nullopt;
    const std::string what = "ignores " + limit_field_;
    take_other_limit();
    return what;
  }

 private:
  const std::string& asked_as(const ModelRequest& request) const {
    return endpoint_.record.ask_as.empty() ? request.model : endpoint_.record.ask_as;
  }

  static std::string hint(long status, const std::string& error, const std::string& model) {
    if (is_unknown_model(status, error, model)) {
      return " (asked for is \"" + model + "\"; --ask-as gives the name that is known there)";
    }
    if (status == 400 && error.find("context length") != std::string::npos) {
      return " (a new search with --prompt-tokens asks in shorter prompts)";
    }
    return status == 404 || status == 405 ? base_url_hint : "";
  }

  void take_other_limit() {
    if (limit_known_) return;
    limit_field_ = limit_field_ == new_limit ? old_limit : new_limit;
    limit_known_ = true;
  }

  const Endpoint& endpoint_;
  std::int64_t reply_tokens_ = 0;
  std::string limit_field_;   ///< as it is sent
  bool limit_known_ = false;  ///< by the owner, or by an answer
};

}  // namespace

std::unique_ptr<ChatProtocol> openai_protocol(const Endpoint& endpoint, std::int64_t reply_tokens) {
  return std::make_unique<OpenAiProtocol>(endpoint, reply_tokens);
}

}  // namespace rekernel
