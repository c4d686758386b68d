#pragma once

#include <boost/json/fwd.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replay/search/prompt.h"
#include "replay/search/selection.h"
#include "replay/search/wave.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/outcome.h"
#include "replay/trajectory/profile_record.h"

namespace rekernel {

/// A candidate that a prompt shows.
struct ShownCandidate {
  std::string id;
  std::shared_ptr<const Candidate> candidate;
};

/// What a search remembers of its candidates: how each fared, which were correct, and the sources
/// that a later prompt can show, so that memory does not grow with rounds.
class CandidateMemory {
 public:
  /// `header` must outlive it.
  explicit CandidateMemory(const Header& header)
      : header_(header), history_(most_prompt_bytes(header.settings)) {}

  /// Sources that these plans show are kept until their rounds.
  void expect(const std::vector<RoundPlan>& plans);
  /// A candidate whose evaluation is this event. Where GPUs differ, prompts name its own.
  void add(int round, const WaveItem& item, const Outcome& outcome,
           const boost::json::object& event, bool gpus_differ);
  /// What is kept now are the seeds, which can be shown at any time.
  void keep_as_seeds() { seeds_ = kept_; }
  /// Chooses what the next round starts from, and forgets the sources that no prompt shows.
  const Selection& select(const Settings& settings, int round);

  /// The correct candidates that a prompt of the round shows and that have no profile yet, in its
  /// order.
  std::vector<ShownCandidate> without_profile(const Settings& settings, int round) const;
  void add_profile(const std::string& id, const ProfileRecord& profile);

  /// A plan made after a stop can show what is still remembered, and the seeds. `where` is of the
  /// plan, for the error.
  Result<Ok> find_parents(const RoundPlan& plan, const std::string& where);
  /// What a prompt of the round shows. Points into this object.
  PromptParts prompt_parts(const Settings& settings, int round);

 private:
  struct Kept {
    std::string caption;
    std::shared_ptr<const Candidate> candidate;
    bool passed = false;
    std::string plan;  ///< candidate_json, once it was shown
  };

  std::vector<std::string> parents(const Settings& settings, int round) const;
  std::vector<ShownKernel> shown(const std::vector<std::string>& ids);
  void forget_sources(int round);

  const Header& header_;
  PromptHistory history_;
  std::vector<Ranked> correct_;  ///< those that can still be chosen
  Selection selection_;
  std::map<std::string, Kept> kept_;
  std::map<std::string, std::string> profiles_;  ///< of what is kept, as prompts show them
  std::map<std::string, Kept> seeds_;            ///< the correct ones
  std::map<std::string, int> needed_until_;      ///< last round whose plan names this candidate
};

}  // namespace rekernel
