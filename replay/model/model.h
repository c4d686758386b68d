#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "replay/model/prompt_text.h"
#include "replay/trajectory/interruption.h"

namespace rekernel {

/// Replies of more bytes are recorded as a failure, without their text.
inline constexpr std::size_t max_reply_bytes = std::size_t{4} << 20;

/// Larger counts of tokens, in a prompt or a reply, are ignored. So their sum over any search
/// stays within 63 bits.
inline constexpr std::int64_t max_counted_tokens = std::int64_t{1} << 36;

struct ModelRequest {
  std::string id;     ///< "r4.ideas", "r4.i2.b1"
  std::string model;  ///< which of the search's models is asked
  PromptText prompt;
};

struct ModelReply {
  std::string text;                               ///< any bytes
  std::optional<std::int64_t> prompt_tokens;      ///< as counted by the model
  std::optional<std::int64_t> completion_tokens;  ///< as counted by the model
  bool truncated = false;                         ///< the model stopped at a limit of length
  std::string failure;  ///< why there is no text, where the model answered without one
};

/// What a search makes of a reply.
struct Reception {
  enum class Next {
    go_on,
    ask_again,  ///< the reply is unusable, for the reason given: another is wanted
    stop,       ///< do not ask for more, and return
  };
  Next next = Next::go_on;
  std::string reason;
};

/// Where replies come from.
class Model {
 public:
  /// Called for every reply, with the index of its request, in any order but never twice at a time.
  using Arrived = std::function<Reception(std::size_t index, ModelReply reply)>;

  virtual ~Model() = default;
  /// Asks all requests at once and returns when every reply has arrived and was usable, or none can
  /// be had now.
  virtual std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                          const Arrived& arrived) = 0;
  /// Whether asking again for a reply that once arrived gives the same reply at no cost, so that it
  /// need not be kept before its turn in the trajectory. Such a reply is not recorded as long as it
  /// is unusable.
  virtual bool keeps_replies() const { return false; }
};

}  // namespace rekernel
