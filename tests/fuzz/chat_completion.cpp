#include "replay/model/chat_completion.h"

#include <boost/json.hpp>

#include "property.h"
#include "replay/model/response.h"
#include "replay/trajectory/event.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_chat_completion(std::string_view bytes) {
  const std::optional<ModelReply> reply = reply_from_completion(bytes);
  if (!reply) return;
  require(!reply->text.empty() || !reply->failure.empty(), "a reply says something");

  // What is recorded of it is what a replay reads.
  const ModelRequest request{"r1.i1.b1", "model", "a prompt"};
  const boost::json::object event = response_event(request, *reply);
  const Result<ModelReply> recorded = reply_from_event(event, "line 1");
  require(recorded.ok(), "what is recorded is read", recorded.ok() ? "" : recorded.error().message);
  require(recorded->text == reply->text, "the text is kept");
  require(recorded->truncated == reply->truncated, "the end is kept");
  require(canonical_json(response_event(request, *recorded)) == canonical_json(event),
          "a reply is recorded the same again");
}

}  // namespace rekernel::fuzz
