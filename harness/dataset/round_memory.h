#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/dataset/near_duplicates.h"
#include "harness/evaluation/evaluation.h"
#include "replay/search/surroundings.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {

/// A reply, as a row of `messages` tells it.
struct KeptReply {
  std::string text;
  std::string failure;
  std::string unusable;  ///< why it was asked for again; empty if it was taken
  bool truncated = false;
  bool counted = false;  ///< tokens by the model's count, and not estimated
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

/// A request and what came of it.
struct KeptRequest {
  std::string id;
  ReplyKind kind = ReplyKind::ideas;
  int round = 0;
  std::string model;
  PromptText prompt;
  std::vector<std::string> parents;
  std::string idea_title;
  std::vector<KeptReply> replies;  ///< those that were asked for again, then the one taken

  const KeptReply* taken() const;
};

/// A kernel that a prompt showed, and that candidates of its round may have changed.
struct ShownParent {
  std::string id;
  Candidate candidate;
};

/// A candidate whose evaluation is recorded.
struct KeptCandidate {
  std::string id;
  std::string row_id;  ///< in `candidates`
  int round = 0;
  Idea idea;
  std::string model;
  std::vector<std::string> parents;
  std::optional<Candidate> candidate;
  MinHash sketch{};  ///< of its code
  Outcome outcome;
  Evaluation evaluation;
  boost::json::object record;  ///< its event, without its chain value

  /// "r4.i2" of "r4.i2.b1".
  std::string idea_id() const;
  std::string device() const { return device_in(record); }
};

/// What is known of the round that a replay goes through. Forgotten with its selection, so that
/// memory does not grow with rounds.
struct RoundMemory {
  std::vector<KeptRequest> requests;
  std::map<std::string, std::size_t> request_of;  ///< by id: the last one, an index of `requests`
  std::vector<ShownParent> parents;  ///< of the kernels' prompts, in their order; no library's
  std::vector<KeptCandidate> candidates;

  const KeptRequest* find_request(const std::string& id) const;
  void note(const RequestReport& report);
  void note(const ReplyReport& report);
};

}  // namespace rekernel
