#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "replay/model/endpoint.h"
#include "replay/model/model.h"

namespace rekernel {

/// The largest body of an answer. The JSON around a reply, with every character escaped, is bigger
/// than the reply.
inline constexpr std::size_t max_answer_bytes = 6 * max_reply_bytes + (1u << 20);
/// How much of a text that came from elsewhere is shown in a message.
inline constexpr std::size_t shown_answer_bytes = 300;

/// What is wrong with an answer, for messages: "what: body (hint)".
struct AnswerFault {
  std::string what;
  bool shows_body = true;
  std::string hint;      ///< with its blank and parentheses; may be empty
  bool lasting = false;  ///< asking again would not help
};

/// The body of one answer, read as it comes.
class ChatAnswer {
 public:
  virtual ~ChatAnswer() = default;
  /// Takes the next bytes, cut anywhere. False: they are more than those of any reply that is
  /// recorded.
  virtual bool take(std::string_view bytes) = 0;
  /// The reply of a body that is at its end, or why it holds none.
  virtual std::variant<ModelReply, AnswerFault> read() = 0;
  /// The body, or its first bytes where it comes in pieces.
  virtual const std::string& body() const = 0;
};

/// A request as it is sent.
struct ChatRequest {
  std::string body;
  std::string limit;  ///< the name under which the longest reply is asked for
};

/// How an API is asked at one endpoint, and what it answers. Learns from the answers how the
/// endpoint wants to be asked.
class ChatProtocol {
 public:
  virtual ~ChatProtocol() = default;
  /// Where requests are sent.
  virtual std::string address() const = 0;
  /// The lines of a request's head that are the protocol's, with the key.
  virtual std::vector<std::string> headers() const = 0;
  virtual ChatRequest request(const ModelRequest& request) const = 0;
  virtual std::unique_ptr<ChatAnswer> new_answer() const = 0;

  /// What an answer of another status than 200 means.
  virtual AnswerFault refusal(long status, const std::string& body,
                              const ModelRequest& request) const = 0;
  /// Whether such an answer refuses not the request but how it was put ("does not take …"), and the
  /// next one is put in another way.
  virtual std::optional<std::string> adapt_to_refusal(long status, const std::string& body,
                                                      const ChatRequest& sent) = 0;
  /// The same of a reply ("ignores …").
  virtual std::optional<std::string> adapt_to_reply(const ModelReply& reply) = 0;
};

/// Makes the protocol for an endpoint, which outlives it. Where the endpoint's settings name no
/// longest reply, `reply_tokens` is asked for; 0: no limit but the endpoint's own.
using ProtocolMaker = std::function<std::unique_ptr<ChatProtocol>(const Endpoint& endpoint,
                                                                  std::int64_t reply_tokens)>;

}  // namespace rekernel
