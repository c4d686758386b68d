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
#include "replay/search/reply.h"
#include "replay/search/selection.h"
#include "replay/trajectory/continuation.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/outcome.h"
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

/// A reply whose event is in the trajectory.
struct ReplyReport {
  std::string id;  ///< of its request
  std::string model;
  std::string unusable;  ///< why it was asked for again; empty if it was taken
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

/// What a search tells while it goes; each may be empty.
struct SearchObserver {
  std::function<void(const CandidateReport&)> candidate;
  std::function<void(const SelectionReport&)> selection;
  std::function<void(const ReplyReport&)> reply;
  std::function<void(const std::string&)> progress;  ///< what is being done now
  std::function<void(const std::string&)> say;       ///< what a person should know of
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
  bool as_is = false;  ///< replies that are of no use are taken as they are, not asked for again
  /// Whether a person wants to go on where the search ended since no reply was of use.
  bool resumed = false;
};

/// Why a search ended before its rounds were over: a whole round brought no reply of use.
inline constexpr const char* stop_for_unusable_replies = "unusable_replies";

/// The models of an event `endpoints`, which must be those of the search.
Result<std::vector<ModelSettings>> endpoints_from_json(const boost::json::object& event,
                                                       const std::vector<ModelSettings>& models,
                                                       const std::string& where);

struct SearchEnd {
  std::optional<Interruption> interruption;
  /// "rounds", "token_budget", "deadline", "stopped" or "unusable_replies" when the search came to
  /// its end.
  std::string reason;
  std::string note;  ///< of the last: what was asked, how many replies came, what was wrong
};

/// The search: a function of the header, the replies and the evaluations. Events go to the
/// trajectory in one order whatever arrives first. In a round: the request for ideas and its reply;
/// all requests for kernels, all their replies, all evaluations, each in the order of ideas and
/// branches; the selection. Before a reply stand those to the same request that were of no use and
/// were asked for again, the event `unusable` each. Where the trajectory holds events already, they
/// are taken from there and checked.
///
/// Killed at any byte, the same call goes on and ends with the same file. A reply or an evaluation
/// has arrived once its line, in the trajectory or in the journal, is whole; what has arrived is
/// never asked for again. What was under way, or just being written, is asked for once more, since
/// nobody can know how far it came; with replies from files not even that, since the files remain.
///
/// Where models are asked in another way than before, the event `endpoints` says so. It stands
/// before a reply and changes nothing of the search.
///
/// The token budget, the deadline and a person's wish to stop are looked at before every request
/// for ideas and before the requests for kernels; a stop is recorded as an event with its reason.
/// A continuation behind it makes the search go on as if it had not stopped.
///
/// A round in which three replies or more to the request for ideas, or to those for kernels, were
/// of no use, and none was of any, is not evaluated: a stop ends the search there, with a note.
/// Where several models take turns, each may first fail to give ideas. Of a long round, twelve such
/// replies from its first on are enough. A run that is resumed behind this stop has the round anew,
/// from its ideas on: the same requests stand in the trajectory once more. It ends no search whose
/// replies are taken as they are, or cost nothing, and none that is recorded otherwise.
SearchEnd run_search(const Header& header, SearchSurroundings surroundings);

}  // namespace rekernel
