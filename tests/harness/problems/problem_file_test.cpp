// What the reader of problem files makes of good ones, and says of bad ones.
#include "harness/problems/problem_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/files.h"

namespace rekernel {
namespace {

const std::string rmsnorm = R"json({
  "schema": 1,
  "id": "own",
  "title": "RMS norm",
  "axes": {"batch": 2, "channels": 3, "part": "(channels + 1) // 2"},
  "other_sizes": {"batch": [1, 4], "channels": [1, 6]},
  "constraints": ["channels >= part"],
  "constants": {"eps": 1e-5, "two": 2, "scale": "1 / sqrt(channels)"},
  "inputs": {
    "x": {"dtype": "f32", "shape": ["batch", "channels"], "draw": {"normal": [0, 1]}},
    "label": {"dtype": "i64", "shape": ["batch"], "draw": {"integers": [0, "channels"]}}
  },
  "outputs": {"y": {"dtype": "f32", "shape": ["batch", "channels"]}},
  "definition": [
    "mean[b] = sum(c) x[b, c]^two / channels + 0 * x[b, label[b]]",
    ["y[b, c] = x[b, c]",
     "/ sqrt(mean[b] + eps) + 0 * scale * part"]
  ],
  "pytorch": "x",
  "tolerance": "fp32"
}
)json";

Result<Problem> read(const std::string& text, const Sizes& sizes = {}) {
  return parse_problem(text, "own.json", "own", "tests", sizes);
}

/// The good file with one part replaced.
std::string with(const std::string& part, const std::string& by) {
  std::string text = rmsnorm;
  const std::size_t at = text.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return text.replace(at, part.size(), by);
}

std::string message(const std::string& text) {
  const Result<Problem> problem = read(text);
  return problem ? "taken" : problem.error().message;
}

/// A sum of `count` inputs.
std::string with_inputs(int count) {
  std::string inputs, sum;
  for (int i = 0; i < count; ++i) {
    const std::string name = "x" + std::to_string(i);
    inputs += (i == 0 ? "\"" : ", \"") + name +
              R"json(": {"dtype": "f32", "shape": ["rows"], "draw": {"normal": [0, 1]}})json";
    sum += (i == 0 ? "" : " + ") + name + "[i]";
  }
  return R"json({"schema": 1, "id": "own", "title": "a sum", "axes": {"rows": 4}, "inputs": {)json" +
         inputs + R"json(}, "outputs": {"y": {"dtype": "f32", "shape": ["rows"]}},
           "definition": ["y[i] = )json" +
         sum + R"json("], "pytorch": "x0", "tolerance": "fp32"})json";
}

TEST(ProblemFile, TheParametersOfANetworkAreInputs) {
  const Result<Problem> problem = read(with_inputs(180));
  ASSERT_TRUE(problem) << problem.error().message;
  EXPECT_EQ(problem->inputs().size(), 180u);
  EXPECT_EQ(message(with_inputs(181)), "own.json: inputs: expected at most 180 entries, got 181");
}

/// Two inputs of a program's forward(), and a parameter of its model.
const std::string program = R"json({
  "schema": 1, "id": "own", "title": "a network", "axes": {"rows": 4},
  "inputs": {
    "x": {"dtype": "f32", "shape": [4, 8], "draw": {"uniform": [0, 1]}},
    "order": {"dtype": "i64", "shape": [4], "draw": {"integers": [0, 4]}},
    "weight": {"dtype": "f32", "shape": [8], "draw": {"constant": 1}}
  },
  "outputs": {"y": {"dtype": "f32", "shape": [4, 8]}, "index": {"dtype": "i64", "shape": [4]}},
  "program": {"form": "kernelbench", "text": "import torch\n\nclass Model: pass\n",
              "arguments": ["x", null, "order"], "parameters": {"weight": "norm.weight"},
              "draws": ["order"]},
  "tolerance": "fp32"
}
)json";

