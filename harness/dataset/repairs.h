#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "harness/dataset/round_memory.h"

namespace rekernel {

/// A failure and what repaired it.
struct Repair {
  std::string failed_name;
  std::string repaired_name;
  std::vector<std::string> content;  ///< what its id is made of
  int round = 0;                     ///< in which it was repaired
  boost::json::object columns;
};

/// Finds repairs while a search goes on:
/// - `asked_again`: a reply that could not be used, and the next one to the same request;
/// - `same_idea`: a candidate that failed, and the best of the same idea in the same round that
///   passed; neither knew of the other;
/// - `later_round`: a candidate that failed, and the one of a later round, whose prompt told of the
///   failure, that passed and is most like it in code (similarity() of at least 0.5).
/// A failure waits three rounds for the last, so that memory does not grow with failures.
class Repairs {
 public:
  static constexpr double least_similarity = 0.5;
  static constexpr int rounds_of_waiting = 3;

  std::vector<Repair> in_round(const RoundMemory& round);

 private:
  /// A failure whose mending may still come. Of its round, nothing is left.
  struct Waiting {
    KeptCandidate candidate;
    std::string reply;
    int rounds_left = rounds_of_waiting;
  };
  std::vector<Waiting> waiting_;
};

}  // namespace rekernel
