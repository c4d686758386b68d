// The main function of tests that compile candidates: compile_isolated starts the program that it
// is part of.

#include <gtest/gtest.h>

#include <string_view>

#include "harness/compile/compile_isolated.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "compile-worker") {
    return rekernel::run_compile_worker();
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
