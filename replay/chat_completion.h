#pragma once

#include <optional>
#include <string_view>

#include "replay/model.h"

namespace rekernel {

/// The reply in a chat completion, the body of an answer in OpenAI's protocol. Nothing if the body
/// is not what the protocol says. Token counts that no reply can have are left out.
std::optional<ModelReply> reply_from_completion(std::string_view body);

}  // namespace rekernel
