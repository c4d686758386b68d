#include "problem.h"

using u64 = unsigned long long;

__device__ u64 clock_ns() {
  u64 now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

struct Ignored {
  u64 word;
};

// The address of this launch's block of parameters, through an integer, so that the compiler forgets
// what it points to: device memory like any other.
__device__ u64 address_of(const Ignored& parameter) {
  u64 address = (u64)&parameter;
  asm volatile("" : "+l"(address));
  return address;
}

// Every launch's commands name the machine code of its kernel, 0x118 bytes into the constant bank that
// they load: 132 words or more behind this one.
constexpr unsigned load_command = 0x6000206d;

constexpr unsigned most_kernels = 64;

__device__ u64 kernels[most_kernels];
__device__ unsigned count;

// Notes where the machine code of every kernel begins that was launched in this context.
extern "C" __global__ void look() {
  const u64 step = 4ull * gridDim.x * blockDim.x;
  for (u64 at = 4ull * (blockIdx.x * blockDim.x + threadIdx.x); at + 1024 < COMMAND_BYTES; at += step) {
    const volatile unsigned* word = (const volatile unsigned*)(COMMANDS + at);
    const unsigned words = word[0] >> 16 & 0x1fff;
    if ((word[0] & 0xe000ffffu) != load_command || words < BANK_WORDS || words > 1024) continue;
    const u64 code = word[1 + CODE_OFFSET / 4] | (u64)word[2 + CODE_OFFSET / 4] << 32;
    if (code >> 44 != 7 || code % 128 != 0) continue;
    bool known = false;
    for (unsigned i = 0; i < min(count, most_kernels); ++i) known |= ((volatile u64*)kernels)[i] == code;
    if (known) continue;
    const unsigned number = atomicAdd(&count, 1);
    if (number < most_kernels) ((volatile u64*)kernels)[number] = code;
  }
}

extern "C" __global__ void end_others(const __grid_constant__ Ignored parameter) {
  const u64 own = *(volatile u64*)(address_of(parameter) - PARAMETER_OFFSET + CODE_OFFSET);
  const unsigned number = threadIdx.x;
  if (number >= min(count, most_kernels)) return;
  const u64 code = kernels[number];
  // What was loaded with this kernel lies beside it.
  if (code - own + 0x4000 < 0x8000) return;
  ((volatile u64*)code)[0] = 0x000000000000794dull;  // EXIT
  ((volatile u64*)code)[1] = 0x000fea0003800000ull;
  __threadfence_system();
}
