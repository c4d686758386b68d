// The main function of the harness's tests, which start this program again: as the child that
// compiles, as the child that evaluates, and as children that misbehave.

#include <gtest/gtest.h>
#include <unistd.h>

#include <string_view>

#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/referee.h"
#include "harness/evaluation/runner.h"
#include "misbehaving_child.h"

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "compile-worker") return rekernel::run_compile_worker();
  if (mode == "referee-worker") return rekernel::run_referee_worker({});
  if (mode == "runner-worker") return rekernel::run_runner_worker({});
  // Without the checks that sanitizers make at the end, which start processes themselves.
  if (mode == "misbehave") ::_exit(rekernel::testing::misbehave(argv + 2));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
