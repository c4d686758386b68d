#pragma once

#include <cstdint>
#include <memory>

#include "replay/model/chat_protocol.h"
#include "replay/model/endpoint.h"

namespace rekernel {

/// OpenAI's chat completions, in one piece or streamed (a ProtocolMaker). The longest reply is
/// asked for as max_completion_tokens, and as max_tokens from the first answer on that does not
/// know the other.
std::unique_ptr<ChatProtocol> openai_protocol(const Endpoint& endpoint, std::int64_t reply_tokens);

}  // namespace rekernel
