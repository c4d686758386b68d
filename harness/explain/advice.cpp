#include "harness/explain/advice.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace rekernel {

namespace {

/// The check and the message say it in different words.
constexpr Advice unwritten(std::string_view sign) {
  return {Status::wrong_result, sign, "Elements of the output were never written.",
          "The grid is too small, or a guard for the edge leaves elements out.",
          "Compare grid times tile with the sizes in problem.h; let the last tile write its rest."};
}

constexpr auto advice_table = std::to_array<Advice>({
    {Status::passed, "", "All checked runs, timed ones too, were right.", "–",
     "To be faster, look at the roofline and at what limits occupancy. A badge that is missing is "
     "explained beside the verdict."},

    {Status::invalid_plan, "unknown key", "kernel.json has a key that does not exist there.",
     "A typing error, or a key of another object.",
     "Take one of the known keys that the message lists; `rekernel show plan` describes them."},
    {Status::invalid_plan, "unknown buffer", "An argument names no tensor and no workspace.",
     "Names of tensors differ between problems; a workspace has to be declared.",
     "Take one of the names that the message lists, or add the workspace to \"workspace\"."},
    {Status::invalid_plan, "no kernel \"", "The source has no kernel of the launch's name.",
     "A C++ name is mangled, so that the plain name is not found.",
     "Declare the kernel `extern \"C\" __global__`; a template needs such a wrapper for each "
     "instance."},
    {Status::invalid_plan, "arguments, got",
     "The launch passes more or fewer arguments than the "
     "kernel has parameters.",
     "\"args\" was not changed along with the kernel.",
     "List one argument for each parameter, in "
     "order."},
    {Status::invalid_plan, "the parameter of kernel",
     "An argument has another size than its "
     "parameter.",
     "An i32 for a long long, or a scalar for a pointer.",
     "Choose the scalar's type by the parameter: i32, u32, i64, u64, f32, f64."},
    {Status::invalid_plan, "needs arch", "The plan uses what its `arch` does not have.",
     "Clusters, programmatic launches and tensor maps need sm_90a or newer.",
     "Raise \"arch\", or do without."},
    {Status::invalid_plan, "dynamic_shared_bytes",
     "More dynamic shared memory than a block of "
     "this `arch` may have.",
     "The least of all chips that run the `arch` counts: sm_80 code also runs where a block has "
     "99 KiB.",
     "Take smaller tiles or fewer stages, or an `arch` with more, such as sm_90a."},
    {Status::invalid_plan, "bytes of shared memory",
     "A block takes more shared memory than the "
     "chip grants one.",
     "Static and dynamic shared memory count together.",
     "Take smaller tiles or fewer stages, or an `arch` with more, such as sm_90a."},
    {Status::invalid_plan, "that a candidate may have",
     "Workspaces, `__device__` variables and local memory have more than 8 GiB together.",
     "Large arrays of each thread: local memory is set aside for every resident thread.",
     "Keep arrays of a thread small, or move them to shared memory or a workspace."},
    {Status::invalid_plan, "allow-list", "The source includes a header that is not allowed.",
     "Host headers and kernel libraries are refused.",
     "Use the headers that the message lists, and write the rest into kernel.cu."},
    {Status::invalid_plan, "the reply", "The model's reply holds no candidate.",
     "There must be exactly one fenced cuda block and one fenced json block.",
     "Ask for the two blocks alone; a reply that was cut off needs a higher limit of tokens."},
    {Status::invalid_plan, "", "kernel.json does not describe a launch plan that can run.",
     "The message names the key and what was expected there.",
     "Correct that key; `rekernel show plan` describes all of them, and kernel.schema.json lets an "
     "editor check them."},

    {Status::compile_failed, "is undefined",
     "The source uses a name that the compiler does not "
     "know.",
     "A host function, a header that is not included, or a function of newer chips.",
     "Include the header that declares it; guard what newer chips have by `__CUDA_ARCH__`, or "
     "raise \"arch\"."},
    {Status::compile_failed, "static shared memory",
     "A kernel declares more static shared memory "
     "than the target takes.",
     "Up to sm_89 a block has 48 KiB of static shared memory.",
     "Declare it `extern __shared__` and give its size as \"dynamic_shared_bytes\"."},
    {Status::compile_failed, "not supported on .target",
     "The source uses instructions that the "
     "target does not have.",
     "Inline PTX for newer chips, such as wgmma or bulk copies.",
     "Raise \"arch\" to the chip that has them (sm_90a for wgmma)."},
    {Status::compile_failed, "the compiler", "The compiler ended without machine code.",
     "Templates or unrolled loops that grow without bound, or very large constant arrays.",
     "Unroll less, and shorten recursive templates."},
    {Status::compile_failed, "", "The source does not compile.",
     "The first error counts; later ones often follow from it.",
     "Correct the line that the error names. The source is C++20 device code, without host "
     "functions."},

    {Status::launch_failed, "the kernel needs", "The device cannot run code for this `arch`.",
     "Names that end in `a` run on one chip family alone.",
     "Evaluate on that family, or write the kernel for sm_80."},
    {Status::launch_failed, "OUT_OF_RESOURCES",
     "A block takes more registers than a "
     "multiprocessor has.",
     "Registers of a thread times threads is more than 65536.",
     "Launch smaller blocks, or set \"max_registers\" or `__launch_bounds__`."},
    {Status::launch_failed, "COOPERATIVE",
     "The blocks of a cooperative launch are not resident "
     "all at once.",
     "The grid is larger than what fits the device.",
     "Take {\"per_sm\": n} as the grid, and let blocks loop over the work."},
    {Status::launch_failed, "", "The driver refused a launch.",
     "Shared memory, cluster or grid do not fit this device, or the kernel needs another chip.",
     "Compare the table of resources with the chip's limits, and take less of what it exceeds."},

    {Status::timed_out, "not compiled", "Compiling took longer than it may.",
     "Deeply unrolled loops or recursive templates.", "Unroll less; split the kernel."},
    {Status::timed_out, "", "A run did not end within its deadline.",
     "A barrier that not all threads reach, blocks that wait for others that are not resident, or "
     "a kernel that is very slow.",
     "Check every wait: `__syncthreads()` in branches, spinning on global memory without a "
     "cooperative launch, mbarrier phases and byte counts."},

    {Status::crashed, "ILLEGAL_ADDRESS", "A kernel accessed memory that is not mapped.",
     "An index beyond a tensor's end, or a product of sizes that overflows 32 bits.",
     "Guard the last tile, and compute offsets in 64 bits (`1ll * row * columns`)."},
    {Status::crashed, "MISALIGNED",
     "A kernel accessed memory at an address that is no multiple of "
     "the access.",
     "Vector loads (float4) at an offset that is no multiple of 16 bytes.",
     "Use vector loads only where row length and offset allow it."},
    {Status::crashed, "", "The candidate's process ended, or its CUDA context failed.",
     "Invalid addresses, traps, assertions, or printf of gigabytes.",
     "Run `rekernel evaluate DIR --once` under compute-sanitizer, with REKERNEL_SANDBOX=off."},

    unwritten("unwritten elements"),
    unwritten("never written"),
    {Status::wrong_result, "= nan", "An output is NaN where a number is expected.",
     "Division by zero, infinity minus infinity, reads of poisoned workspaces, or the exponential "
     "of a value whose maximum was not subtracted.",
     "Set a workspace by a memset or a kernel before it is read; subtract the maximum first."},
    {Status::wrong_result, "outside the tolerance",
     "Elements differ from the float64 truth by "
     "more than the tolerance.",
     "Wrong indices or layout, a missing barrier, a race, or a workspace that is read before it is "
     "written. Inputs, workspaces and outputs are new for every run.",
     "Look at the index of the first wrong element: a whole tile points to indices, scattered "
     "elements to a race. `compute-sanitizer --tool racecheck` finds races in shared memory."},
    {Status::wrong_result, "elements are wrong", "Integer outputs differ from the truth.",
     "They are compared exactly: wrong indices, a tie broken among different values, or a race.",
     "Look at the index of the first wrong element."},
    {Status::wrong_result, "rms error",
     "Each element is within the tolerance, the whole is not: "
     "the error is large beside the size of the results.",
     "A computation of too low precision, or one that leaves out part of the work.",
     "Accumulate in FP32; split FP32 operands into two or three parts of lower precision."},
    {Status::wrong_result, "largest error",
     "One element is far off beside the size of the "
     "results.",
     "Low precision in few elements: cancellation, or partial sums in FP16.",
     "Accumulate in FP32, and add in blocks."},
    {Status::wrong_result, "violated by", "A property that every right result has does not hold.",
     "Results are close, but not consistent (rows that do not sum to 1, say).",
     "Compute the quantity from all elements, in FP32."},
    {Status::wrong_result, "", "A result differs from the float64 truth.",
     "The message names the check and the first wrong element.",
     "Correct what it computes there; a run that is right once may be wrong for other inputs."},

    {Status::out_of_bounds_write, "", "A kernel wrote before or after a buffer.",
     "The last tile is written whole, or an offset is wrong.",
     "Guard writes by the sizes in problem.h; `compute-sanitizer` names the access."},
    {Status::modified_input, "", "A kernel wrote to an input.",
     "Inputs are read-only; they must not serve as scratch memory.",
     "Take a workspace for intermediate results."},
    {Status::implausible_time, "",
     "The measured time is below what the chip's memory and matrix "
     "units need for the work.",
     "Work that is skipped, or done outside the timed launches.",
     "Do all of the work in every run. If it is a method that needs less than the problem's page "
     "assumes, report it."},
    {Status::forged_time, "still ran", "Something of the candidate ran on after its end.",
     "Work that still runs when the last launch ends.", "Let every launch finish its work."},
    {Status::forged_time, "",
     "The time by the device's events is not borne out by the referee's "
     "own clock.",
     "Work that events do not see, or another process on the GPU.",
     "Evaluate on a GPU that nothing else uses; launch all work in the plan."},
});

bool fits(const Advice& row, Status status, std::string_view check, std::string_view message) {
  return row.status == status && (check.find(row.sign) != std::string_view::npos ||
                                  message.find(row.sign) != std::string_view::npos);
}

}  // namespace

std::span<const Advice> all_advice() { return advice_table; }

const Advice& advice_for(Status status, std::string_view check, std::string_view message) {
  const auto* found =
      std::find_if(advice_table.begin(), advice_table.end(),
                   [&](const Advice& row) { return fits(row, status, check, message); });
  if (found == advice_table.end()) throw std::logic_error("a status without advice");
  return *found;
}

}  // namespace rekernel
