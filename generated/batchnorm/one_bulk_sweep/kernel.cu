#include "problem.h"
#include <cooperative_groups.h>

#ifndef PIECE_BYTES
#define PIECE_BYTES 8192
#endif
#ifndef PREFETCH_PIECES
#define PREFETCH_PIECES 12  // from a landing to the prefetch that goes with it
#endif
#ifndef PENDING
#define PENDING 3           // younger stores that may be pending when a slot is freed
#endif
#ifndef LATE
#define LATE 3              // last channels, whose y should stay in L2
#endif
// L2 policies: 1 evict_first, 2 evict_last, 3 evict_normal
#ifndef Y_EARLY
#define Y_EARLY 1
#endif
#ifndef Y_LATE
#define Y_LATE 2
#endif
#ifndef X_PREFETCH
#define X_PREFETCH 3
#endif
#ifndef X_LOAD
#define X_LOAD 1
#endif

// ---------------------------------------------------------------------------------------------------
// The problem's own sizes: launched only there, and compiled with these constants at any size.
// ---------------------------------------------------------------------------------------------------
namespace own_sizes {

namespace problem {
inline constexpr int batch = 8;
inline constexpr int channels = 64;
inline constexpr int height = 512;
inline constexpr int width = 512;
inline constexpr double eps = ::problem::eps;
}  // namespace problem

namespace {

typedef unsigned long long u64;

constexpr int BLOCKS = 132;
constexpr int CHANNELS = problem::channels;
constexpr int IMAGE_F4 = problem::height * problem::width / 4;        // of one channel of one image
constexpr int PIECE_F4 = PIECE_BYTES / 16;                            // also of a slot
constexpr int IMAGE_PIECES = IMAGE_F4 / PIECE_F4;                     // of one channel of one image
constexpr int CHANNEL_PIECES = problem::batch * IMAGE_PIECES;
constexpr int PIECES = CHANNELS * CHANNEL_PIECES;                     // of all blocks together
constexpr int FEWEST = CHANNEL_PIECES / BLOCKS;                       // a block's pieces of a channel
constexpr int MOST = (CHANNEL_PIECES + BLOCKS - 1) / BLOCKS;
constexpr int FIRST_LATE = (CHANNELS - LATE) * CHANNEL_PIECES;        // first piece that should stay in L2
constexpr int RING_BYTES = 229376;
constexpr int SLOTS = RING_BYTES / PIECE_BYTES;
constexpr int AHEAD = PREFETCH_PIECES;                                // a block's pieces prefetched into L2
constexpr int UNROLL = 4;                                             // float4 of a thread in a slot
constexpr int GROUP_THREADS = PIECE_F4 / UNROLL;                      // threads that share a slot
constexpr int GROUP_WARPS = GROUP_THREADS / 32;
constexpr int SUM_WARPS = 8;
constexpr int SUM_GROUPS = SUM_WARPS / GROUP_WARPS;
constexpr int NORM_WARPS = 8;
constexpr int NORM_GROUPS = NORM_WARPS / GROUP_WARPS;
constexpr int FIRST_GATHER_THREAD = 32;
constexpr int FIRST_PREFETCH_THREAD = 64;
constexpr int FIRST_SUM_THREAD = 96;
constexpr int FIRST_NORM_THREAD = FIRST_SUM_THREAD + 32 * SUM_WARPS;  // 352; 608 threads altogether
constexpr int PAIRS = BLOCKS / 2;                                     // pairs of partials of a channel
constexpr int GATHER = (PAIRS + 31) / 32;                             // pairs of a lane
constexpr int STRIDE = 144;                                           // places of a channel: whole lines
constexpr int SUMMED = 4;                                             // barriers between sums and gathering
constexpr int FIRST_READY_THREAD = 64;                                // for the initialisation only
constexpr int FIRST_SUMMED_THREAD = FIRST_READY_THREAD + CHANNELS;
constexpr u64 EMPTY = ~0ull;                                          // place not written yet
constexpr u64 NOT_EMPTY_NAN = 0x7FFFFFFF7FFFFFFFull;
constexpr unsigned ALL = 0xffffffffu;

static_assert(FIRST_NORM_THREAD + 32 * NORM_WARPS == 608, "block of the plan");
static_assert(SLOTS * PIECE_BYTES == RING_BYTES && SLOTS <= FIRST_READY_THREAD, "slots");
static_assert(IMAGE_PIECES * PIECE_F4 == IMAGE_F4, "every piece lies within one image");
static_assert(GROUP_WARPS >= 1 && GROUP_THREADS == 32 * GROUP_WARPS, "whole warps share a slot");
static_assert(SUM_GROUPS * GROUP_WARPS == SUM_WARPS && NORM_GROUPS * GROUP_WARPS == NORM_WARPS, "whole groups");
static_assert(SLOTS % SUM_GROUPS == 0 && SLOTS % NORM_GROUPS == 0, "groups go round the ring in step");
static_assert(AHEAD >= 1 && (SLOTS + AHEAD) * BLOCKS <= PIECES, "the first fills and prefetches exist");
static_assert(PENDING >= 0 && PENDING + 1 + MOST < SLOTS, "a channel is complete in spite of what is held back");
static_assert((SUMMED + 1) * FEWEST > SLOTS, "sums do not run a whole cycle of barriers ahead");
static_assert(BLOCKS % 2 == 0 && STRIDE >= BLOCKS && STRIDE % 16 == 0, "partials are read in pairs");
static_assert(LATE >= 0 && LATE <= CHANNELS, "late channels are channels");

struct __align__(16) Control {
  float4 stats[CHANNELS];
  u64 full[SLOTS];
  u64 done[SLOTS];
  u64 ready[CHANNELS];
  u64 summed[SUMMED];
  float pivot[CHANNELS];
  float partial[2][2][SUM_WARPS];
};

static_assert(RING_BYTES + sizeof(Control) <= 232320, "shared memory of the plan");

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(u64* bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(bar)), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(u64* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(bar)) : "memory");
}

