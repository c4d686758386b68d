#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ops/result.h"
#include "replay/model/model.h"
#include "replay/search/reply.h"

namespace rekernel {

/// What a model is asked for.
enum class ReplyKind { ideas, kernel };

using ReplyContent = std::variant<std::vector<Idea>, KernelReply>;

/// A reply and what it holds, read once.
struct ReadReply {
  ModelReply reply;
  Result<ReplyContent> content;  ///< of the kind that was asked for, or why there is none

  /// Why the model should be asked again; empty if the reply can be used.
  std::string unusable() const;
};

ReadReply read_reply(ReplyKind kind, ModelReply reply);

/// What is wrong with a reply: what the model says of its failure, or the error, and whether the
/// reply was cut off.
std::string complaint_about(const ModelReply& reply, const Error& error);

}  // namespace rekernel
