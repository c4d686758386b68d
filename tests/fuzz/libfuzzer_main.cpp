// The entry point that libFuzzer calls; REKERNEL_FUZZ_TARGET names the target.

#include <cstddef>
#include <cstdint>

#include "targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const rekernel::fuzz::Target* target = rekernel::fuzz::find_target(REKERNEL_FUZZ_TARGET);
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