__device__ __forceinline__ void barrier_expect(u64* bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(bar)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ bool barrier_test(u64* bar, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(shared_address(bar)), "r"(parity)
      : "memory");
  return done != 0;
}

__device__ __forceinline__ void barrier_wait(u64* bar, unsigned parity) {
  const unsigned address = shared_address(bar);
  unsigned done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(address), "r"(parity)
        : "memory");
  } while (!done);
}

// An L2 policy for all lines of an access.
template <int KIND>
__device__ __forceinline__ u64 make_policy() {
  static_assert(KIND >= 1 && KIND <= 3, "a known policy");
  u64 policy;
  if constexpr (KIND == 1) {
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else if constexpr (KIND == 2) {
    asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  } else {
    asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}

__device__ __forceinline__ void bulk_load(void* to, const void* from, unsigned bytes, u64* bar, u64 policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
          shared_address(to)),
      "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(bar)), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void bulk_prefetch(const void* from, unsigned bytes, u64 policy) {
  asm volatile("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%0], %1, %2;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes), "l"(policy)
               : "memory");
}

__device__ __forceinline__ void bulk_store(void* to, const void* from, unsigned bytes, u64 policy) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(shared_address(from)), "r"(bytes), "l"(policy)
               : "memory");
}

__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until all but the youngest N groups have read their shared memory.
template <int N>
__device__ __forceinline__ void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void bulk_wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

__device__ __forceinline__ void store_word(u64* to, u64 a) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(a) : "memory");
}

__device__ __forceinline__ void load_pair(const u64* from, u64& a, u64& b) {
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
               : "=l"(a), "=l"(b)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
}

// Two floats in one word that is never EMPTY.
__device__ __forceinline__ u64 packed(float a, float b) {
  const u64 word = (static_cast<u64>(__float_as_uint(b)) << 32) | __float_as_uint(a);
  return word == EMPTY ? NOT_EMPTY_NAN : word;
}

__device__ __forceinline__ float low_float(u64 word) { return __uint_as_float(static_cast<unsigned>(word)); }

