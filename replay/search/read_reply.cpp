#include "replay/search/read_reply.h"

#include <utility>

namespace rekernel {
namespace {

Result<ReplyContent> content_of(ReplyKind kind, const ModelReply& reply) {
  const auto content = [&](auto parsed) -> Result<ReplyContent> {
    if (!parsed) return Error{complaint_about(reply, parsed.error())};
    return ReplyContent(std::move(*parsed));
  };
  return kind == ReplyKind::ideas ? content(parse_ideas(reply.text))
                                  : content(parse_kernel_reply(reply.text));
}

}  // namespace

std::string ReadReply::unusable() const {
  if (!reply.failure.empty()) return reply.failure;
  return content ? "" : content.error().message;
}

ReadReply read_reply(ReplyKind kind, ModelReply reply) {
  Result<ReplyContent> content = content_of(kind, reply);
  return {std::move(reply), std::move(content)};
}

std::string complaint_about(const ModelReply& reply, const Error& error) {
  if (!reply.failure.empty()) return reply.failure;
  return error.message + (reply.truncated ? " (the model stopped at its limit of length)" : "");
}

}  // namespace rekernel
