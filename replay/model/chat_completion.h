#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "replay/model/model.h"

namespace rekernel {

/// The reply in a chat completion, the body of an answer in OpenAI's protocol. Nothing if the body
/// is not what the protocol says. Token counts that no reply can have are left out, and so are the
/// model's thoughts, wherever the server puts them: in members of their own, or as <think>…</think>
/// before the text.
std::optional<ModelReply> reply_from_completion(std::string_view body);

/// What is told of a reply beside its text.
struct ReplyEnding {
  std::string refusal;
  std::string finish;    ///< the endpoint's word for why it ended: "stop", "length"
  bool thought = false;  ///< there were thoughts
};

/// A chat completion that comes in pieces, as server-sent events. Keeps the reply alone, not what
/// is round it.
class StreamedCompletion {
 public:
  /// Takes the next bytes, cut anywhere. False: the reply is longer than any that is recorded.
  bool take(std::string_view bytes);
  /// Nothing until the stream said that the reply is at its end, or where an event of it was not
  /// what the protocol says.
  std::optional<ModelReply> reply() const;
  /// What the endpoint said in place of the rest of the reply, or what an event held that is none.
  const std::string& trouble() const { return trouble_; }

 private:
  void take_line(std::string_view line);
  void take_event(std::string_view data);

  std::string line_;  ///< the one that has not come to its end
  ModelReply reply_;
  ReplyEnding ending_;
  std::string trouble_;
  bool ended_ = false;
};

/// Whether a body is such a stream, by its first bytes.
bool looks_streamed(std::string_view body);

}  // namespace rekernel
