#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "replay/search/surroundings.h"
#include "replay/trajectory/interruption.h"
#include "replay/trajectory/pending_journal.h"
#include "replay/trajectory/settings.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

/// A search's trajectory and journal as the search goes through them: recorded events first, then
/// new ones. It holds how the search ends as well: once it was interrupted or has ended, nothing
/// more is put.
class SearchRecord {
 public:
  /// `journal` is null where a search is only replayed. `models` are the header's.
  SearchRecord(Trajectory& trajectory, PendingJournal* journal, std::vector<ModelSettings> models);

  bool going() const { return !interruption_ && end_reason_.empty(); }
  /// The first interruption counts.
  void interrupt(Interruption interruption);
  void end(const std::string& reason, const std::string& note);
  /// The search is over: how it ended. The journal goes unless it was interrupted.
  SearchEnd close();

  void put(const boost::json::object& event);
  /// Puts an evaluation's event: the recorded one where `recorded`. False: the search is
  /// interrupted.
  bool put_evaluation(const boost::json::object& event, bool recorded);
  /// The next recorded event of the search itself; nullptr when there is none or something went
  /// wrong. Events `endpoints`, which change nothing of the search, are passed.
  const boost::json::object* next();
  /// The next recorded event, which must be of this kind and id if there is one.
  const boost::json::object* next(const std::string& event, const std::string& id);
  /// The value that a recorded event is, if this is the event that next() gave.
  const boost::json::value* recorded_value(const boost::json::object& event) const;
  /// Ends the search since the next recorded event is not this one.
  void refuse_next(const std::string& expected_title);
  /// Where the next event stands, for messages.
  std::string where() const;

  /// Records how the models are asked from now on, unless that is recorded already.
  void note_endpoints(const std::vector<ModelSettings>& endpoints);

  /// What the journal holds of a reply or an evaluation. An entry counts only if it belongs to the
  /// same prompt or candidate, whose hash its member `key` is.
  const boost::json::object* pending(const char* event, const std::string& id, const char* key,
                                     const std::string& hash, int attempt = 0) const;
  void add_pending(const boost::json::object& entry);
  /// All of the journal is in the trajectory, or no longer needed.
  void forget_pending();

 private:
  void pass_endpoints(const boost::json::object& event);
  void put_endpoints(const std::vector<ModelSettings>& endpoints);

  Trajectory& trajectory_;
  PendingJournal* journal_;
  const std::vector<ModelSettings> models_;
  std::vector<ModelSettings> endpoints_;  ///< as far as they are recorded
  std::optional<Interruption> interruption_;
  std::string end_reason_;
  std::string end_note_;
};

}  // namespace rekernel
