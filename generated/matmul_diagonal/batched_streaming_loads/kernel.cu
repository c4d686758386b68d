namespace own_size {

// The constants of the problem's own sizes, in place of problem.h, so that this part compiles
// at any size. make_c is launched only at these sizes.
namespace problem {
inline constexpr int rows = 8192;
inline constexpr int columns = 16384;
}  // namespace problem

namespace {

constexpr unsigned block_vectors = THREADS * VECTORS;      // float4 of a block
constexpr unsigned row_vectors = problem::columns / 4;     // float4 of a row
constexpr unsigned blocks_per_row = row_vectors / block_vectors;

static_assert(problem::columns % 4 == 0, "rows are whole float4");
static_assert(row_vectors % block_vectors == 0, "a block stays within one row");

__device__ __forceinline__ unsigned long long evict_first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ float load_scalar(const float* p) {
  float v;
  asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(v) : "l"(p));
  return v;
}

__device__ __forceinline__ float4 load_stream(const float4* p, unsigned long long policy) {
  float4 v;
  asm volatile(
      "ld.global.nc.L1::no_allocate.L2::cache_hint.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
      : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
      : "l"(p), "l"(policy));
  return v;
}

__device__ __forceinline__ void store_result(float4* p, float4 v, unsigned long long policy) {
#if STORE_POLICY == 2
  asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;"
               :
               : "l"(p), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "l"(policy)
               : "memory");
#elif STORE_POLICY == 1
  __stcs(p, v);
#else
  *p = v;
#endif
}

}  // namespace

// c[i, j] = diagonal[i] * b[i, j]
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
make_c(const float* __restrict__ diagonal, const float4* __restrict__ b, float4* __restrict__ c) {
  const unsigned long long policy = evict_first_policy();
  const unsigned first = blockIdx.x * block_vectors + threadIdx.x;
  const float4* source = b + first;
  float4* target = c + first;

  // All loads are issued before the first use of any of them.
  const float factor = load_scalar(diagonal + blockIdx.x / blocks_per_row);
  float4 v[VECTORS];
#pragma unroll
  for (int k = 0; k < VECTORS; ++k) v[k] = load_stream(source + k * THREADS, policy);

#pragma unroll
  for (int k = 0; k < VECTORS; ++k) {
    float4 r;
    r.x = factor * v[k].x;
    r.y = factor * v[k].y;
    r.z = factor * v[k].z;
    r.w = factor * v[k].w;
    store_result(target + k * THREADS, r, policy);
  }
}

}  // namespace own_size

namespace any_size {

constexpr int batch = 4;  // loads that a thread issues before its first store

__device__ __forceinline__ float scaled(float factor, float v) { return factor * v; }

__device__ __forceinline__ float4 scaled(float factor, float4 v) {
  return make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
}

// width: elements of a row, each of type Element. Any rows >= 1 and width >= 1, any grid.
template <typename Element>
__device__ __forceinline__ void scale_rows(const float* __restrict__ diagonal,
                                           const Element* __restrict__ b,
                                           Element* __restrict__ c, long long rows,
                                           long long width) {
  const long long total = rows * width;
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long step_rows = stride / width;
  const long long step_columns = stride - step_rows * width;  // less than width

  long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  long long row = first / width;
  long long column = first - row * width;  // less than width, always

  while (first < total) {
    Element v[batch];
    float factor[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const long long at = first + k * stride;
      v[k] = Element{};
      factor[k] = 0.0f;
      if (at < total) {
        factor[k] = diagonal[row];
        v[k] = b[at];
      }
      row += step_rows;
      column += step_columns;
      if (column >= width) {
        column -= width;
        ++row;
      }
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      const long long at = first + k * stride;
      if (at < total) c[at] = scaled(factor[k], v[k]);
    }
    first += batch * stride;
  }
}

}  // namespace any_size

// The same product at all other sizes.
extern "C" __global__ void __launch_bounds__(256)
make_c_any(const float* __restrict__ diagonal, const float* __restrict__ b,
           float* __restrict__ c, long long rows, long long columns) {
  if (rows <= 0 || columns <= 0) return;
  const unsigned long long addresses =
      reinterpret_cast<unsigned long long>(b) | reinterpret_cast<unsigned long long>(c);
  if (columns % 4 == 0 && addresses % 16 == 0) {
    any_size::scale_rows<float4>(diagonal, reinterpret_cast<const float4*>(b),
                                 reinterpret_cast<float4*>(c), rows, columns / 4);
  } else {
    any_size::scale_rows<float>(diagonal, b, c, rows, columns);
  }
}
