#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "replay/evaluator/evaluator.h"
#include "replay/search/reply.h"
#include "replay/search/search.h"
#include "replay/search/selection.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/interruption.h"
#include "replay/trajectory/outcome.h"
#include "replay/trajectory/profile_record.h"

namespace rekernel {

struct ReplayedCandidate {
  std::string id;
  int round = 0;
  Idea idea;
  std::string model;
  std::optional<Candidate> candidate;  ///< only if asked for, and if the reply held one
  std::string sha256;                  ///< empty where the reply held none
  std::string device;                  ///< where it was measured
  Outcome outcome;
  /// Ids of the kernels that its prompt showed: candidates, seeds and kernels of the library.
  std::vector<std::string> parents;
  boost::json::object record;  ///< its evaluation event; there where `candidate` is
};

/// Whether it is a kernel that the search started from: no model wrote it.
bool is_seed(const ReplayedCandidate& candidate);

struct ReplayedRound {
  int round = 0;
  Selection selection;
  std::int64_t prompt_tokens = 0;      ///< up to its end
  std::int64_t completion_tokens = 0;  ///< up to its end
};

/// A reply that was asked for again.
struct UnusableReply {
  std::string id;  ///< of its request
  std::string model;
  std::string reason;
};

/// What the replies of one model took.
struct ModelUse {
  std::int64_t replies = 0;   ///< taken
  std::int64_t unusable = 0;  ///< asked for again
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};

/// A recorded search, as the search code reproduced it.
struct ReplayedSearch {
  Header header;
  std::vector<ReplayedCandidate> candidates;
  std::vector<ReplayedRound> rounds;
  std::string stop_reason;
  std::string stop_note;  ///< see SearchEnd
  std::size_t events = 0;
  std::int64_t prompt_tokens = 0;      ///< of unusable replies too
  std::int64_t completion_tokens = 0;  ///< of unusable replies too
  std::map<std::string, ModelUse> models;
  std::map<std::string, ProfileRecord> profiles;  ///< by candidate
  std::vector<UnusableReply> unusable;
};

struct Replay {
  ReplayedSearch search;                     ///< up to the interruption
  std::optional<Interruption> interruption;  ///< nothing: every byte was reproduced
  /// If a recording ends before the search does: what comes next, by id. All are empty where
  /// the search itself has the next word.
  std::vector<std::string> awaited_replies;
  std::vector<std::string> awaited_evaluations;
  std::vector<std::string> awaited_profiles;
};

/// Whether a recording may end before the search does.
enum class Unfinished { refused, accepted };

enum class KeepCandidates { no, yes };

/// An observer that fills `search`, which must outlive it.
SearchObserver collect_into(ReplayedSearch& search, KeepCandidates keep);

/// Exact replay: the search runs with the recorded replies and evaluations, and the events that it
/// makes are compared with the file's, byte for byte. A recording whose evaluations contradict
/// themselves is a bad file, named line by line. Needs neither a GPU nor a model. An
/// unfinished recording, where it is accepted, is compared as far as it goes; so is one that a
/// search is writing.
Replay replay_exactly(const std::filesystem::path& trajectory,
                      KeepCandidates keep = KeepCandidates::no,
                      Unfinished unfinished = Unfinished::refused);

/// The same replay for whoever keeps other things of it: the observer is made once the header is
/// known, and sees the search as it goes, so that memory does not grow with candidates. Of the
/// result, `search` has the header, the end and the number of events alone. What the observer saw
/// counts only if there is no interruption.
Replay replay_observed(const std::filesystem::path& trajectory,
                       const std::function<SearchObserver(const Header&)>& make_observer,
                       Unfinished unfinished = Unfinished::refused);

/// A round whose survivors would be others with today's verdicts and times.
struct ChangedChoice {
  int round = 0;
  std::vector<std::string> recorded;
  std::vector<std::string> today;
};

/// The recorded candidates, judged and timed again.
struct Remeasurement {
  std::vector<std::optional<Outcome>> today;  ///< by candidate; nothing where the reply held none
  std::vector<std::string> devices;           ///< where, by candidate
  std::vector<ChangedChoice> changed;
};

/// Runs every candidate that the replay kept through the evaluator. `progress` is called after
/// each.
std::optional<Interruption> measure_again(const ReplayedSearch& search, Evaluator& evaluator,
                                          const std::function<void(std::size_t done)>& progress,
                                          Remeasurement& result);

/// Every trajectories/*.jsonl below `root`, sorted.
std::vector<std::filesystem::path> recorded_trajectories(const std::filesystem::path& root);
/// The file that a user names: a path that exists or looks like one, else trajectories/NAME.jsonl.
std::filesystem::path trajectory_path(const std::filesystem::path& root, const std::string& name);

}  // namespace rekernel
