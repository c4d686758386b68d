#include "reference/pytorch.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <variant>

#include "harness/problems/catalog.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A `python3` that is a shell script of the test's.
class Pytorch : public testing::Test {
 protected:
  /// `reply QUESTION ANSWER` gives the answer the question's token; `hear NAME` reads a question.
  static constexpr char answers[] =
      "reply() { rest=${1##*\\\"token\\\":}; echo \"${2%\\}}, \\\"token\\\": ${rest%\\}}}\"; }\n"
      "hear() { IFS= read -r \"$1\"; }\n";

  void python3_is(const std::string& body) {
    const fs::path path = folder_.path() / "python3";
    std::ofstream(path) << "#!/bin/sh\n" << answers << body << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  Result<std::unique_ptr<PytorchReference>> start(std::chrono::milliseconds deadline = 20s,
                                                  std::chrono::milliseconds block = 20s) {
    Result<std::unique_ptr<PytorchProcess>> process = PytorchProcess::spawn();
    if (!process) return process.error();
    process_ = std::move(*process);
    return connect(deadline, block);
  }

  /// What every evaluation does: with descriptors of its own to the process that goes on.
  Result<std::unique_ptr<PytorchReference>> connect(std::chrono::milliseconds deadline = 20s,
                                                    std::chrono::milliseconds block = 20s) {
    const auto shared = process_->descriptors();
    if (!shared) return shared.error();
    return PytorchReference::connect({::dup((*shared)[0]), ::dup((*shared)[1])},
                                     *find_problem("softmax"), "pytorch_eager", 0, deadline, block);
  }

  TemporaryFolder folder_{std::filesystem::temp_directory_path()};  // where a program may start
  std::unique_ptr<PytorchProcess> process_;
  ScopedVariable path_{"PATH", folder_.path().string() + ":/usr/bin:/bin"};
};

constexpr char ready[] =
    "hear problem; reply \"$problem\" '{\"ready\": true, \"torch\": \"2.11.0\"}'\n";

TEST_F(Pytorch, TimesBlocks) {
  python3_is(std::string(ready) + "echo \"$problem\" > " + (folder_.path() / "problem").string() +
             "\nwhile hear block; do reply \"$block\" '{\"times_ns\": [1053000, 1054000]}'; done");
  auto reference = start();
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_EQ((*reference)->version(), "2.11.0");
  EXPECT_EQ((*reference)->details(), "PyTorch 2.11.0");
  for (std::uint64_t seed : {std::uint64_t{0}, UINT64_MAX}) {
    const auto times = (*reference)->time_block(2, seed);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_EQ(*times, (std::vector<std::int64_t>{1053000, 1054000}));
  }

  std::ifstream file(folder_.path() / "problem");
  const std::string line(std::istreambuf_iterator<char>(file), {});
  const boost::json::object problem = boost::json::parse(line).as_object();
  EXPECT_EQ(problem.at("problem"), "softmax");
  EXPECT_EQ(problem.at("mode"), "pytorch_eager");
  EXPECT_EQ(problem.at("attributes").at("columns"), 65536);
  EXPECT_EQ(problem.at("function"), "torch.softmax(x, dim=1)");
  const boost::json::value& x = problem.at("tensors").at(0);
  EXPECT_EQ(x.at("name"), "x");
  EXPECT_EQ(x.at("dtype"), "f32");
  EXPECT_EQ(x.at("role"), "input");
  EXPECT_EQ(x.at("shape"), (boost::json::array{4096, 65536}));
  EXPECT_EQ(x.at("distribution").at("kind"), "normal");
}

TEST_F(Pytorch, WrongNumberOfTimesIsAnError) {
  python3_is(std::string(ready) +
             "while hear block; do reply \"$block\" '{\"times_ns\": [1]}'; done");
  auto reference = start();
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_FALSE((*reference)->time_block(2, 0));
}

TEST_F(Pytorch, TimesThatAreNoPositiveIntegersAreErrors) {
  for (const char* times : {"[0]", "[-5]", "[1.5]", "[null]", "{}"}) {
    python3_is(std::string(ready) +
               "while hear block; do reply \"$block\" '{\"times_ns\": " + times + "}'; done");
    auto reference = start();
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_FALSE((*reference)->time_block(1, 0)) << times;
  }
}

TEST_F(Pytorch, ItsErrorIsOurs) {
  python3_is(
      "hear problem; reply \"$problem\" '{\"error\": \"PyTorch is not installed (no module)\"}'");
  const auto reference = start();
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch is not installed (no module)");
}

TEST_F(Pytorch, GarbageIsAnError) {
  for (const char* garbage :
       {"echo hello", "echo '[1]'", "echo '{\"ready\": true, \"torch\": \"2\"}'",
        "reply \"$problem\" '{\"ready\": false, \"torch\": \"2\"}'", "head -c 3000000 /dev/zero"}) {
    python3_is(std::string("hear problem; ") + garbage + "; sleep 30");
    EXPECT_FALSE(start(500ms)) << garbage;
  }
}

TEST_F(Pytorch, LastLineOfStandardErrorExplainsAnEarlyEnd) {
  python3_is("hear problem; echo first >&2; echo 'Segmentation fault' >&2; exit 139");
  const auto reference = start();
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch: python3 ended (Segmentation fault)");
}

TEST_F(Pytorch, HangingStartIsCutOff) {
  python3_is("hear problem; sleep 60");
  const auto begin = std::chrono::steady_clock::now();
  const auto reference = start(300ms);
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch: no answer within the deadline");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(Pytorch, HangingBlockIsCutOffAndTheProcessKilled) {
  const fs::path pid_file = folder_.path() / "pid";
  python3_is(std::string(ready) + "echo $$ > " + pid_file.string() + "\nhear block; sleep 60");
  pid_t pid = 0;
  {
    auto reference = start(20s, 300ms);
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_FALSE((*reference)->time_block(1, 0));
    std::ifstream(pid_file) >> pid;
    ASSERT_GT(pid, 0);
  }
  process_.reset();
  EXPECT_FALSE(fs::exists("/proc/" + std::to_string(pid)));
}

TEST_F(Pytorch, ServesOneEvaluationAfterTheOther) {
  // The first evaluation does not wait for its answer; the second one gets its own all the same.
  python3_is(std::string(ready) +
             "hear block; late=$block\nhear again; reply \"$late\" '{\"times_ns\": [1]}'" +
             "\nreply \"$again\" '{\"ready\": true, \"torch\": \"2.12.0\"}'\nsleep 30");
  {
    auto reference = start(20s, 100ms);
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_FALSE((*reference)->time_block(1, 0));
  }
  const auto reference = connect();
  ASSERT_TRUE(reference) << reference.error().message;
  EXPECT_EQ((*reference)->version(), "2.12.0");
}

TEST_F(Pytorch, MissingPythonIsAnError) {
  ScopedVariable nowhere("PATH", folder_.path().string());
  const auto reference = start();
  ASSERT_FALSE(reference);
  EXPECT_TRUE(reference.error().message.starts_with("PyTorch is not installed"))
      << reference.error().message;
}

TEST(PytorchScript, AllCompile) {
  for (const char* name : {"expression", "pytorch", "agreement"}) {
    const std::string script = std::string(REKERNEL_SOURCE_DIR) + "/reference/" + name + ".py";
    // Into memory: compiling must leave nothing in the sources.
    const std::string command =
        "python3 -c 'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], \"exec\")' '" +
        script + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << name;
  }
}

boost::json::object request_for(const Problem& problem) {
  boost::json::object attributes;
  for (const Attribute& attribute : problem.attributes) {
    std::visit([&](auto value) { attributes[attribute.name] = value; }, attribute.value);
  }
  boost::json::array tensors;
  for (const Tensor& tensor : problem.tensors) {
    tensors.push_back(
        {{"name", tensor.name}, {"role", tensor.role == Role::input ? "input" : "output"}});
  }
  return {{"problem", problem.id},
          {"tensors", std::move(tensors)},
          {"attributes", std::move(attributes)},
          {"function", problem.pytorch}};
}

/// With a PyTorch that only writes down what is called: of published problems, what is called with
/// which operands; of all others, that there is a function of their inputs.
TEST(PytorchScript, MakesTheFunctionOfEveryProblem) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "called.py") << R"(import io, json, sys, types

