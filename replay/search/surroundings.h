#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "replay/evaluator/evaluator.h"
#include "replay/model/model.h"
#include "replay/search/prompt.h"
#include "replay/search/read_reply.h"
#include "replay/search/reply.h"
#include "replay/search/selection.h"
#include "replay/trajectory/continuation.h"
#include "replay/trajectory/outcome.h"
#include "replay/trajectory/pending_journal.h"
#include "replay/trajectory/profile_record.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

/// A candidate whose evaluation is in the trajectory.
struct CandidateReport {
  std::string id;
  int round = 0;  ///< of seeds: the one before the first
  Idea idea;
  std::string model;
  /// The kernels that its prompt showed, of candidates, seeds and the library; none for seeds.
  std::vector<std::string> parents;
  const Candidate* candidate = nullptr;  ///< null where the reply held none
  const Outcome* outcome = nullptr;
  /// With or without its chain value.
  const boost::json::object* record = nullptr;
};

struct SelectionReport {
  int round = 0;
  Selection selection;
};

/// A request whose event is in the trajectory. What it points to stays during the call; the prompt
/// may be copied, which costs little.
struct RequestReport {
  ReplyKind kind = ReplyKind::ideas;
  int round = 0;
  const ModelRequest* request = nullptr;
  const PromptParts* parts = nullptr;  ///< what its prompt shows
  const Idea* idea = nullptr;          ///< null for a request for ideas
};

/// A reply whose event is in the trajectory.
struct ReplyReport {
  std::string id;  ///< of its request
  std::string model;
  const ModelReply* reply = nullptr;  ///< during the call
  std::string unusable;               ///< why it was asked for again; empty if it was taken
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

/// What a search tells while it goes; each may be empty.
struct SearchObserver {
  std::function<void(const CandidateReport&)> candidate;
  std::function<void(const SelectionReport&)> selection;
  std::function<void(const RequestReport&)> request;
  std::function<void(const ReplyReport&)> reply;
  /// A candidate's profile, whose event is in the trajectory.
  std::function<void(const std::string& id, const ProfileRecord&)> profile;
  std::function<void(const std::string&)> progress;  ///< what is being done now
  std::function<void(const std::string&)> say;       ///< what a person should know of

  void show(const std::string& text) const {
    if (progress) progress(text);
  }
  void tell(const std::string& text) const {
    if (say) say(text);
  }
};

/// What a search works with. `deadline_reached` is asked where no recorded event says what
/// happened.
struct SearchSurroundings {
  Trajectory& trajectory;
  PendingJournal* journal = nullptr;  ///< null when only replaying
  Model& model;
  Evaluator& evaluator;
  std::function<bool()> deadline_reached;
  SearchObserver observer;
  /// What to go on with where the recording ends with a stop; null: the search is over there.
  std::function<Result<Continuation>(const Settings&)> go_on = {};
  bool stop_asked = false;  ///< a person wants no new request; heeded where nothing is recorded
  /// How the models are asked now, where that is of interest: a change to what is recorded becomes
  /// an event before the first request that it concerns.
  std::vector<ModelSettings> endpoints = {};
  bool as_is = false;  ///< unusable replies are taken as they are, not asked for again
  /// Whether a person wants to go on where the search ended since no reply was usable.
  bool resumed = false;
};

/// Why a search ended before its rounds were over: a whole round brought no usable reply.
inline constexpr const char* stop_for_unusable_replies = "unusable_replies";

/// How a search ended.
struct SearchEnd {
  std::optional<Interruption> interruption;
  /// "rounds", "token_budget", "deadline", "stopped" or "unusable_replies" when the search came to
  /// its end.
  std::string reason;
  std::string note;  ///< of the last: what was asked, how many replies came, what was wrong
};

}  // namespace rekernel
