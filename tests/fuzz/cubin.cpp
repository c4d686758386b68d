#include "harness/compile/cubin.h"
#include "harness/candidate/code.h"

#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_cubin(std::string_view bytes) {
  Result<std::vector<KernelResources>> kernels = read_cubin(bytes);
  if (!kernels) {
    require_one_line(kernels.error().message);
    kernels = std::vector<KernelResources>{KernelResources{"k", 32, 0, 0, 0, 0, {}}};
  }
  for (const KernelResources& kernel : *kernels) {
    require(is_kernel_name(kernel.name), "a kernel has a name that can be shown");
    require(kernel.registers >= 0 && kernel.registers <= 255, "registers are counted in a byte");
    require(kernel.stack_bytes >= 0 && kernel.static_shared_bytes >= 0, "sizes are not negative");
  }
  add_assembler_report(bytes, *kernels);
  for (const KernelResources& kernel : *kernels) {
    require(kernel.spill_store_bytes >= 0 && kernel.spill_load_bytes >= 0,
            "spills are not negative");
  }
}

}  // namespace rekernel::fuzz