class Module(types.ModuleType):
    def __getattr__(self, name):
        return lambda *inputs, **named: name + str(inputs) + str(named)

torch, nn, functional = Module("torch"), types.ModuleType("torch.nn"), Module("torch.nn.functional")
nn.functional, torch.nn = functional, nn
sys.modules.update({"torch": torch, "torch.nn": nn, "torch.nn.functional": functional})
sys.stdin = io.StringIO("")  # nobody asks
script = {}
exec("".join(open(part).read() for part in (sys.argv[1].replace("/pytorch.py", "/expression.py"), sys.argv[1])), script)
status = 0
for request in json.load(open(sys.argv[2])):
    function = script["operator"](request)
    tensors = [tensor["name"] for tensor in request["tensors"] if tensor["role"] == "input"]
    if list(function.__code__.co_varnames[:function.__code__.co_argcount]) != tensors:
        print("inputs of", request["problem"])
        status = 1
    if "expected" not in request:
        continue
    shaped = {name: types.SimpleNamespace(shape=(7,)) if name == "weight" else name for name in tensors}
    called = function(**shaped)
    if request["expected"] not in called:
        print(request["problem"], called)
        status = 1
sys.exit(status)
)";
  const std::map<std::string, std::string> expected = {
      {"matmul_fp32", "matmul('a', 'b'){}"},
      {"matmul_fp16", "matmul('a', 'b'){}"},
      {"softmax", "softmax('x',){'dim': 1}"},
      {"layernorm", "'bias', 1e-05){}"},
      {"conv2d", "'bias', 4, 2){}"},
      {"conv2d_relu_maxpool", ", 3, 2){}"},
      {"attention_fp16", "('q', 'k', 'v'){'is_causal': False, 'scale': 0.088388347648318"},
      {"attention_fp16_causal", "('q', 'k', 'v'){'is_causal': True, 'scale': 0.088388347648318"}};
  boost::json::array requests;
  for (const Problem& problem : catalog()) {
    boost::json::object request = request_for(problem);
    if (const auto found = expected.find(problem.id); found != expected.end()) {
      request["expected"] = found->second;
    }
    requests.push_back(std::move(request));
  }
  std::ofstream(folder.path() / "requests") << boost::json::serialize(requests);
  const std::string command = "python3 '" + (folder.path() / "called.py").string() + "' '" +
                              REKERNEL_SOURCE_DIR + "/reference/pytorch.py' '" +
                              (folder.path() / "requests").string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

