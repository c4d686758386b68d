#include "problem.h"

// The kernel for 8192 x 16384 alone. The constants of this namespace hide those of problem.h, so
// that it compiles at any size; the plan launches it only at its own.
namespace own_size {

namespace problem {
inline constexpr int rows = 8192;
inline constexpr int columns = 16384;
inline constexpr int diagonal_elements = 8192;
inline constexpr int b_elements = 134217728;
inline constexpr int c_elements = 134217728;
}  // namespace problem

// c[i, j] = diagonal[i] * b[i, j]
// Short-lived blocks, dealt in address order by the hardware dispatcher. Blocks below
// kLargeBlocks own a large piece of a row, the others a small one. Every warp works alone on its
// contiguous slice: its own barrier, its own bulk load, scaling in place, its own bulk store.
// Beside that every warp prefetches into L2 the slice a fixed distance ahead in b, and a few lanes
// of the last warp touch the pages of c that the multiprocessor will store to next.

namespace {

constexpr int kWarps = WARPS;
constexpr unsigned kLargeRows = LARGE_ROWS;  // rows taken in large pieces
constexpr int kLargeFloats = LARGE_FLOATS;
constexpr int kSmallFloats = SMALL_FLOATS;
constexpr unsigned kFirstWave = FIRST_WAVE;  // blocks resident at the start

constexpr unsigned kLargePerRow = problem::columns / kLargeFloats;
constexpr unsigned kSmallPerRow = problem::columns / kSmallFloats;
constexpr unsigned kLargeBlocks = kLargeRows * kLargePerRow;

constexpr unsigned kLargeBytes = kLargeFloats * 4u;
constexpr unsigned kTotalBytes = problem::c_elements * 4u;
constexpr unsigned kPageBytes = 2u << 20;
constexpr unsigned kAheadPieces = AHEAD_PIECES;
constexpr unsigned kAheadBytes = kAheadPieces * kLargeBytes;   // run-ahead in b; 0: none
constexpr unsigned kTouchBytes = TOUCH_PIECES * kLargeBytes;   // nearest touch in c
constexpr int kTouches = TOUCHES;                              // pages of c touched by a block

static_assert(problem::columns % kLargeFloats == 0, "a large piece lies within one row");
static_assert(problem::columns % kSmallFloats == 0, "a small piece lies within one row");
static_assert(kLargeRows <= static_cast<unsigned>(problem::rows), "no more rows than there are");
static_assert(kLargeFloats % (kWarps * 128) == 0, "whole float4 for every lane");
static_assert(kSmallFloats % (kWarps * 128) == 0, "whole float4 for every lane");
static_assert(kSmallFloats <= kLargeFloats, "shared memory is that of a large piece");
static_assert(problem::b_elements == problem::c_elements, "the same offsets in b and c");
static_assert(kTouches >= 0 && kTouches <= 30, "a lane for every touch, and one for the start");
static_assert(kTotalBytes <= 1u << 30, "offsets fit 32 bits");
static_assert(kAheadBytes <= 1u << 30 && kTouchBytes <= 1u << 30, "offsets fit 32 bits");

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

// Lanes 1 to kTouches of a warp read a word of a page of c that will be stored to later, so that
// its translation is there by then. In the first wave one more lane does so for the block's own
// page. The values are ignored. All blocks touch the first sector of a page.
__device__ __forceinline__ void touch_pages(const float* c, unsigned piece_offset, int lane) {
  if (lane >= 1 && lane <= kTouches + 1) {
    const bool own = lane == kTouches + 1;
    const unsigned offset =
        piece_offset + (own ? 0u : kTouchBytes + static_cast<unsigned>(lane - 1) * kPageBytes);
    if (offset < kTotalBytes && (!own || blockIdx.x < kFirstWave)) {
      const unsigned long long base =
          static_cast<unsigned long long>(__cvta_generic_to_global(c));
      unsigned long long address =
          (base + offset) & ~static_cast<unsigned long long>(kPageBytes - 1u);
      if (address < base) address = base;
      unsigned ignored;
      asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(ignored) : "l"(address));
      (void)ignored;
    }
  }
}

// The whole work of one warp: its slice of a piece of kPieceFloats floats that begins at byte
// piece_offset of b and c.
template <int kPieceFloats>
__device__ __forceinline__ void scale_slice(const float* b, float* c, const float* factor_address,
                                            unsigned piece_offset, unsigned char* piece_memory,
                                            unsigned barrier, int warp, int lane) {
  constexpr int kSliceFloats = kPieceFloats / kWarps;
  constexpr unsigned kSliceBytes = kSliceFloats * 4u;
  constexpr int kVectors = kSliceFloats / (4 * 32);  // float4 of a lane

  unsigned char* const memory = piece_memory + warp * kSliceBytes;
  const unsigned memory_address = shared_address(memory);
  const unsigned slice_offset = piece_offset + static_cast<unsigned>(warp) * kSliceBytes;
  const float* const source = b + slice_offset / 4u;
  float* const target = c + slice_offset / 4u;

  if (lane == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    unsigned long long policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(kSliceBytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1], %2, [%3], %4;" ::"r"(memory_address),
        "l"(__cvta_generic_to_global(source)), "r"(kSliceBytes), "r"(barrier), "l"(policy)
        : "memory");

    // The run-ahead, with the default priority: the lines have to outlive the stores until the
    // bulk load that uses them marks them evict-first. What the first wave loads needs none.
    if (kAheadPieces != 0u && blockIdx.x + kAheadPieces >= kFirstWave &&
        slice_offset + kAheadBytes < kTotalBytes) {
      asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(
                       __cvta_generic_to_global(source + kAheadBytes / 4u)),
                   "r"(kSliceBytes)
                   : "memory");
    }
  }

  // The factor of the row arrives while the slice is on its way.
  float factor;
  asm volatile("ld.global.nc.f32 %0, [%1];"
               : "=f"(factor)
               : "l"(__cvta_generic_to_global(factor_address)));

  if (warp == kWarps - 1) touch_pages(c, piece_offset, lane);

  // The initialised barrier is visible to the warp.
  __syncwarp();

  barrier_wait(barrier, 0u);

  float4* const slice = reinterpret_cast<float4*>(memory) + lane;
  float4 v[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) v[i] = slice[i * 32];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    v[i].x *= factor;
    v[i].y *= factor;
    v[i].z *= factor;
    v[i].w *= factor;
    slice[i * 32] = v[i];
  }

  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncwarp();

  if (lane == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(target)),
                 "r"(memory_address), "r"(kSliceBytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    // The slice has been read out before the block gives its shared memory back.
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncwarp();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(WARPS * 32, MIN_BLOCKS)
    scale_ahead(const float* __restrict__ diagonal, const float* b, float* c) {
  // What the plan asks for beyond a large piece only limits residency.
  extern __shared__ __align__(128) unsigned char piece_memory[];
  __shared__ __align__(8) unsigned long long barriers[kWarps];

  const int lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5;
  const unsigned barrier = shared_address(&barriers[warp]);

  if (blockIdx.x < kLargeBlocks) {
    const unsigned piece = blockIdx.x;
    const unsigned row = piece / kLargePerRow;
    scale_slice<kLargeFloats>(b, c, diagonal + row, piece * kLargeBytes, piece_memory, barrier,
                              warp, lane);
  } else {
    const unsigned piece = blockIdx.x - kLargeBlocks;
    const unsigned row = kLargeRows + piece / kSmallPerRow;
    scale_slice<kSmallFloats>(b, c, diagonal + row,
                              kLargeBlocks * kLargeBytes + piece * (kSmallFloats * 4u),
                              piece_memory, barrier, warp, lane);
  }
}

}  // namespace own_size

