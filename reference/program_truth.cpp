#include "reference/program_truth.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>

#include "harness/evaluation/served_process.h"

namespace rekernel {

namespace {

// One after the other, they are one program.
constexpr char script[] =
#include "expression_source.inc"
#include "program_source.inc"
#include "truth_source.inc"
    ;

}  // namespace

int run_truth_worker() {
  see_own_gpu_alone();
  const std::string socket = std::to_string(first_served_descriptor);
  ::execlp("python3", "python3", "-c", script, socket.c_str(), "cuda", nullptr);
  std::cerr << "python3: " << std::strerror(errno) << "\n";
  return 2;
}

}  // namespace rekernel
