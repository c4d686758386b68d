// Layer normalisation over rows of 4194304 floats. All thread blocks work on the same two rows at a
// time, each on its own slice of the features, and keep both slices on the chip (registers and
// shared memory) between the statistics and the normalisation. The blocks exchange their moments
// through memory and one grid barrier per pair of rows.
//
// A device with fewer than 128 multiprocessors cannot hold two whole rows: what is over is read
// twice.

#include <cooperative_groups.h>

#include "problem.h"

namespace {

constexpr int threads = 512;
constexpr int warps = threads / 32;
constexpr int rows_together = 2;
constexpr int register_positions = 10;
constexpr int shared_positions = 6;
constexpr int held_positions = register_positions + shared_positions;
constexpr int row_quads = problem::features / 4;
static_assert(problem::features % 4 == 0, "rows are read four floats at a time");
static_assert(problem::batch % rows_together == 0, "rows are worked on in pairs");

__device__ void copy_async(float4* shared, const float4* global) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}

__device__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Count, mean and sum of squared deviations from it. Means are relative to the row's first
/// element, which keeps their digits where the mean is much larger than the deviation.
struct Moments {
  float count;
  float mean;
  float squares;
};

/// Chan, Golub and LeVeque's pairwise update.
__device__ Moments merged(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float difference = b.mean - a.mean;
  const float share = __fdividef(b.count, count);
  return {count, fmaf(difference, share, a.mean),
          a.squares + b.squares + difference * difference * a.count * share};
}

/// The moments of `lanes` neighbouring lanes, in the first of them.
template <int lanes>
__device__ Moments merge_lanes(Moments own) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const Moments other = {__shfl_down_sync(0xffffffffu, own.count, distance),
                           __shfl_down_sync(0xffffffffu, own.mean, distance),
                           __shfl_down_sync(0xffffffffu, own.squares, distance)};
    own = merged(own, other);
  }
  return own;
}

/// Sums over one thread's elements of one row, relative to the first of them. As that element is
/// one of the n summed, n · (first − mean)² ≤ n · Σ(x − mean)²: what `moments` subtracts cannot
/// cancel more than a factor of n + 1, whatever the data are.
class ThreadSums {
 public:
  __device__ explicit ThreadSums(float first) : first_(first) {}

  __device__ void add(const float4& quad) {
    add_one(quad.x, 0);
    add_one(quad.y, 1);
    add_one(quad.z, 0);
    add_one(quad.w, 1);
    count_ += 4.0f;
  }

  __device__ Moments moments(float row_first) const {
    if (count_ == 0.0f) return {0.0f, 0.0f, 0.0f};
    const float sum = sums_[0] + sums_[1];
    const float squares = squares_[0] + squares_[1];
    const float mean = sum / count_;
    return {count_, (first_ - row_first) + mean, fmaxf(fmaf(-sum, mean, squares), 0.0f)};
  }

 private:
  __device__ void add_one(float value, int part) {
    const float difference = value - first_;
    sums_[part] += difference;
    squares_[part] = fmaf(difference, difference, squares_[part]);
  }

  float first_;
  float count_ = 0.0f;
  float sums_[2] = {};
  float squares_[2] = {};
};

/// What turns x into the normalised value: (x − first) · factor + offset.
struct Normalisation {
  float factor;
  float offset;
};

__device__ float normalised(float x, float first, Normalisation n, float weight, float bias) {
  return fmaf(fmaf(x - first, n.factor, n.offset), weight, bias);
}

