#include "reference/agreement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "ops/inputs.h"
#include "tests/problems.h"
#include "tests/replay/fakes.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST(Agreement, SumsInAnotherOrderAgreeAndAnotherIndexOfAThousandDoes) {
  EXPECT_TRUE((Agreement{"y", Comparison::close, 1e-12}.agrees()));
  EXPECT_FALSE((Agreement{"y", Comparison::close, 1e-8}.agrees()));
  EXPECT_FALSE((Agreement{"y", Comparison::close, std::nan("")}.agrees()));
  EXPECT_FALSE((Agreement{"y", Comparison::equal, 0, 1, 100000}.agrees()));
  EXPECT_TRUE((Agreement{"y", Comparison::extreme, 0, 1, 1000}.agrees()));
  EXPECT_FALSE((Agreement{"y", Comparison::extreme, 0, 1, 999}.agrees()));
}

TEST(Agreement, ValuesLieOneAfterAnother) {
  const Problem problem = sized_problem("matmul_fp16", {{"m", 3}, {"n", 5}, {"k", 100}});
  const ValuesInMemory own = values_in_memory(problem, StoredInputs::own_types);
  ASSERT_EQ(own.tensors.size(), 3u);
  EXPECT_EQ(own.tensors[0].stored, DType::f16);
  EXPECT_EQ(own.tensors[0].bytes, 600);
  EXPECT_EQ(own.tensors[1].at, 768);
  EXPECT_EQ(own.tensors[2].stored, DType::f64);
  EXPECT_EQ(own.tensors[2].at, 768 + 1024);
  EXPECT_EQ(own.bytes, 768 + 1024 + 256);
  EXPECT_EQ(values_in_memory(problem, StoredInputs::float64).tensors[0].bytes, 2400);
}

/// With a `python3` that is a shell script of the test's.
class AgreementWithScript : public ::testing::Test {
 protected:
  void python3_is(const std::string& body) {
    const fs::path path = folder_.path() / "python3";
    testing::write_text(path, "#!/bin/sh\n# $4 is the socket\n" + body + "\n");
    fs::permissions(path, fs::perms::owner_all);
  }

  Result<std::vector<Agreement>> compare(std::chrono::seconds deadline = 20s) {
    const Problem problem = sized_problem("softmax", {{"rows", 2}, {"columns", 3}});
    Result<std::unique_ptr<AgreementProcess>> process =
        AgreementProcess::start(AgreementProcess::Place::cpu);
    if (!process) return process.error();
    const HostInputs inputs = host_inputs(problem, 1);
    return pytorch_agreement(**process, problem, inputs, problem.host_oracle(inputs), deadline);
  }

  TemporaryFolder folder_{fs::temp_directory_path()};
  ScopedVariable path_{"PATH", folder_.path().string() + ":/usr/bin:/bin"};
};

}  // namespace
}  // namespace rekernel
