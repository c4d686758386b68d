#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <string>
#include <vector>

#include "replay/search/in_turn.h"
#include "replay/search/recording.h"
#include "replay/search/surroundings.h"
#include "replay/search/wave.h"
#include "replay/trajectory/outcome.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

/// Gets evaluations of candidates and records them: those in the trajectory come first, then those
/// that a killed run had already got, then those that the evaluator is asked for.
class EvaluationCollector {
 public:
  /// Called for each candidate, in their order, with its recorded event.
  using Taken = std::function<void(const WaveItem& item, const Outcome& outcome,
                                   const boost::json::object& event)>;

  /// All but `problem` must outlive it.
  EvaluationCollector(const std::string& problem, const Settings& settings,
                      const SearchSurroundings& around, SearchRecord& recording)
      : problem_(problem), settings_(settings), around_(around), recording_(recording) {}

  /// Those that come too early wait in the journal. `title` begins what is said of progress.
  void collect(const std::string& title, const std::vector<WaveItem>& wave, const Taken& taken);

 private:
  void ask(const std::string& title, const std::vector<WaveItem>& wave,
           const std::vector<std::size_t>& missing, InTurn<boost::json::object>& turn);
  void refuse_other_gpu(const std::string& id, const std::string& device);
  void put(const WaveItem& item, const boost::json::object& record, const Taken& taken);

  std::string problem_;
  const Settings& settings_;
  const SearchSurroundings& around_;
  SearchRecord& recording_;
  std::string device_;  ///< that the first times are of
};

}  // namespace rekernel
