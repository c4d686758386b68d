#include "replay/model/recorded_model.h"

#include <gtest/gtest.h>

#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::FakeEvaluator;
using testing::run_on_file;
using testing::small_header;

TEST(RecordedModelFile, AnswersWithTheSameWords) {
  TemporaryFolder folder;
  testing::recorded_search(folder / "old.jsonl", small_header(2));
  const auto model = RecordedModel::load(folder / "old.jsonl");
  ASSERT_TRUE(model) << model.error().message;
  FakeEvaluator evaluator(5);
  Header header = small_header(2);
  header.notes = "once more";
  const SearchEnd end = run_on_file(folder / "new.jsonl", header, **model, evaluator);
  ASSERT_FALSE(end.interruption) << end.interruption->message;
  header = small_header(3);
  const SearchEnd longer = run_on_file(folder / "longer.jsonl", header, **model, evaluator);
  ASSERT_TRUE(longer.interruption);
  EXPECT_TRUE(longer.interruption->message.ends_with("holds no reply to r3.ideas"));
}

}  // namespace
}  // namespace rekernel
