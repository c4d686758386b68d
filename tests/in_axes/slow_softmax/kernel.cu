#include "problem.h"

using real = float;
using index_t = int;

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

__device__ real added(real a, real b) { return a + b; }

// A NaN stays one.
template <class T>
__device__ T larger(T a, T b) {
  return a > b || a != a ? a : b;
}

// Combines a value of each of `lanes` threads that lie side by side; all of them get the result.
template <int lanes, class T, class Combine>
__device__ T over_lanes(T mine, Combine combine) {
  __shared__ T all[256];
  T* own = all + threadIdx.x / lanes * lanes;
  const int lane = threadIdx.x % lanes;
  own[lane] = mine;
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (lanes > 32) __syncthreads(); else __syncwarp();
    if (lane < half) own[lane] = combine(own[lane], own[lane + half]);
  }
  if (lanes > 32) __syncthreads(); else __syncwarp();
  const T result = own[0];
  if (lanes > 32) __syncthreads(); else __syncwarp();
  return result;
}

// largest[i] = max(j) x[i, j]
extern "C" __global__ void __launch_bounds__(256) make_largest(const float* x, real* largest) {
  using namespace problem;
  const int lane = threadIdx.x % 256;
  long long rest_ = blockIdx.x;
  const index_t i = static_cast<index_t>(rest_);
  if (i >= rows) return;
  real value1_ = real(-INFINITY);
  for (index_t j = lane; j < columns; j += 256) {
    value1_ = larger(value1_, x[i * columns + j]);
  }
  value1_ = over_lanes<256>(value1_, [](real a, real b) { return larger(a, b); });
  if (lane == 0) largest[i] = value1_;
}

// total[i] = sum(j) exp(x[i, j] - largest[i])
extern "C" __global__ void __launch_bounds__(256) make_total(const float* x, const real* largest, real* total) {
  using namespace problem;
  const int lane = threadIdx.x % 256;
  long long rest_ = blockIdx.x;
  const index_t i = static_cast<index_t>(rest_);
  if (i >= rows) return;
  real sum1_ = real(0);
  for (index_t j = lane; j < columns; j += 256) {
    sum1_ += exp((x[i * columns + j] - largest[i]));
  }
  sum1_ = over_lanes<256>(sum1_, [](real a, real b) { return added(a, b); });
  if (lane == 0) total[i] = sum1_;
}

// y[i, j] = exp(x[i, j] - largest[i]) / total[i]
extern "C" __global__ void __launch_bounds__(256) make_y(const float* x, const real* largest, const real* total, float* y) {
  using namespace problem;
  long long rest_ = 1ll * blockIdx.x * blockDim.x + threadIdx.x;
  const index_t j = static_cast<index_t>(rest_ % columns);
  rest_ /= columns;
  const index_t i = static_cast<index_t>(rest_);
  if (i >= rows) return;
  y[i * columns + j] = (exp((x[i * columns + j] - largest[i])) / total[i]);
}
