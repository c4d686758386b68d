#include "harness/jobs/node_record.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(NodeRecord, CountsFailuresSinceTheLastSuccess) {
  NodeRecord nodes;
  EXPECT_FALSE(nodes.note_failure("n1"));
  EXPECT_FALSE(nodes.note_failure("n2"));
  nodes.note_success("n1");
  EXPECT_FALSE(nodes.note_failure("n1"));
  EXPECT_TRUE(nodes.note_failure("n1"));
  EXPECT_TRUE(nodes.note_failure("n2"));
}

TEST(NodeRecord, ExcludesANodeOnce) {
  NodeRecord nodes;
  EXPECT_FALSE(nodes.exclude("", "a job that tells no node"));
  EXPECT_TRUE(nodes.exclude("n2", "its GPU throttles"));
  EXPECT_FALSE(nodes.exclude("n2", "another reason"));
  EXPECT_TRUE(nodes.exclude("n1", "no folder"));
  EXPECT_EQ(nodes.excluded_names(), (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(nodes.excluded().at("n2"), "its GPU throttles");
}

}  // namespace
}  // namespace rekernel