TEST(ProblemFile, AProgramMayStandInPlaceOfADefinition) {
  const Result<Problem> problem = read(program);
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  ASSERT_TRUE(problem->program);
  EXPECT_EQ(problem->formula, (std::vector<std::string>{"import torch", "", "class Model: pass"}));
  EXPECT_TRUE(problem->find_tensor("order")->is_made);
  EXPECT_FALSE(problem->find_tensor("x")->is_made);
  EXPECT_EQ(problem->find_tensor("index")->comparison, Comparison::equal);
  // Nobody knows what it reads: what it writes is certain.
  EXPECT_EQ(problem->least_bytes, 4 * 8 * 4 + 4 * 8);
  EXPECT_EQ(problem->operations, 0);
  EXPECT_EQ(problem->pytorch, "");
  ASSERT_EQ(problem->scaffold.steps.size(), 1u);
  EXPECT_EQ(std::get<KernelLaunch>(problem->scaffold.steps[0]).args.size(), 5u);
  EXPECT_NE(problem->scaffold.source.find("const long long* __restrict__ order"),
            std::string::npos);
}

TEST(ProblemFile, SaysWhatDoesNotGoTogetherInAProgram) {
  const auto changed = [](const std::string& part, const std::string& by) {
    std::string text = program;
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return message(text.replace(at, part.size(), by));
  };
  const auto says = [&](const std::string& part, const std::string& by, const std::string& what) {
    const std::string said = changed(part, by);
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  says("\"kernelbench\"", "\"pytorch\"", "expected 'kernelbench' or 'flashinfer'");
  says("[\"x\", null", "[\"z\", null", "is no input");
  says("[\"x\", null", "[\"order\", null", "is there already");
  says("null, \"order\"", "null", "expected an input that is an argument");
  says("{\"weight\": \"norm.weight\"}", "{}", "leaves out the input 'weight'");
  says("{\"weight\": \"norm", "{\"order\": \"norm", "expected an input that is no argument");
  says("\"draws\": [\"order\"]", "\"draws\": [\"weight\"]",
       "expected an input that is an argument");
  says("\"tolerance\"", "\"pytorch\": \"x\", \"tolerance\"", "does not go with a program");
  says("\"tolerance\"", "\"other_sizes\": {\"rows\": [1, 4]}, \"tolerance\"",
       "does not go with a program");
  // Four integers of 64 bits, all zero.
  const std::string zeros = "\"" + std::string(43, 'A') + "=\"";
  EXPECT_EQ(changed("\"draws\": [\"order\"]", "\"values\": {\"order\": " + zeros + "}"), "taken");
  says("\"draws\": [\"order\"]", "\"values\": {\"order\": \"AAAA\"}",
       "expected base64 of 32 bytes");
  says("\"draws\": [\"order\"]", "\"values\": {\"x\": " + zeros + "}",
       "goes with inputs of integers");
  says("\"draws\": [\"order\"]", "\"values\": {\"weight\": " + zeros + "}",
       "expected an input that is an argument and is not drawn");
  says("[\"order\"]}", "[\"order\"], \"values\": {\"order\": " + zeros + "}}",
       "expected an input that is an argument and is not drawn");
  says("\"kernelbench\"", "\"flashinfer\"", "the key \"numbers\" is missing");
}

TEST(ProblemFile, HasWhatItSays) {
  const Result<Problem> problem = read(rmsnorm);
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  EXPECT_EQ(problem->id, "own");
  EXPECT_EQ(problem->group, "tests");
  EXPECT_EQ(problem->text, rmsnorm);
  EXPECT_EQ(problem->attribute("part"), 2);
  EXPECT_EQ(problem->attribute("two"), 2);
  EXPECT_DOUBLE_EQ(problem->real_attribute("eps"), 1e-5);
  EXPECT_EQ(problem->formula.size(), 2u);
  EXPECT_EQ(problem->inputs().size(), 2u);
  EXPECT_EQ(problem->outputs().size(), 1u);
  EXPECT_EQ(problem->find_tensor("label")->distribution.b, 3);
  EXPECT_EQ(problem->min_bytes, 2 * 3 * 4 * 2 + 2 * 8);
  EXPECT_GE(problem->stress_cases.size(), 4u);
  EXPECT_EQ(problem->tolerance.rms_error_over_rms, 2e-5);
  const HostInputs outputs = problem->host_oracle({{"x", {1, 2, 2, 0, 3, 0}}, {"label", {0, 2}}});
  EXPECT_NEAR(outputs.at("y")[0], 1 / std::sqrt(3 + 1e-5), 1e-15);
}

TEST(ProblemFile, OtherSizesAreThoseOfItsAxes) {
  const Result<Problem> problem = read(rmsnorm);
  ASSERT_TRUE(problem.ok());
  const Result<Problem> other = problem_at(*problem, {{"channels", 5}});
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(other->attribute("part"), 3);
  EXPECT_EQ(other->find_tensor("x")->shape, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(problem_at(*problem, {{"part", 5}}).error().message,
            "own: axes: has no size 'part' that could be another: expected one of those given "
            "as integers");
}

TEST(ProblemFile, ThePagesExampleIsAProblem) {
  const Result<std::string> page = read_file(REKERNEL_SOURCE_DIR "/ops/problems/README.md");
  ASSERT_TRUE(page.ok()) << page.error().message;
  const std::size_t begin = page->find("```json\n") + 8;
  const std::string example = page->substr(begin, page->find("```", begin) - begin);
  const Result<Problem> problem = parse_problem(example, "page", "rmsnorm", "tests");
  EXPECT_TRUE(problem.ok()) << problem.error().message;
  EXPECT_LE(std::count(example.begin(), example.end(), '\n'), 25);
}

TEST(ProblemFile, StatementsErrorsHaveLineAndColumn) {
  EXPECT_EQ(message(with("0 * x[b, label", "0 * z[b, label")),
            "own.json: definition[0]: line 15, column 52: no tensor is called 'z': expected "
            "one that is defined before");
}

struct Bad {
  std::string part;
  std::string by;
  std::string message;
};

TEST(ProblemFile, BadFilesAreNamedWithPlaceAndReason) {
  const std::vector<Bad> table = {
      {"\"schema\": 1", "\"schema\": 2",
       "own.json: schema: expected an integer from 1 to 1, got 2"},
      {"\"id\": \"own\"", "\"id\": \"another\"",
       "own.json: id: expected 'own', as the file is called, got \"another\""},
      {"\"title\": \"RMS norm\",\n", "", "own.json: the key \"title\" is missing"},
      {"\"batch\": 2", "\"batch\": 0",
       "own.json: axes.batch: expected an integer from 1 to 1099511627776, got 0"},
      {"\"batch\": 2", "\"batch\": 2.5",
       "own.json: axes.batch: expected an integer, or an expression of earlier axes in quotes, got "
       "2.5"},
      {"\"batch\": 2", "\"batch\": \"x\"",
       "own.json: axes.batch: column 1: nothing is called 'x': expected an index, an axis, a "
       "constant or a tensor that is defined before"},
      {"\"batch\": 2", "\"batch\": \"1 / 2\"",
       "own.json: axes.batch: column 1: expected an integer, got a real"},
      {"\"batch\": 2", "\"batch\": 99999999999999",
       "own.json: axes.batch: expected an integer from 1 to 1099511627776, got 99999999999999"},
      {"\"batch\": 2", "\"for\": 2, \"batch\": 2",
       "own.json: axes.for: 'for' is a word of the language, of C++ or of Python: expected another "
       "name"},
      {"\"part\": \"(channels + 1) // 2\"", "\"part\": \"batch - 2\"",
       "own.json: axes.part: is 0: expected 1 to 1099511627776"},
      {"\"batch\": [1, 4]", "\"batch\": [4, 1]",
       "own.json: other_sizes.batch: expected the smaller size first"},
      {"\"batch\": [1, 4]", "\"depth\": [1, 4]",
       "own.json: other_sizes.depth: is no axis that is given as an integer"},
      {"\"batch\": [1, 4]", "\"part\": [1, 4]",
       "own.json: other_sizes.part: is no axis that is given as an integer"},
      {"\"channels >= part\"", "\"channels % 2 == 0\"",
       "own.json: constraints[0]: 'channels % 2 == 0' does not hold for these sizes"},
      {"\"channels >= part\"", "\"channels + part\"",
       "own.json: constraints[0]: column 1: expected a condition, got an integer"},
      {"\"eps\": 1e-5", "\"eps\": \"1 / (channels - 3)\"",
       "own.json: constants.eps: column 6: a division by an integer from 0 to 0, which may be 0"},
      {"\"eps\": 1e-5", "\"batch\": 1e-5",
       "own.json: constants.batch: 'batch' has a meaning already: expected another name"},
      {"\"eps\": 1e-5", "\"eps\": \"log(0)\"",
       "own.json: constants.eps: column 1: expected a finite number"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"f64\"",
       "own.json: inputs.x.dtype: expected one of f32, f16, bf16, f8e4m3, f8e5m2, i8, i32, i64, "
       "bool, got \"f64\""},
      {"[\"batch\", \"channels\"], \"draw\"", "[\"batch\", \"rows\"], \"draw\"",
       "own.json: inputs.x.shape[1]: column 1: nothing is called 'rows': expected an index, an "
       "axis, a constant or a tensor that is defined before"},
      {"[\"batch\", \"channels\"], \"draw\"", "[\"batch\", \"channels - 3\"], \"draw\"",
       "own.json: inputs.x.shape[1]: makes 0 of it: expected extents from 1 up, and at most "
       "1099511627776 elements"},
      {"[\"batch\", \"channels\"], \"draw\"", "[1099511627776, 2], \"draw\"",
       "own.json: inputs.x.shape[1]: makes 2 of it: expected extents from 1 up, and at most "
       "1099511627776 elements"},
      {"{\"normal\": [0, 1]}", "{\"normal\": [0, 1]}, \"read_share\": \"channels\"",
       "own.json: inputs.x.read_share: expected a share above 0 and up to 1, got \"channels\""},
      {"{\"normal\": [0, 1]}", "{\"normal\": [0, -1]}",
       "own.json: inputs.x.draw.normal: expected a deviation of at least 0"},
      {"{\"normal\": [0, 1]}", "{\"gamma\": [0, 1]}",
       "own.json: inputs.x.draw: expected 'normal', 'uniform', 'constant', 'choice' or 'integers', "
       "got {\"gamma\": [0, 1]}"},
      {"{\"normal\": [0, 1]}", "{\"normal\": [0]}",
       "own.json: inputs.x.draw.normal: expected 2 entries, got 1"},
      {"{\"integers\": [0, \"channels\"]}", "{\"normal\": [0, 1]}",
       "own.json: inputs.label.draw.normal: is for floating-point types: expected 'integers' or "
       "'choice'"},
      {"{\"integers\": [0, \"channels\"]}", "{\"integers\": [3, \"channels\"]}",
       "own.json: inputs.label.draw.integers: expected integers from -2^24 to 2^24, the end larger "
       "than the first"},
      {"{\"integers\": [0, \"channels\"]}", "{\"integers\": [0, \"channels + 1\"]}",
       "own.json: definition[0]: line 15, column 57: 'x' is read from 0 to 3 of dimension 2: "
       "expected 0 to 2, or 'else' and what is read outside"},
      {"{\"integers\": [0, \"channels\"]}", "{\"choice\": [0.5]}",
       "own.json: inputs.label.draw.choice: has a value that is no i64"},
      {"sum(c) x[b, c]^two", "sum(c < 1000000000000) sum(d < 10000) x[b, 0]^two",
       "own.json: definition[0]: takes 60002e12 operations: expected at most 1e14"},
      {"\"mean[b] = sum(c)", "\"mean[b] = sum(k)",
       "own.json: definition[0]: line 15, column 20: index 'k' stands alone in no read: expected "
       "an end ('k < …')"},
      {"^two / channels", "^two / (b - 1)",
       "own.json: definition[0]: line 15, column 38: a division by an integer from -1 to 0, which "
       "may be 0"},
      {"\"y[b, c] = x[b, c]\"", "\"y[b, c] = y2[b, c]\"",
       "own.json: definition[1]: line 16, column 17: no tensor is called 'y2': expected one that "
       "is defined before"},
      {"\"y\": {\"dtype\": \"f32\"", "\"y\": {\"dtype\": \"i32\"",
       "own.json: definition[1]: line 16, column 7: 'y' has type i32: expected integers on the "
       "right, got reals"},
      {"\"y\": {\"dtype\": \"f32\"", "\"x\": {\"dtype\": \"f32\"",
       "own.json: outputs.x: 'x' has a meaning already: expected another name"},
      {"\"mean[b] = sum(c) x[b, c]^two / channels + 0 * x[b, label[b]]\"", "[]",
       "own.json: definition[0]: expected a statement, or a list of the strings that make one, got "
       "[]"},
      {"\"tolerance\": \"fp32\"", "\"tolerance\": \"fp64\"",
       "own.json: tolerance: expected 'fp32', 'fp16', 'bf16', 'fp8' or 'exact', got \"fp64\""},
      {"\"tolerance\": \"fp32\"",
       "\"tolerance\": {\"class\": \"fp32\", \"rms\": 2, \"why\": \"so\"}",
       "own.json: tolerance.rms: expected a number above 0, at most 1, got 2"},
      {"\"tolerance\": \"fp32\"", "\"tolerance\": {\"class\": \"fp32\", \"rms\": 0.1}",
       "own.json: tolerance: the key \"why\" is missing"},
      {"\"tolerance\": \"fp32\"", "\"tolerance\": \"fp32\", \"row\": [\"batch\"]",
       "own.json: row: expected the last axes of 'x', got [\"batch\"]"},
      {"\"tolerance\": \"fp32\"",
       "\"tolerance\": \"fp32\", \"stress\": {\"one\": {\"w\": {\"constant\": 1}}}",
       "own.json: stress.one.w: is no input"},
      {"\"tolerance\": \"fp32\"",
       "\"tolerance\": \"fp32\", \"invariants\": [{\"name\": \"n\", \"violation\": \"v[i] = "
       "z[i]\", \"bound\": 1}]",
       "own.json: invariants[0].violation: line 20, column 69: index 'i' stands alone in no read: "
       "expected an end ('i < …')"},
      {"\"tolerance\": \"fp32\"",
       "\"tolerance\": \"fp32\", \"invariants\": [{\"name\": \"n\", \"violation\": \"v[i, j] = "
       "truth_y[i, j] - y[i, j]\", \"bound\": -1}]",
       "own.json: invariants[0].bound: expected a number of at least 0, got -1"},
      {"\"tolerance\": \"fp32\"", "\"tolerance\": \"fp32\", \"speed\": 1",
       "own.json: unknown key \"speed\"; known: schema, id, title, source, axes, other_sizes, "
       "constraints, constants, inputs, outputs, program, made, definition, tolerance, row, "
       "stress, invariants, pytorch"},
      {"\"pytorch\": \"x\"", "\"pytorch\": \"\"", "own.json: pytorch: expected an expression"},
  };
  for (const Bad& bad : table) {
    EXPECT_EQ(message(with(bad.part, bad.by)), bad.message) << bad.by;
  }
}

TEST(ProblemFile, HostileFilesAreRefused) {
  EXPECT_NE(message(std::string(100000, '[')), "taken");
  EXPECT_NE(message(""), "taken");
  EXPECT_NE(message("[]"), "taken");
  EXPECT_NE(message(rmsnorm.substr(0, rmsnorm.size() / 2)), "taken");
  EXPECT_NE(message(with("\"mean[b] =", "\"mean[b] = " + std::string(70000, '1'))), "taken");
  std::string axes = "\"axes\": {";
  for (int i = 0; i < 100; ++i) axes += "\"a" + std::to_string(i) + "\": 1, ";
  EXPECT_NE(message(with("\"axes\": {", axes)), "taken");
}

TEST(ProblemFile, MadeInputsAreRoundedAndReadInPlace) {
  const std::string made = with("\"outputs\"", R"json("made": [
    "total[b] = sum(c) abs(x[b, c])",
    "x[b, c] = where(c <= b, x[b, c] / total[b], 0)"
  ],
  "outputs")json");
  const Result<Problem> problem = read(made);
  ASSERT_TRUE(problem.ok()) << problem.error().message;
  EXPECT_TRUE(problem->find_tensor("x")->is_made);
  EXPECT_FALSE(problem->find_tensor("label")->is_made);
  EXPECT_FALSE(problem->making.steps.empty());
  const HostInputs inputs = problem->made({{"x", {1, 1, 1, 3, 1, 2}}, {"label", {0, 1}}});
  EXPECT_EQ(inputs.at("x"), (std::vector<double>{static_cast<double>(1.0f / 3), 0, 0, 0.5,
                                                 static_cast<double>(1.0f / 6), 0}));
  EXPECT_EQ(inputs.at("label"), (std::vector<double>{0, 1}));
  EXPECT_EQ(message(with("\"outputs\"", R"("made": ["x[b, c] = x[b, 2 - c]"], "outputs")")),
            "own.json: made[0]: line 13, column 23: 'x' is changed in place, and read "
            "elsewhere: expected the left side's indices, or a copy of it that a statement makes "
            "before");
}

}  // namespace
}  // namespace rekernel
