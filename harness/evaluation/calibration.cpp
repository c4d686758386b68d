#include "harness/evaluation/calibration.h"

#include <algorithm>
#include <utility>

namespace rekernel {

namespace {

constexpr std::int64_t access_bytes = 16;
constexpr std::int64_t move_threads = 512;
constexpr std::int64_t small_bytes = 4 << 20;
/// Two works of half and of all of so many differ.
constexpr std::int64_t fewest_bytes = 2 * access_bytes;
constexpr std::int64_t wait_ns = 100000;

constexpr const char* source = R"cuda(
extern "C" __global__ void nothing() {}

extern "C" __global__ void wait(long long duration) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < duration);
}

extern "C" __global__ void copy(float4* to, const float4* from, long long count) {
  const long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = from[i];
}

__device__ float4 own[1 << 18];

extern "C" __global__ void copy_to_own(const float4* from, long long count) {
  const long long i = 1ll * blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) own[i % (sizeof own / sizeof *own)] = from[i];
}
)cuda";

KnownWork known_work(const Problem& problem, const std::string& name, KernelLaunch launch) {
  Candidate candidate;
  candidate.problem = problem.id;
  candidate.name = "known_work";
  candidate.idea = "A work of known length, " + name + ".";
  candidate.origin.note = "calibration of the clock";
  candidate.program.source = source;
  candidate.program.steps.push_back(std::move(launch));
  return {name, std::move(candidate)};
}

KernelLaunch launch_of(const std::string& kernel, std::int64_t threads,
                       std::vector<Argument> args) {
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.block = {threads, 1, 1};
  launch.args = std::move(args);
  return launch;
}

/// A thread for each access.
KnownWork moving(const Problem& problem, const std::string& kernel, std::int64_t bytes,
                 std::vector<Argument> args) {
  const std::int64_t count = bytes / access_bytes;
  args.push_back(ScalarArgument{count});
  KernelLaunch launch = launch_of(kernel, move_threads, std::move(args));
  launch.grid[0].count = (count + move_threads - 1) / move_threads;
  return known_work(problem, kernel + " of " + std::to_string(count * access_bytes) + " bytes",
                    std::move(launch));
}

}  // namespace

std::vector<KnownWork> known_works(const Problem& problem) {
  const Tensor& input = problem.largest(Role::input);
  const Tensor& output = problem.largest(Role::output);
  KernelLaunch wait = launch_of("wait", 32, {ScalarArgument{wait_ns}});
  wait.grid[0] = {1, true};
  std::vector<KnownWork> works = {
      known_work(problem, "nothing", launch_of("nothing", 32, {})),
      known_work(problem, "wait of " + std::to_string(wait_ns) + " ns", std::move(wait))};
  // Where the outputs are a few numbers, memory of the work's own is written: the handover is some
  // microseconds longer after writes.
  const bool copies = output.bytes() >= fewest_bytes;
  const std::int64_t most = copies ? std::min(input.bytes(), output.bytes()) : input.bytes();
  if (most < fewest_bytes) return works;
  const std::int64_t some = most > small_bytes ? small_bytes : most / 2;
  for (const std::int64_t bytes : {some, most}) {
    std::vector<Argument> args = {BufferArgument{input.name}};
    if (copies) args.insert(args.begin(), BufferArgument{output.name});
    works.push_back(moving(problem, copies ? "copy" : "copy_to_own", bytes, std::move(args)));
  }
  return works;
}

}  // namespace rekernel
