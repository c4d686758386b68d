#include "harness/jobs/submission_pace.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

using std::chrono::milliseconds;
using When = SubmissionPace::Next::When;

const SubmissionPace::Clock::time_point start{std::chrono::hours(1)};

TEST(SubmissionPace, WaitsLongerAfterEachRefusalUntilASuccess) {
  SubmissionPace pace(milliseconds(5), milliseconds(15));
  EXPECT_TRUE(pace.is_due(start));
  for (const int expected : {5, 10, 15, 15}) {
    const auto next = pace.note_refusal(SlurmRefusal::unreachable, 1, start);
    EXPECT_EQ(next.when, When::later);
    EXPECT_EQ(next.pause, milliseconds(expected));
    EXPECT_FALSE(pace.is_due(start + next.pause - milliseconds(1)));
    EXPECT_TRUE(pace.is_due(start + next.pause));
  }
  pace.note_success();
  EXPECT_EQ(pace.note_refusal(SlurmRefusal::full, 1, start).pause, milliseconds(5));
}

TEST(SubmissionPace, SubmitsFewerWhereTheQueueIsFullAndMoreAfterwards) {
  SubmissionPace pace(milliseconds(5), milliseconds(15));
  EXPECT_EQ(pace.most_tasks(), 100u);
  EXPECT_EQ(pace.note_refusal(SlurmRefusal::full, 40, start).when, When::later);
  EXPECT_EQ(pace.most_tasks(), 20u);
  for (const std::size_t expected : {40u, 80u, 100u}) {
    pace.note_success();
    EXPECT_EQ(pace.most_tasks(), expected);
  }
  EXPECT_EQ(pace.note_refusal(SlurmRefusal::full, 1, start).when, When::later);
  EXPECT_EQ(pace.most_tasks(), 1u) << "one job is always tried";
}

TEST(SubmissionPace, KeepsToTheLargestArrayThatSlurmTakes) {
  SubmissionPace pace(milliseconds(5), milliseconds(15));
  EXPECT_EQ(pace.note_refusal(SlurmRefusal::array, 100, start).when, When::at_once);
  EXPECT_EQ(pace.note_refusal(SlurmRefusal::array, 50, start).when, When::at_once);
  EXPECT_TRUE(pace.is_due(start));
  pace.note_success();
  EXPECT_EQ(pace.most_tasks(), 25u);
}

TEST(SubmissionPace, EndsAfterRefusalsThatLookFinal) {
  SubmissionPace pace(milliseconds(5), milliseconds(15));
  const auto refuse = [&](SlurmRefusal refusal) {
    return pace.note_refusal(refusal, 1, start).when;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refuse(SlurmRefusal::permanent), When::later) << i;
  pace.note_success();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refuse(SlurmRefusal::array), When::later) << i;
  EXPECT_EQ(refuse(SlurmRefusal::full), When::later) << "which says nothing final";
  EXPECT_EQ(refuse(SlurmRefusal::permanent), When::never);
}

}  // namespace
}  // namespace rekernel
