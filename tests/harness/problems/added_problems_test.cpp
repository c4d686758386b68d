// Problems that lie in no project: how they become known, here and in another process.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/base/fields.h"
#include "harness/base/judging_sources.h"
#include "harness/candidate/code.h"
#include "harness/evaluation/request.h"
#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

std::string text_of(const std::string& id, const std::string& factor) {
  return R"({"schema": 1, "id": ")" + id +
         R"(", "title": "scaled, FP32", "axes": {"rows": 8, "columns": 16},
  "inputs": {"x": {"dtype": "f32", "shape": ["rows", "columns"], "draw": {"normal": [0, 1]}}},
  "outputs": {"y": {"dtype": "f32", "shape": ["rows", "columns"]}},
  "definition": ["y[i, j] = )" +
         factor + R"( * x[i, j]"], "pytorch": ")" + factor + R"( * x", "tolerance": "fp32"})";
}

class AddedProblems : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_.path() / name;
    std::ofstream(path) << text;
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(AddedProblems, AreFoundByTheIdInTheirFile) {
  EXPECT_EQ(find_problem("added_twice"), nullptr);
  const auto added = add_problems(write("any-name.json", text_of("added_twice", "2")));
  ASSERT_TRUE(added.ok()) << added.error().message;
  ASSERT_EQ(added->size(), 1u);
  EXPECT_EQ(find_problem("added_twice"), added->front());
  EXPECT_TRUE(is_strangers(*added->front()));
  EXPECT_FALSE(is_strangers(*find_problem("softmax")));
  EXPECT_EQ(digest_of_problem("added_twice"), problem_digest(text_of("added_twice", "2")));
  EXPECT_EQ(digest_of_problem("no_such_problem"), std::string(16, '0'));
}

TEST_F(AddedProblems, OfAFolderAreAllAdded) {
  write("one.json", text_of("added_one", "3"));
  write("two.json", text_of("added_two", "4"));
  write("notes.txt", "no problem");
  const auto added = add_problems(folder_.path());
  ASSERT_TRUE(added.ok()) << added.error().message;
  EXPECT_EQ(added->size(), 2u);
  EXPECT_NE(find_problem("added_one"), nullptr);
  EXPECT_NE(find_problem("added_two"), nullptr);
}

TEST_F(AddedProblems, OfTheProjectAreTakenFromIt) {
  const auto added = add_problems(write("copy.json", find_problem("softmax")->text));
  ASSERT_TRUE(added.ok()) << added.error().message;
  EXPECT_EQ(added->front(), find_problem("softmax"));
  EXPECT_EQ(added->front()->group, published_group);
}

TEST_F(AddedProblems, DoNotTakeTheIdOfAnother) {
  const fs::path file = write("clash.json", text_of("relu", "2"));
  const auto clash = add_problems(file);
  ASSERT_FALSE(clash.ok());
  EXPECT_EQ(clash.error().message.find(file.string() + ": id: 'relu' is another problem of "), 0u)
      << clash.error().message;
  ASSERT_TRUE(add_problems(write("a.json", text_of("added_clash", "2"))).ok());
  ASSERT_TRUE(add_problems(write("b.json", text_of("added_clash", "2"))).ok());
  EXPECT_FALSE(add_problems(write("c.json", text_of("added_clash", "3"))).ok());
}

TEST_F(AddedProblems, ThatAreNoneAreRefusedInOneLine) {
  const auto refused = [](const fs::path& path) {
    const auto added = add_problems(path);
    const std::string message = added ? "" : added.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  };
  EXPECT_NE(refused(folder_.path() / "none.json").find("No such file"), std::string::npos);
  EXPECT_NE(refused(folder_.path()).find("expected problems' files"), std::string::npos);
  EXPECT_NE(refused(write("half.json", "{\"schema\": 1,")).find("half.json"), std::string::npos);
  EXPECT_NE(refused(write("model.py", "class Model: pass")).find("rekernel problem import"),
            std::string::npos);
  std::string wrong = text_of("added_wrong", "2");
  wrong.replace(wrong.find("x[i, j]"), 7, "z[i, j]");
  EXPECT_NE(refused(write("wrong.json", wrong)).find("column"), std::string::npos);
}

TEST_F(AddedProblems, TravelWithARequest) {
  ASSERT_TRUE(add_problems(write("sent.json", text_of("added_sent", "2"))).ok());
  const Problem& sent = *find_problem("added_sent");
  const std::string request =
      evaluation_request(scaffold_candidate(sent, "mine"), EvaluateOptions{});
  // Another process knows nothing of it: here, a problem of this id that says something else.
  const std::string other = text_of("added_sent", "5");
  ASSERT_TRUE(
      adopt_problem(joined_fields({"added_sent", sent.group, other}), "another process").ok());
  ASSERT_EQ(find_problem("added_sent")->text, other);
  const Result<RequestedEvaluation> read = read_evaluation_request(request, "request");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(find_problem("added_sent")->text, sent.text);
  EXPECT_EQ(find_problem("added_sent")->formula, sent.formula);
}

TEST_F(AddedProblems, ThatArriveInPiecesAreRefused) {
  EXPECT_FALSE(adopt_problem("", "request").ok());
  EXPECT_FALSE(adopt_problem(joined_fields({"id", "group"}), "request").ok());
  const auto broken = adopt_problem(joined_fields({"id", "group", "{"}), "request");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message.find("request: problem id"), 0u) << broken.error().message;
}

}  // namespace
}  // namespace rekernel
