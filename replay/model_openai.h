#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/model.h"
#include "replay/settings.h"

namespace rekernel {

struct OpenAiOptions {
  int concurrency = 4;            ///< requests under way at once, over all models
  int attempts = 6;               ///< per request, the first included
  std::int64_t reply_tokens = 0;  ///< sent as max_completion_tokens; 0: not sent
  std::chrono::milliseconds connect_timeout{30000};
  std::chrono::milliseconds total_timeout{1800000};  ///< of one attempt; reasoning takes minutes
  std::chrono::milliseconds first_pause{2000};       ///< doubled after every failed attempt
  std::chrono::milliseconds longest_pause{300000};   ///< bound on Retry-After too
};

/// Chat completions of any endpoint that speaks OpenAI's protocol. Tries again, with growing pauses
/// and heeding Retry-After, after status 408, 409, 425, 429 and 5xx, after time-outs and broken
/// connections, and after bodies that are not the protocol's JSON. What cannot succeed later (a bad
/// key, an unknown model) or fails too often ends the search, not the candidate: what was recorded
/// stays, and the same command goes on.
///
/// A key is sent over https only, or to this machine; it is cut out of every message.
class OpenAiModel : public Model {
 public:
  /// Reads the keys from the environment. Every model needs a base URL.
  static Result<std::unique_ptr<OpenAiModel>> make(const std::vector<ModelSettings>& models,
                                                   const OpenAiOptions& options);
  ~OpenAiModel() override;
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override;

 private:
  struct Endpoint {
    std::string url;
    std::string key;
    std::string key_variable;
  };
  struct Exchange;
  class Batch;

  explicit OpenAiModel(const OpenAiOptions& options);

  OpenAiOptions options_;
  std::map<std::string, Endpoint> endpoints_;
};

}  // namespace rekernel
