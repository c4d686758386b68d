// Calls one kernel of CUDA-L2 on device memory, with marks around the call for `rekernel capture`. The kernel's file
// (KERNEL) is included as it is. $1, $2, $3: m, n, k.

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "rekernel_marks.h"
#include "torch/extension.h"

#include KERNEL

// Names of its own: nvcc cannot tell two unnamed namespaces of one source apart.
namespace claimed {

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

// In (0, 1).
__device__ float uniform(unsigned bits) {
  bits = (bits ^ (bits >> 15)) * 2246822519u;
  bits = (bits ^ (bits >> 13)) * 3266489917u;
  return (static_cast<float>((bits ^ (bits >> 16)) >> 8) + 0.5f) / 16777216.0f;
}

// Standard normal values, by Box and Muller, as the problem has them: how much power a product takes depends on them.
__global__ void fill(__half* values, long long count, unsigned seed) {
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  for (long long i = first; i < count; i += gridDim.x * static_cast<long long>(blockDim.x)) {
    const unsigned place = static_cast<unsigned>(i) * 2654435761u + seed;
    const float radius = sqrtf(-2.0f * logf(uniform(place)));
    values[i] = __float2half(radius * cospif(2.0f * uniform(place ^ 0x9e3779b9u)));
  }
}

__half* matrix(long long rows, long long columns, unsigned seed) {
  void* address = nullptr;
  check(cudaMalloc(&address, sizeof(__half) * rows * columns));
  fill<<<1024, 256>>>(static_cast<__half*>(address), rows * columns, seed);
  check(cudaGetLastError());
  return static_cast<__half*>(address);
}

// One set of operands. The kernels take B twice, row-major and transposed, and read one of both: READS_TRANSPOSED says
// which is the problem's `b`, and the other is not there.
struct Operands {
  __half *a, *b, *c;
};

void call(const Operands& at, int m, int n, int k) {
#ifdef READS_TRANSPOSED
  __half *row_major = nullptr, *transposed = at.b;
#else
  __half *row_major = at.b, *transposed = nullptr;
#endif
  // The transposed one has B's sizes as well: their harness reshapes it to these.
  cuda_l2_h100_fp32({at.a, m, k}, {row_major, k, n}, {transposed, k, n}, {at.c, m, n});
}

}  // namespace claimed

int main(int argc, char** argv) try {
  using claimed::call, claimed::check, claimed::matrix, claimed::Operands;
  if (argc != 4) {
    std::fprintf(stderr, "expected m, n and k\n");
    return 2;
  }
  const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  std::vector<Operands> sets;
  for (unsigned i = 0; i < 2; ++i) {
    sets.push_back({matrix(m, k, 1 + i), matrix(k, n, 3 + i), matrix(m, n, 5 + i)});
  }
  check(cudaDeviceSynchronize());
  const int calls = rekernel_calls();
  for (int i = 0; i < calls; ++i) {
    const Operands& at = sets[i % 2];
    REKERNEL_BEGIN("a", at.a, "b", at.b, "c", at.c);
    call(at, m, n, k);
    REKERNEL_END();
  }
  check(cudaDeviceSynchronize());
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