__device__ float4 normalised(const float4& x, float first, Normalisation n, const float4& weight,
                             const float4& bias) {
  return {normalised(x.x, first, n, weight.x, bias.x), normalised(x.y, first, n, weight.y, bias.y),
          normalised(x.z, first, n, weight.z, bias.z), normalised(x.w, first, n, weight.w, bias.w)};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(threads, 1)
    layernorm(const float* __restrict__ x, const float* __restrict__ weight,
              const float* __restrict__ bias, float* __restrict__ y, float4* block_moments) {
  extern __shared__ float4 staged[];  // [rows_together][shared_positions][threads]; own column only
  __shared__ Moments warp_moments[rows_together][warps];
  __shared__ Normalisation normalisations[rows_together];

  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  const int thread = threadIdx.x;
  const int warp = thread / 32;
  const int lane = thread % 32;
  const int blocks = gridDim.x;

  // The block's slice of every row, in quads, whole 128-byte lines. The thread's quads of it are
  // thread, thread + threads, …
  const int slice = ((row_quads + blocks - 1) / blocks + 7) / 8 * 8;
  const int begin = min(static_cast<int>(blockIdx.x) * slice, row_quads);
  const int length = min(slice, row_quads - begin);
  const int offset = begin + thread;
  const float4* source = reinterpret_cast<const float4*>(x) + offset;
  float4* destination = reinterpret_cast<float4*>(y) + offset;
  const float4* weights = reinterpret_cast<const float4*>(weight) + offset;
  const float4* biases = reinterpret_cast<const float4*>(bias) + offset;
  const auto owns = [&](int position) { return position * threads + thread < length; };
  const auto own_staged = [&](int r, int position) {
    return staged + (r * shared_positions + position) * threads + thread;
  };

  float4 held[rows_together][register_positions];
  float first[rows_together];
#pragma unroll
  for (int r = 0; r < rows_together; ++r) {
    first[r] = x[static_cast<long long>(r) * problem::features];
    const float4* from = source + r * row_quads;
#pragma unroll
    for (int p = 0; p < register_positions; ++p) {
      held[r][p] = owns(p) ? __ldcs(from + p * threads) : float4{};
    }
#pragma unroll
    for (int p = 0; p < shared_positions; ++p) {
      const int position = register_positions + p;
      if (owns(position)) copy_async(own_staged(r, p), from + position * threads);
    }
  }

  for (int row = 0; row < problem::batch; row += rows_together) {
    wait_for_copies();
#pragma unroll
    for (int r = 0; r < rows_together; ++r) {
      ThreadSums sums(held[r][0].x);
#pragma unroll
      for (int p = 0; p < register_positions; ++p) {
        if (owns(p)) sums.add(held[r][p]);
      }
#pragma unroll
      for (int p = 0; p < shared_positions; ++p) {
        if (owns(register_positions + p)) sums.add(*own_staged(r, p));
      }
      const float4* from = source + r * row_quads;
      for (int position = held_positions; owns(position); ++position) {
        sums.add(from[position * threads]);
      }
      const Moments of_warp = merge_lanes<32>(sums.moments(first[r]));
      if (lane == 0) warp_moments[r][warp] = of_warp;
    }
    __syncthreads();
    if (warp < rows_together) {
      const Moments of_block = merge_lanes<warps>(warp_moments[warp][lane % warps]);
      if (lane == 0) {
        block_moments[static_cast<long long>(row + warp) * blocks + blockIdx.x] = {
            of_block.count, of_block.mean, of_block.squares, 0.0f};
      }
    }
    grid.sync();
    if (warp < rows_together) {
      const float4* all = block_moments + static_cast<long long>(row + warp) * blocks;
      Moments of_row = {0.0f, 0.0f, 0.0f};
#pragma unroll 4
      for (int block = lane; block < blocks; block += 32) {
        const float4 other = __ldcg(all + block);
        of_row = merged(of_row, {other.x, other.y, other.z});
      }
      of_row = merge_lanes<32>(of_row);
      if (lane == 0) {
        const float variance = of_row.squares / static_cast<float>(problem::features);
        const float factor = 1.0f / sqrtf(variance + static_cast<float>(problem::eps));
        normalisations[warp] = {factor, -of_row.mean * factor};
      }
    }
    __syncthreads();

    Normalisation n[rows_together];
    float4* to[rows_together];
    const float4* next[rows_together];
    const bool more = row + rows_together < problem::batch;
#pragma unroll
    for (int r = 0; r < rows_together; ++r) {
      n[r] = normalisations[r];
      to[r] = destination + r * row_quads;
      next[r] = source + (r + rows_together) * row_quads;
    }
#pragma unroll
    for (int p = 0; p < shared_positions; ++p) {
      const int position = register_positions + p;
      if (!owns(position)) continue;
      const float4 w = __ldcg(weights + position * threads);
      const float4 b = __ldcg(biases + position * threads);
#pragma unroll
      for (int r = 0; r < rows_together; ++r) {
        __stcs(to[r] + position * threads, normalised(*own_staged(r, p), first[r], n[r], w, b));
        if (more) copy_async(own_staged(r, p), next[r] + position * threads);
      }
    }
#pragma unroll
    for (int p = 0; p < register_positions; ++p) {
      if (!owns(p)) continue;
      const float4 w = __ldcg(weights + p * threads);
      const float4 b = __ldcg(biases + p * threads);
#pragma unroll
      for (int r = 0; r < rows_together; ++r) {
        __stcs(to[r] + p * threads, normalised(held[r][p], first[r], n[r], w, b));
        if (more) held[r][p] = __ldcs(next[r] + p * threads);
      }
    }
    for (int position = held_positions; owns(position); ++position) {
      const float4 w = __ldcg(weights + position * threads);
      const float4 b = __ldcg(biases + position * threads);
#pragma unroll
      for (int r = 0; r < rows_together; ++r) {
        const float4 again = source[r * row_quads + position * threads];
        __stcs(to[r] + position * threads, normalised(again, first[r], n[r], w, b));
      }
    }
    source += rows_together * row_quads;
    destination += rows_together * row_quads;
    if (more) {
#pragma unroll
      for (int r = 0; r < rows_together; ++r) {
        first[r] = x[static_cast<long long>(row + r + rows_together) * problem::features];
      }
    }
  }
}
