#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/model/endpoint.h"
#include "replay/model/model.h"

namespace rekernel {

struct OpenAiOptions {
  int concurrency = 4;            ///< requests under way at once, over all models
  int attempts = 6;               ///< per request, the first included
  std::int64_t reply_tokens = 0;  ///< asked for as the longest reply; 0: the endpoint's own limit
  std::chrono::milliseconds connect_timeout{30000};
  std::chrono::milliseconds total_timeout{1800000};  ///< of one attempt; reasoning takes minutes
  std::chrono::milliseconds first_pause{2000};       ///< doubled after every failed attempt
  std::chrono::milliseconds longest_pause{300000};   ///< bound on Retry-After too
  /// When asking ends, also within a pause and within a request.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  /// Told, in a line, why something is asked for again and when.
  std::function<void(const std::string&)> say;
  /// Told about once a second what is waited for.
  std::function<void(const std::string&)> progress;
};

/// Chat completions of any endpoint that speaks OpenAI's protocol, in one piece or streamed. Tries
/// again, with growing pauses and heeding Retry-After, after status 408, 409, 425, 429 and 5xx,
/// after time-outs and broken connections, and after bodies that are not the protocol's. What
/// cannot succeed later (a bad key, an unknown model, another protocol) or fails too often ends the
/// search, not the candidate: what was recorded stays, and the same command goes on.
///
/// The longest reply is asked for as max_completion_tokens, and as max_tokens from the first answer
/// on that does not know the other.
///
/// A key is cut out of every message and of every reply. A request to this machine goes past
/// proxies, which are other machines.
class OpenAiModel : public Model {
 public:
  OpenAiModel(std::vector<Endpoint> endpoints, OpenAiOptions options);
  ~OpenAiModel() override;
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override;

 private:
  /// An endpoint and what its answers told of it.
  struct Target;
  struct Exchange;
  class Batch;

  OpenAiOptions options_;
  std::map<std::string, std::unique_ptr<Target>> targets_;
};

}  // namespace rekernel
