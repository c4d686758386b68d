#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "replay/interruption.h"

namespace rekernel {

/// Replies of more bytes are recorded as a failure, without their text.
inline constexpr std::size_t max_reply_bytes = std::size_t{4} << 20;

/// Counts of more tokens, of a prompt or of a reply, are not believed. So their sum over any search
/// stays within 63 bits.
inline constexpr std::int64_t max_counted_tokens = std::int64_t{1} << 36;

struct ModelRequest {
  std::string id;     ///< "r4.ideas", "r4.i2.b1"
  std::string model;  ///< which of the search's models is asked
  std::string prompt;
};

struct ModelReply {
  std::string text;                               ///< any bytes
  std::optional<std::int64_t> prompt_tokens;      ///< as counted by the model
  std::optional<std::int64_t> completion_tokens;  ///< as counted by the model
  bool truncated = false;                         ///< the model stopped at a limit of length
  std::string failure;  ///< why there is no text, where the model answered without one
};

/// Where replies come from.
class Model {
 public:
  /// Called once for every reply, with the index of its request, in any order but never twice at a
  /// time. False: do not ask for more, and return.
  using Arrived = std::function<bool(std::size_t index, ModelReply reply)>;

  virtual ~Model() = default;
  /// Asks all requests at once and returns when every reply has arrived, or none is to be had now.
  virtual std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                          const Arrived& arrived) = 0;
  /// Whether asking again for a reply that once arrived gives the same reply at no cost, so that it
  /// need not be kept before its turn in the trajectory.
  virtual bool keeps_replies() const { return false; }
};

}  // namespace rekernel