__device__ __forceinline__ float high_float(u64 word) { return __uint_as_float(static_cast<unsigned>(word >> 32)); }

// Where piece p lies, in float4. Pieces are numbered by channel, image, position; all divisors are powers of two.
__device__ __forceinline__ unsigned piece_offset(unsigned p) {
  const unsigned c = p / static_cast<unsigned>(CHANNEL_PIECES);
  const unsigned image = (p / static_cast<unsigned>(IMAGE_PIECES)) % static_cast<unsigned>(problem::batch);
  const unsigned position = p % static_cast<unsigned>(IMAGE_PIECES);
  return (image * CHANNELS + c) * static_cast<unsigned>(IMAGE_F4) + position * static_cast<unsigned>(PIECE_F4);
}

__device__ __forceinline__ void fill_slot(const float4* x, float4* ring, Control* control, unsigned p, int slot,
                                          u64 policy) {
  u64* bar = &control->full[slot];
  barrier_expect(bar, PIECE_BYTES);
  bulk_load(ring + slot * PIECE_F4, x + piece_offset(p), PIECE_BYTES, bar, policy);
}

// The thread that stores and refills: its state, and how the oldest stored slot is freed.
struct Mover {
  const float4* x;
  float4* ring;
  Control* control;
  u64 load_policy;
  unsigned next;  // piece of the next refill
  int free_slot;  // its slot
  int held;       // slots that have been stored and not freed yet

  __device__ __forceinline__ void refill() {
    if (next < static_cast<unsigned>(PIECES)) fill_slot(x, ring, control, next, free_slot, load_policy);
    next += BLOCKS;
    --held;
    if (++free_slot == SLOTS) free_slot = 0;
  }
};

// While the next piece is not normalised yet, frees the slots of older pieces, the oldest first.
template <int LEFT>
__device__ __forceinline__ void free_meanwhile(Mover& mover, u64* bar, unsigned parity, bool& is_done) {
  if constexpr (LEFT >= 0) {
    if (!is_done && mover.held > LEFT) {
      bulk_wait_read<LEFT>();
      mover.refill();
      is_done = barrier_test(bar, parity);
    }
    free_meanwhile<LEFT - 1>(mover, bar, parity, is_done);
  }
}

__device__ __forceinline__ void accumulate(float4 v, float pivot, float4& s, float4& q) {
  const float a = v.x - pivot, b = v.y - pivot, c = v.z - pivot, d = v.w - pivot;
  s.x += a;
  s.y += b;
  s.z += c;
  s.w += d;
  q.x = fmaf(a, a, q.x);
  q.y = fmaf(b, b, q.y);
  q.z = fmaf(c, c, q.z);
  q.w = fmaf(d, d, q.w);
}

__device__ __forceinline__ float4 normalised(float4 v, float4 stats) {
  float4 r;
  r.x = fmaf(v.x - stats.x, stats.y, stats.z);
  r.y = fmaf(v.y - stats.x, stats.y, stats.z);
  r.z = fmaf(v.z - stats.x, stats.y, stats.z);
  r.w = fmaf(v.w - stats.x, stats.y, stats.z);
  return r;
}