// Any other size, by the constants of problem.h. The matrix is one flat array; a thread takes four
// consecutive elements at a time, which may lie in up to four rows.
extern "C" __global__ void __launch_bounds__(256)
    scale_any(const float* __restrict__ diagonal, const float* __restrict__ b,
              float* __restrict__ c) {
  using Index = unsigned long long;
  constexpr Index columns = static_cast<Index>(problem::columns);
  constexpr Index total = static_cast<Index>(problem::rows) * columns;

  const bool aligned =
      ((reinterpret_cast<Index>(b) | reinterpret_cast<Index>(c)) & 15ull) == 0ull;
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x * 4ull;
  Index first = (static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x) * 4ull;

  for (; first < total; first += step) {
    Index row = first / columns;
    Index column = first - row * columns;
    if (aligned && total - first >= 4ull) {
      // All four elements exist, so every row that is stepped to exists too.
      const float4 v = *reinterpret_cast<const float4*>(b + first);
      float4 w;
      float factor = diagonal[row];
      w.x = v.x * factor;
      if (++column == columns) {
        column = 0;
        factor = diagonal[++row];
      }
      w.y = v.y * factor;
      if (++column == columns) {
        column = 0;
        factor = diagonal[++row];
      }
      w.z = v.z * factor;
      if (++column == columns) {
        column = 0;
        factor = diagonal[++row];
      }
      w.w = v.w * factor;
      *reinterpret_cast<float4*>(c + first) = w;
    } else {
      const Index end = total - first >= 4ull ? first + 4ull : total;
      for (Index i = first; i < end; ++i) {
        c[i] = diagonal[row] * b[i];
        if (++column == columns) {
          column = 0;
          ++row;
        }
      }
    }
  }
}
