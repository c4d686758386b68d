// A program that marks its work, for a recorder that stands for the real one. Its tensors lie where
// those of the recorded Triton softmax lay. $1: how the output is called, "-" for none; $2: how
// often the work is called, instead of as often as the recorder wants.

#include <cstdint>
#include <cstdlib>

#include "harness/capture/rekernel_marks.h"

int main(int argc, char** argv) {
  const std::uint64_t inputs[] = {139764242055168, 139765315796992};
  const std::uint64_t output = 139763168313344;
  const char* name = argc > 1 ? argv[1] : "y";
  const int calls = argc > 2 ? std::atoi(argv[2]) : rekernel_calls();
  for (int i = 0; i < calls; ++i) {
    const void* input = reinterpret_cast<void*>(inputs[i % 2]);
    if (*name == '-') {
      REKERNEL_BEGIN("x", input);
    } else {
      REKERNEL_BEGIN("x", input, name, reinterpret_cast<void*>(output));
    }
    REKERNEL_END();
  }
  return 0;
}