// Sums over a warp: lanes 0 to 15 get that of a, lanes 16 to 31 that of b.
__device__ __forceinline__ float warp_sums(float a, float b, int lane) {
  const bool upper = (lane & 16) != 0;
  float mine = upper ? b : a;
  const float other = upper ? a : b;
  mine += __shfl_xor_sync(ALL, other, 16);
  mine += __shfl_xor_sync(ALL, mine, 8);
  mine += __shfl_xor_sync(ALL, mine, 4);
  mine += __shfl_xor_sync(ALL, mine, 2);
  mine += __shfl_xor_sync(ALL, mine, 1);
  return mine;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(608, 1)
    batchnorm_bulk_sweep(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                         float* __restrict__ y, u64* partials) {
  extern __shared__ __align__(128) unsigned char memory[];
  float4* ring = reinterpret_cast<float4*>(memory);
  Control* control = reinterpret_cast<Control*>(memory + RING_BYTES);
  const float4* x4 = reinterpret_cast<const float4*>(x);

  const int tid = static_cast<int>(threadIdx.x);
  const int lane = tid % 32;
  const unsigned block = blockIdx.x;

  u64 load_policy = 0;
  float pivot_of_thread = 0.0f;
  if (tid < SLOTS) {
    barrier_init(&control->full[tid], 1);
    barrier_init(&control->done[tid], GROUP_WARPS + 1);  // the normalising warps and the prefetcher
  }
  if (tid >= FIRST_READY_THREAD && tid < FIRST_READY_THREAD + CHANNELS) {
    barrier_init(&control->ready[tid - FIRST_READY_THREAD], 1);
  }
  if (tid >= FIRST_SUMMED_THREAD && tid < FIRST_SUMMED_THREAD + SUMMED) {
    barrier_init(&control->summed[tid - FIRST_SUMMED_THREAD], 1);
  }
  if (tid < FIRST_SUMMED_THREAD + SUMMED) {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  }
  __syncthreads();

  if (tid == 0) {
    load_policy = make_policy<X_LOAD>();
    const u64 prefetch_policy = make_policy<X_PREFETCH>();
    unsigned p = block;
#pragma unroll 1
    for (int slot = 0; slot < SLOTS; ++slot, p += BLOCKS) fill_slot(x4, ring, control, p, slot, load_policy);
#pragma unroll 1
    for (int k = 0; k < AHEAD; ++k, p += BLOCKS) bulk_prefetch(x4 + piece_offset(p), PIECE_BYTES, prefetch_policy);
  }
  if (tid >= FIRST_READY_THREAD && tid < FIRST_READY_THREAD + CHANNELS) {
    const int c = tid - FIRST_READY_THREAD;
    pivot_of_thread = x[c * (IMAGE_F4 * 4)];
    store_word(partials + (c * STRIDE + static_cast<int>(block)), EMPTY);
  }
  cooperative_groups::this_grid().sync();
  if (tid >= FIRST_READY_THREAD && tid < FIRST_READY_THREAD + CHANNELS) {
    control->pivot[tid - FIRST_READY_THREAD] = pivot_of_thread;
  }
  __syncthreads();

  if (tid < FIRST_GATHER_THREAD) {
    // Sends normalised slots to y in order, and refills each as soon as it has been read.
    if (lane == 0) {
      const u64 early_policy = make_policy<Y_EARLY>();
      const u64 late_policy = make_policy<Y_LATE>();
      float4* y4 = reinterpret_cast<float4*>(y);
      Mover mover;
      mover.x = x4;
      mover.ring = ring;
      mover.control = control;
      mover.load_policy = load_policy;
      mover.next = block + SLOTS * BLOCKS;
      mover.free_slot = 0;
      mover.held = 0;
      int slot = 0;
      unsigned parity = 0;
#pragma unroll 1
      for (unsigned p = block; p < static_cast<unsigned>(PIECES); p += BLOCKS) {
        u64* bar = &control->done[slot];
        bool is_done = barrier_test(bar, parity);
        free_meanwhile<PENDING - 1>(mover, bar, parity, is_done);
        if (!is_done) barrier_wait(bar, parity);
        bulk_store(y4 + piece_offset(p), ring + slot * PIECE_F4, PIECE_BYTES,
                   p < static_cast<unsigned>(FIRST_LATE) ? early_policy : late_policy);
        bulk_commit();
        if (++mover.held > PENDING) {
          bulk_wait_read<PENDING>();
          mover.refill();
        }
        if (++slot == SLOTS) {
          slot = 0;
          parity ^= 1;
        }
      }
      bulk_wait_all();
    }
  } else if (tid < FIRST_PREFETCH_THREAD) {
    // Gathers all blocks' partials of a channel, in a fixed order.
    constexpr double one_over_n = 1.0 / (4.0 * IMAGE_F4 * problem::batch);
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c) {
      const double w = static_cast<double>(weight[c]);
      const double b = static_cast<double>(bias[c]);
      const double pivot = static_cast<double>(control->pivot[c]);
      const u64* places = partials + (c * STRIDE + 2 * lane);
      u64 first[GATHER], second[GATHER];
#pragma unroll
      for (int j = 0; j < GATHER; ++j) {
        first[j] = second[j] = (lane + 32 * j < PAIRS) ? EMPTY : 0ull;
      }
      // The others are about as far as this block, so that earlier looks would be in vain.
      barrier_wait(&control->summed[c % SUMMED], static_cast<unsigned>(c / SUMMED) & 1u);
      __syncwarp();
      while (true) {
#pragma unroll
        for (int j = 0; j < GATHER; ++j) {
          if (first[j] == EMPTY || second[j] == EMPTY) load_pair(places + 64 * j, first[j], second[j]);
        }
        bool pending = false;
#pragma unroll
        for (int j = 0; j < GATHER; ++j) pending |= (first[j] == EMPTY || second[j] == EMPTY);
        if (!__any_sync(ALL, pending)) break;
        __nanosleep(32);
      }
      double s = 0.0, q = 0.0;
#pragma unroll
      for (int j = 0; j < GATHER; ++j) {
        s += static_cast<double>(low_float(first[j])) + static_cast<double>(low_float(second[j]));
        q += static_cast<double>(high_float(first[j])) + static_cast<double>(high_float(second[j]));
      }
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        s += __shfl_xor_sync(ALL, s, step);
        q += __shfl_xor_sync(ALL, q, step);
      }
      if (lane == 0) {
        const double shifted = s * one_over_n;
        double variance = q * one_over_n - shifted * shifted;
        if (variance < 0.0) variance = 0.0;
        variance += problem::eps;
        const double mean = pivot + shifted;
        const float mean_f = static_cast<float>(mean);
        double inverse = static_cast<double>(rsqrtf(static_cast<float>(variance)));
        inverse = inverse * (1.5 - 0.5 * variance * inverse * inverse);
        const double scale = w * inverse;
        const double shift = b - (mean - static_cast<double>(mean_f)) * scale;
        control->stats[c] = make_float4(mean_f, static_cast<float>(scale), static_cast<float>(shift), 0.0f);
        barrier_arrive(&control->ready[c]);
      }
      __syncwarp();
    }
  } else if (tid < FIRST_SUM_THREAD) {
    // Prefetches into L2, one piece for each refill that has landed. Its arrival at the done barrier
    // keeps the ring from overtaking it.
    if (lane == 0) {
      const u64 prefetch_policy = make_policy<X_PREFETCH>();
      int slot = 0;
      unsigned parity = 0;
#pragma unroll 1
      for (unsigned p = block; p < static_cast<unsigned>(PIECES); p += BLOCKS) {
        barrier_wait(&control->full[slot], parity);
        barrier_arrive(&control->done[slot]);
        const unsigned later = p + AHEAD * BLOCKS;
        if (p >= static_cast<unsigned>(SLOTS * BLOCKS) && later < static_cast<unsigned>(PIECES)) {
          bulk_prefetch(x4 + piece_offset(later), PIECE_BYTES, prefetch_policy);
        }
        if (++slot == SLOTS) {
          slot = 0;
          parity ^= 1;
        }
      }
    }
  } else if (tid < FIRST_NORM_THREAD) {
    // Groups of warps sum slots in turn, each as soon as it has arrived.
    const int warp = (tid - FIRST_SUM_THREAD) / 32;
    const int group = (tid - FIRST_SUM_THREAD) / GROUP_THREADS;
    const int t = (tid - FIRST_SUM_THREAD) % GROUP_THREADS;
    unsigned p = block + static_cast<unsigned>(BLOCKS * group);
    int slot = group;
    unsigned parity = 0;
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c) {
      const float pivot = control->pivot[c];
      const unsigned end = static_cast<unsigned>(CHANNEL_PIECES * (c + 1));
      float4 s4 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      float4 q4 = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 1
      while (p < end) {
        barrier_wait(&control->full[slot], parity);
        const float4* data = ring + (slot * PIECE_F4 + t);
        float4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) v[j] = data[j * GROUP_THREADS];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) accumulate(v[j], pivot, s4, q4);
        p += BLOCKS * SUM_GROUPS;
        slot += SUM_GROUPS;
        if (slot >= SLOTS) {
          slot -= SLOTS;
          parity ^= 1;
        }
      }
      __syncwarp();
      const float total = warp_sums((s4.x + s4.y) + (s4.z + s4.w), (q4.x + q4.y) + (q4.z + q4.w), lane);
      if ((lane & 15) == 0) control->partial[c & 1][lane >> 4][warp] = total;
      __syncwarp();
      asm volatile("bar.sync 1, 256;" ::: "memory");
      if (warp == (c & (SUM_WARPS - 1))) {
        double mine = static_cast<double>(control->partial[c & 1][lane >> 4][lane & (SUM_WARPS - 1)]);
#pragma unroll
        for (int step = SUM_WARPS / 2; step > 0; step /= 2) mine += __shfl_xor_sync(ALL, mine, step);
        const double squares = __shfl_xor_sync(ALL, mine, 16);
        if (lane == 0) {
          store_word(partials + (c * STRIDE + static_cast<int>(block)),
                     packed(static_cast<float>(mine), static_cast<float>(squares)));
          barrier_arrive(&control->summed[c % SUMMED]);
        }
        __syncwarp();
      }
    }
  } else {
    // Groups of warps normalise slots in turn, in place, and hand them to the mover. The sums have been
    // read by then, because a channel's statistics contain this block's sums of all of the channel's slots.
    const int group = (tid - FIRST_NORM_THREAD) / GROUP_THREADS;
    const int t = (tid - FIRST_NORM_THREAD) % GROUP_THREADS;
    unsigned p = block + static_cast<unsigned>(BLOCKS * group);
    int slot = group;
    unsigned parity = 0;
#pragma unroll 1
    for (int c = 0; c < CHANNELS; ++c) {
      barrier_wait(&control->ready[c], 0);
      const float4 stats = control->stats[c];
      const unsigned end = static_cast<unsigned>(CHANNEL_PIECES * (c + 1));
#pragma unroll 1
      while (p < end) {
        barrier_wait(&control->full[slot], parity);
        float4* data = ring + (slot * PIECE_F4 + t);
        float4 v[UNROLL];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) v[j] = data[j * GROUP_THREADS];
#pragma unroll
        for (int j = 0; j < UNROLL; ++j) data[j * GROUP_THREADS] = normalised(v[j], stats);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) barrier_arrive(&control->done[slot]);
        p += BLOCKS * NORM_GROUPS;
        slot += NORM_GROUPS;
        if (slot >= SLOTS) {
          slot -= SLOTS;
          parity ^= 1;
        }
      }
    }
  }
}

}  // namespace own_sizes

