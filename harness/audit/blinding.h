#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "harness/evaluation/report.h"
#include "ops/problem.h"

namespace rekernel {

/// Can a kernel tell what its runs are for? A candidate that computes nothing and writes what it
/// can count and see into the beginning of its output: launches since it was loaded, times since
/// the last run of its process, clocks, the first words of output and workspace before it wrote
/// them, how long the first accesses to memory and to code take, addresses. Not the values of
/// inputs, which alone may differ. For problems with an FP32 or FP16 output of at least 64 words.
Candidate observing_candidate(const Problem& problem);

/// What that kernel's words mean, in their order.
const std::vector<std::string>& observed_features();

/// How well a classifier tells two kinds of runs apart: the mean of both kinds' shares of runs that
/// it names rightly, without having learnt from them. 0.5 is guessing.
struct Separation {
  std::string question;  ///< "timed or stress"
  int first = 0;         ///< runs of the first kind
  int second = 0;
  double balanced_accuracy = 0.5;
  double low = 0;  ///< its 95% interval
  double high = 1;
  std::string telling;  ///< the feature that the classifier used most

  bool can_tell() const { return low > 0.5; }
};

/// A random forest (L. Breiman, 2001): each tree learns from a sample of runs, of each kind as
/// many, and votes for those that it did not learn from. The interval is the normal one of two
/// independent shares. The same runs give the same figures. Neither may be empty.
Separation separate(const std::string& question, const std::vector<std::vector<double>>& first,
                    const std::vector<std::vector<double>>& second,
                    const std::vector<std::string>& features);

/// All questions that the runs of a verdict raise: timed or repeat, timed or stress, judged or not.
std::vector<Separation> separations(const std::vector<Sighting>& sightings);

}  // namespace rekernel
