#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/model/chat_protocol.h"
#include "replay/model/endpoint.h"
#include "replay/model/http_client.h"
#include "replay/model/model.h"

namespace rekernel {

/// How endpoints are asked, whatever their API.
struct AskingOptions {
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

/// Models with an API that is spoken over HTTP. Tries again, with growing pauses and obeying
/// Retry-After, after what may pass: the statuses that the protocol says, time-outs, broken
/// connections and bodies that are not the protocol's. What cannot succeed later (a bad key, an
/// unknown model, another protocol) or fails too often ends the search, not the candidate: what was
/// recorded stays, and the same command goes on.
///
/// A key is cut out of every message and of every reply. A request to this machine goes past
/// proxies, which are other machines.
class HttpModel : public Model {
 public:
  HttpModel(std::vector<Endpoint> endpoints, const ProtocolMaker& protocol_of,
            AskingOptions options);
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override;

 private:
  /// An endpoint and how it is asked.
  struct Target {
    Endpoint endpoint;
    std::unique_ptr<ChatProtocol> protocol;
  };
  struct Exchange;
  class Batch;

  HttpLibrary library_;
  AskingOptions options_;
  std::map<std::string, std::unique_ptr<Target>> targets_;
};

}  // namespace rekernel
