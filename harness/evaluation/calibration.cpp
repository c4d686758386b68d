#include "harness/evaluation/calibration.h"

#include <algorithm>

namespace rekernel {

namespace {

constexpr std::int64_t access_bytes = 16;
constexpr std::int64_t copy_threads = 512;
constexpr std::int64_t small_copy_bytes = 4 << 20;
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

KnownWork copy_of(const Problem& problem, const Tensor& from, std::int64_t bytes) {
  const std::int64_t count = bytes / access_bytes;
  KernelLaunch launch = launch_of(
      "copy", copy_threads,
      {BufferArgument{problem.output().name}, BufferArgument{from.name}, ScalarArgument{count}});
  launch.grid[0].count = (count + copy_threads - 1) / copy_threads;
  return known_work(problem, "copy of " + std::to_string(bytes) + " bytes", std::move(launch));
}

const Tensor& largest_input(const Problem& problem) {
  const Tensor* largest = nullptr;
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.role != Role::input) continue;
    if (!largest || tensor.bytes() > largest->bytes()) largest = &tensor;
  }
  return *largest;
}

}  // namespace

std::vector<KnownWork> known_works(const Problem& problem) {
  const Tensor& input = largest_input(problem);
  const std::int64_t most = std::min(input.bytes(), problem.output().bytes());
  KernelLaunch wait = launch_of("wait", 32, {ScalarArgument{wait_ns}});
  wait.grid[0] = {1, true};
  return {known_work(problem, "nothing", launch_of("nothing", 32, {})),
          known_work(problem, "wait of " + std::to_string(wait_ns) + " ns", std::move(wait)),
          copy_of(problem, input, std::min(small_copy_bytes, most)), copy_of(problem, input, most)};
}

}  // namespace rekernel