// ---------------------------------------------------------------------------------------------------
// All other sizes: plain kernels, right with any grid.
// ---------------------------------------------------------------------------------------------------
namespace other_sizes {
namespace {

constexpr long long rounded_up_quotient(long long a, long long b) { return (a + b - 1) / b; }
constexpr long long smaller(long long a, long long b) { return a < b ? a : b; }

constexpr int THREADS = 256;
constexpr unsigned ALL = 0xffffffffu;
constexpr long long CHANNELS = problem::channels;
constexpr long long PLANE = 1ll * problem::height * problem::width;  // elements of a channel of an image
constexpr long long COUNT = PLANE * problem::batch;                  // elements of a channel
constexpr long long TOTAL = COUNT * CHANNELS;
// Shares of a channel that are summed apart. The plan's grid and workspace follow from the same numbers:
// CHANNELS * SPLITS < CHANNELS + 4096.
constexpr long long SPLITS = smaller(rounded_up_quotient(COUNT, 8192), rounded_up_quotient(4096, CHANNELS));
constexpr long long ITEMS = CHANNELS * SPLITS;
constexpr int SUM_TEAM = COUNT <= 2048 ? 32 : THREADS;               // threads that sum a share
constexpr int STATS_TEAM = SPLITS <= 64 ? 32 : THREADS;              // threads that add up a channel's shares
constexpr int PACK_OF_PLANE = PLANE % 4 == 0 ? 4 : 1;                // floats loaded at once

static_assert(SPLITS >= 1 && ITEMS < CHANNELS + 4096, "workspace of the plan");

template <bool WIDE>
struct IndexOf {
  typedef unsigned type;
};
template <>
struct IndexOf<true> {
  typedef unsigned long long type;
};
typedef IndexOf<(TOTAL >= (1ll << 31))>::type Index;  // grids are small enough for sums not to wrap around

__device__ __forceinline__ bool aligned(const void* p) {
  return (reinterpret_cast<unsigned long long>(p) & 15ull) == 0ull;
}

template <int PACK>
__device__ __forceinline__ void load_pack(const float* from, float (&v)[PACK]) {
  static_assert(PACK == 1 || PACK == 4, "a known pack");
  if constexpr (PACK == 4) {
    const float4 f = *reinterpret_cast<const float4*>(from);
    v[0] = f.x;
    v[1] = f.y;
    v[2] = f.z;
    v[3] = f.w;
  } else {
    v[0] = *from;
  }
}

template <int PACK>
__device__ __forceinline__ void store_pack(float* to, const float (&v)[PACK]) {
  static_assert(PACK == 1 || PACK == 4, "a known pack");
  if constexpr (PACK == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    *to = v[0];
  }
}

// Sums over a warp or over the whole block, in a fixed order; every thread of the team gets them.
template <int TEAM>
__device__ __forceinline__ void team_sums(double& a, double& b, double2* shared) {
  static_assert(TEAM == 32 || TEAM == THREADS, "a warp or a block");
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    a += __shfl_xor_sync(ALL, a, step);
    b += __shfl_xor_sync(ALL, b, step);
  }
  if constexpr (TEAM > 32) {
    __syncthreads();  // what was there before has been read
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = make_double2(a, b);
    __syncthreads();
    a = 0.0;
    b = 0.0;
#pragma unroll
    for (int w = 0; w < TEAM / 32; ++w) {
      a += shared[w].x;
      b += shared[w].y;
    }
  }
}

// Sums of the shares of all channels, of the differences to the channel's first element.
template <int PACK>
__device__ __forceinline__ void sum_shares(const float* __restrict__ x, double2* __restrict__ sums, double2* shared) {
  constexpr Index channels = static_cast<Index>(CHANNELS);
  constexpr Index splits = static_cast<Index>(SPLITS);
  constexpr Index items = static_cast<Index>(ITEMS);
  constexpr Index plane = static_cast<Index>(PLANE);
  constexpr Index plane_packs = static_cast<Index>(PLANE / PACK);
  constexpr Index packs = static_cast<Index>(COUNT / PACK);
  constexpr Index share = static_cast<Index>(rounded_up_quotient(COUNT / PACK, SPLITS));
  constexpr unsigned team = SUM_TEAM;
  constexpr unsigned teams = THREADS / SUM_TEAM;
  const unsigned t = threadIdx.x % team;
  const Index step = static_cast<Index>(gridDim.x) * teams;
#pragma unroll 1
  for (Index item = static_cast<Index>(blockIdx.x) * teams + threadIdx.x / team; item < items; item += step) {
    const Index c = item % channels;
    const Index split = item / channels;
    const Index begin = split * share;
    const Index end = begin + share < packs ? begin + share : packs;
    const double pivot = static_cast<double>(x[c * plane]);
    double s[PACK], q[PACK];
#pragma unroll
    for (int k = 0; k < PACK; ++k) s[k] = q[k] = 0.0;
#pragma unroll 4
    for (Index i = begin + t; i < end; i += team) {
      const Index image = i / plane_packs;
      const Index position = i % plane_packs;
      float v[PACK];
      load_pack<PACK>(x + ((image * channels + c) * plane + position * PACK), v);
#pragma unroll
      for (int k = 0; k < PACK; ++k) {
        const double d = static_cast<double>(v[k]) - pivot;
        s[k] += d;
        q[k] = fma(d, d, q[k]);
      }
    }
    double sum = s[0], square = q[0];
#pragma unroll
    for (int k = 1; k < PACK; ++k) {
      sum += s[k];
      square += q[k];
    }
    __syncwarp();
    team_sums<SUM_TEAM>(sum, square, shared);
    if (t == 0) sums[c * splits + split] = make_double2(sum, square);
  }
}

template <int PACK>
__device__ __forceinline__ void normalise_all(const float* __restrict__ x, const float4* __restrict__ stats,
                                              float* __restrict__ y) {
  constexpr Index channels = static_cast<Index>(CHANNELS);
  constexpr Index plane_packs = static_cast<Index>(PLANE / PACK);
  constexpr Index packs = static_cast<Index>(TOTAL / PACK);
  const Index step = static_cast<Index>(gridDim.x) * THREADS;
#pragma unroll 4
  for (Index i = static_cast<Index>(blockIdx.x) * THREADS + threadIdx.x; i < packs; i += step) {
    const float4 of_channel = stats[(i / plane_packs) % channels];
    float v[PACK];
    load_pack<PACK>(x + i * PACK, v);
#pragma unroll
    for (int k = 0; k < PACK; ++k) v[k] = fmaf(v[k] - of_channel.x, of_channel.y, of_channel.z);
    store_pack<PACK>(y + i * PACK, v);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
    batchnorm_other_sums(const float* __restrict__ x, double2* __restrict__ sums) {
  __shared__ double2 shared[THREADS / 32];
  if (PACK_OF_PLANE == 1 || aligned(x)) {
    sum_shares<PACK_OF_PLANE>(x, sums, shared);
  } else {
    sum_shares<1>(x, sums, shared);
  }
}

extern "C" __global__ void __launch_bounds__(256)
    batchnorm_other_statistics(const float* __restrict__ x, const double2* __restrict__ sums,
                               const float* __restrict__ weight, const float* __restrict__ bias,
                               float4* __restrict__ stats) {
  __shared__ double2 shared[THREADS / 32];
  constexpr Index channels = static_cast<Index>(CHANNELS);
  constexpr Index splits = static_cast<Index>(SPLITS);
  constexpr Index plane = static_cast<Index>(PLANE);
  constexpr unsigned team = STATS_TEAM;
  constexpr unsigned teams = THREADS / STATS_TEAM;
  const unsigned t = threadIdx.x % team;
  const Index step = static_cast<Index>(gridDim.x) * teams;
#pragma unroll 1
  for (Index c = static_cast<Index>(blockIdx.x) * teams + threadIdx.x / team; c < channels; c += step) {
    double sum = 0.0, square = 0.0;
#pragma unroll 4
    for (Index i = t; i < splits; i += team) {
      const double2 of_share = sums[c * splits + i];
      sum += of_share.x;
      square += of_share.y;
    }
    __syncwarp();
    team_sums<STATS_TEAM>(sum, square, shared);
    if (t == 0) {
      constexpr double n = static_cast<double>(COUNT);
      const double shifted = sum / n;
      double variance = square / n - shifted * shifted;
      if (variance < 0.0) variance = 0.0;
      const double mean = static_cast<double>(x[c * plane]) + shifted;
      const float mean_f = static_cast<float>(mean);
      const double scale = static_cast<double>(weight[c]) / sqrt(variance + problem::eps);
      const double shift = static_cast<double>(bias[c]) - (mean - static_cast<double>(mean_f)) * scale;
      stats[c] = make_float4(mean_f, static_cast<float>(scale), static_cast<float>(shift), 0.0f);
    }
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(256)
    batchnorm_other_normalise(const float* __restrict__ x, const float4* __restrict__ stats, float* __restrict__ y) {
  if (PACK_OF_PLANE == 1 || (aligned(x) && aligned(y))) {
    normalise_all<PACK_OF_PLANE>(x, stats, y);
  } else {
    normalise_all<1>(x, stats, y);
  }
}

}  // namespace other_sizes