/// Comprehensions, assignments inside expressions and several outputs, over inputs and constants.
TEST(PytorchScript, ExpressionsSeeAllNames) {
  TemporaryFolder folder;
  std::ofstream(folder.path() / "names.py") << R"(import io, sys, types
torch, nn, functional = (types.ModuleType(name) for name in ("torch", "torch.nn", "torch.nn.functional"))
nn.functional, torch.nn = functional, nn
sys.modules.update({"torch": torch, "torch.nn": nn, "torch.nn.functional": functional})
sys.stdin = io.StringIO("")
script = {}
exec("".join(open(part).read() for part in (sys.argv[1].replace("/pytorch.py", "/expression.py"), sys.argv[1])), script)
request = {"tensors": [{"name": "x", "role": "input"}], "attributes": {"n": 3, "scale": 0.5},
           "function": "total := sum(a * scale * x for a, b in zip(range(n), [x] * n)), [total for i in range(n)]"}
sys.exit(0 if script["operator"](request)(x=2) == (3.0, [3.0, 3.0, 3.0]) else 1)
)";
  const std::string command = "python3 '" + (folder.path() / "names.py").string() + "' '" +
                              REKERNEL_SOURCE_DIR + "/reference/pytorch.py'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(PytorchScript, SaysThatPytorchIsMissing) {
  TemporaryFolder folder;
  // A torch that cannot be imported stands in front of one that may be there.
  std::ofstream(folder.path() / "torch.py") << "raise ImportError('not here')\n";
  ScopedVariable path("PYTHONPATH", folder.path().string());
  auto process = PytorchProcess::spawn();
  ASSERT_TRUE(process) << process.error().message;
  const auto shared = (*process)->descriptors();
  ASSERT_TRUE(shared) << shared.error().message;
  const auto reference =
      PytorchReference::connect({::dup((*shared)[0]), ::dup((*shared)[1])},
                                *find_problem("softmax"), "pytorch_eager", 0, 60s);
  ASSERT_FALSE(reference);
  EXPECT_EQ(reference.error().message, "PyTorch is not installed (ImportError: not here)");
}

}  // namespace
}  // namespace rekernel
