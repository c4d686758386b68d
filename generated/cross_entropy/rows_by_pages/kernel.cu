#include "problem.h"

#ifndef RING
#define RING 5
#endif
#ifndef GROUPS
#define GROUPS 16
#endif
#ifndef PAGE_PERCENT
#define PAGE_PERCENT 88
#endif
#ifndef STAGGER
#define STAGGER 8
#endif
#ifndef TOUCH
#define TOUCH 1
#endif
#ifndef ANY_BLOCKS
#define ANY_BLOCKS 2112
#endif

// The kernel for 32768 x 4096, with these constants whatever problem.h says.
namespace own_sizes {

namespace problem {
inline constexpr int rows = 32768;
inline constexpr int classes = 4096;
}  // namespace problem

namespace {

constexpr unsigned kRing = RING;            // rows of shared memory
constexpr unsigned kFullBars = 2 * kRing;   // a full barrier belongs to one team for good
constexpr unsigned kTeams = 2;              // teams take alternate rows
constexpr unsigned kTeamWarps = 4;
constexpr unsigned kConsumers = kTeams * kTeamWarps;
constexpr unsigned kProducer = kConsumers;  // this warp, then one merging warp for each team
constexpr unsigned kThreads = (kConsumers + 1 + kTeams) * 32;
constexpr unsigned kWarpElements = problem::classes / kTeamWarps;
constexpr int kVectors = kWarpElements / 128;
constexpr unsigned kRowBytes = problem::classes * 4u;
constexpr unsigned kPairBytes = 16u;
constexpr unsigned kRows = problem::rows;
constexpr unsigned kEnd = 0x80000000u;      // of a slot's word: no row

// Pages of address translation.
constexpr unsigned kGroups = GROUPS;        // the grid has at least as many blocks
constexpr unsigned kPageBytes = 2u << 20;
constexpr unsigned kPageRows = kPageBytes / kRowBytes;
constexpr unsigned kPageLabelBytes = kPageRows * 8u;
constexpr unsigned kGroupPages = static_cast<unsigned>(
    static_cast<unsigned long long>(problem::rows) * PAGE_PERCENT / 100 / (kPageRows * kGroups));
constexpr unsigned kGroupRows = kGroupPages * kPageRows;
constexpr unsigned kPagedRows = kGroupRows * kGroups;
constexpr unsigned kTailPages = (kRows - kPagedRows) / kPageRows;
constexpr unsigned kLabelArea = kGroupPages * kPageLabelBytes;  // then a pair for each slot

constexpr float kLog2e = 1.44269504088896340736f;
constexpr double kInvLog2e = 1.0 / static_cast<double>(kLog2e);
constexpr float kLow = -1.0e38f;

// The packed result: 9 bits of arrivals, 9 bits of outsized arrivals, 46 bits of fixed point.
constexpr int kFieldBits = 9;
constexpr unsigned kFieldMask = (1u << kFieldBits) - 1u;
constexpr double kFixedScale = 1048576.0;   // 2^20
constexpr double kFixedLimit = 1024.0;      // 2^15 rows * 2^10 * 2^20 = 2^45

static_assert(problem::classes == 4096, "a row is four warps of eight float4 a lane");
static_assert(problem::rows == 32768, "the fixed-point field is meant for this many rows");
static_assert(kPageRows == 128 && kPageLabelBytes == 1024, "shifts below");
static_assert(kRing >= 3 && kRing <= 12, "ring");
static_assert(kGroups >= 4 && kGroups <= 66, "groups");
static_assert(kGroupPages >= 1 && kGroupPages <= 32, "one label barrier a lane");
static_assert(kPagedRows + kPageRows <= kRows, "room for the shift to a page boundary");
static_assert(kRing * (256 / kGroups + 1) <= kGroupRows, "the first ring-full lies in pages");
static_assert(kThreads == 352, "as in the plan");

// All zero before and after every run.
__device__ __align__(128) unsigned int g_group[kGroups * 32u];  // a line for each group
__device__ __align__(128) unsigned int g_ticket = 0u;
__device__ __align__(128) unsigned long long g_packed = 0ull;
__device__ __align__(128) double g_loose = 0.0;

__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void barrier_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned bar, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n\t"
        ".reg .pred p;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, p;\n\t"
        "}"
        : "=r"(done)
        : "r"(bar), "r"(parity)
        : "memory");
  } while (done == 0u);
}

__device__ __forceinline__ float4 read_vector(unsigned address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ __forceinline__ unsigned read_word(unsigned address) {
  unsigned v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

__device__ __forceinline__ float read_scalar(unsigned address) {
  float v;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(address) : "memory");
  return v;
}

__device__ __forceinline__ void write_word(unsigned address, unsigned value) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// inc, not add: an add would be aggregated over the warp, with a shuffle that waits for it.
__device__ __forceinline__ unsigned take_ticket(unsigned int* counter) {
  unsigned t;
  asm volatile("atom.relaxed.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(t)
               : "l"(__cvta_generic_to_global(counter)), "r"(0xffffffffu));
  return t;
}

__device__ __forceinline__ unsigned long long stream_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}

__device__ __forceinline__ void copy_row(unsigned destination, const float* source, unsigned bar,
                                         unsigned long long policy) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], %4;" ::"r"(destination),
      "l"(source), "r"(kRowBytes), "r"(bar), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void copy_labels(unsigned destination, const long long* source,
                                            unsigned bytes, unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(destination),
      "l"(source), "r"(bytes), "r"(bar)
      : "memory");
}

// A real load, and so a translation, that needs no register and that nobody waits for.
__device__ __forceinline__ void touch(unsigned sink, const float* source) {
#if TOUCH
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(sink), "l"(source) : "memory");
#endif
}

__device__ __forceinline__ int ordered_key(int bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);  // its own inverse
}

struct Producer {
  const float* logits;
  const long long* label;
  unsigned long long policy;
  unsigned ring_at, info_at, label_at, full_at, empty_at, label_bars, sink_at;
  unsigned lead;      // rows before the first page boundary; they come last
  unsigned group;
  unsigned rank;      // of the block in its group
  unsigned members;   // blocks of the group
  unsigned base;      // first row of the group's first page
  unsigned turn;      // where in a page the group begins
  unsigned prepared;  // pages whose labels are on their way
  unsigned slot;
  unsigned cycle;     // parity of the turn of the ring
  unsigned tickets;   // tickets of the group that stand for rows
  unsigned near_end;  // the first tickets of the tail are taken
  unsigned u0, u1, u2;

  __device__ __forceinline__ void wait_free() const {
    barrier_wait(empty_at + 8u * slot, cycle ^ 1u);
  }
  __device__ __forceinline__ unsigned full_bar() const {
    return full_at + 8u * (slot + (cycle != 0u ? kRing : 0u));
  }
  __device__ __forceinline__ void advance() {
    ++slot;
    if (slot == kRing) {
      slot = 0u;
      cycle ^= 1u;
    }
  }
  __device__ __forceinline__ const float* row_at(unsigned row) const {
    return logits + static_cast<size_t>(row) * problem::classes;
  }
  __device__ __forceinline__ unsigned tail_row(unsigned position) const {
    const unsigned row = lead + position;
    return row >= kRows ? row - kRows : row;
  }

  __device__ __forceinline__ void post_labels(unsigned page) const {
    const unsigned bar = label_bars + 8u * page;
    barrier_expect(bar, kPageLabelBytes);
    copy_labels(label_at + page * kPageLabelBytes,
                label + (base + page * (kGroups * kPageRows)), kPageLabelBytes, bar);
  }
  // The block has come to this page: translation and labels of the next one.
  __device__ __forceinline__ void prepare(unsigned page) {
#pragma unroll 1
    while (prepared <= page + 1u) {
      if (prepared < kGroupPages) {
        touch(sink_at, row_at(base + prepared * (kGroups * kPageRows) +
                              ((turn + rank) & (kPageRows - 1u))));
        post_labels(prepared);
      } else {
        // The blocks share the pages of the tail.
        touch(sink_at, row_at(tail_row(kPagedRows + (blockIdx.x % kTailPages) * kPageRows)));
      }
      ++prepared;
    }
  }

  // Row s of the group's sequence of pages.
  __device__ __forceinline__ void post_page(unsigned s) const {
    const unsigned page = s / kPageRows;
    const unsigned within = (s + turn) & (kPageRows - 1u);
    const unsigned row = base + page * (kGroups * kPageRows) + within;
    const unsigned bar = full_bar();
    write_word(info_at + 4u * slot, page * kPageLabelBytes + within * 8u);
    barrier_expect(bar, kRowBytes);
    copy_row(ring_at + slot * kRowBytes, row_at(row), bar, policy);
  }
  // A row that brings its pair of labels.
  __device__ __forceinline__ void post_tail(unsigned row) const {
    const unsigned pair = kLabelArea + kPairBytes * slot;
    const unsigned bar = full_bar();
    write_word(info_at + 4u * slot, pair + (row & 1u) * 8u);
    barrier_expect(bar, kRowBytes + kPairBytes);
    copy_row(ring_at + slot * kRowBytes, row_at(row), bar, policy);
    copy_labels(label_at + pair, label + (row & ~1u), kPairBytes, bar);
  }
  __device__ __forceinline__ void take_first_of_tail() {
    near_end = 1u;
    u0 = take_ticket(&g_ticket);
    u1 = take_ticket(&g_ticket);
    u2 = take_ticket(&g_ticket);
  }

  // Uses a ticket and takes another in its place; false where the rows are at their end.
  __device__ __forceinline__ bool serve_page(unsigned& ticket) {
    wait_free();
    const unsigned used = ticket;
    if (used >= tickets) return false;
    const unsigned s = kRing * members + used;
    post_page(s);
    ticket = take_ticket(&g_group[group * 32u]);
    advance();
    const unsigned page = s / kPageRows;
    if (prepared <= page + 1u) prepare(page);
    if (near_end == 0u && used + 6u * members >= tickets) take_first_of_tail();
    return true;
  }
  __device__ __forceinline__ bool serve_tail(unsigned& ticket) {
    wait_free();
    const unsigned position = kPagedRows + ticket;
    if (position >= kRows) return false;
    post_tail(tail_row(position));
    ticket = take_ticket(&g_ticket);
    advance();
    return true;
  }
  __device__ __forceinline__ void post_end(unsigned mark) const {
    write_word(info_at + 4u * slot, mark);
    barrier_arrive(full_bar());
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(352, 1)
ce_page_groups(const float* __restrict__ logits, const long long* __restrict__ label,
               float* __restrict__ loss) {
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ __align__(128) unsigned char labels[kLabelArea + kRing * kPairBytes];
  __shared__ __align__(8) unsigned long long full[kFullBars];
  __shared__ __align__(8) unsigned long long empty[kRing];
  __shared__ __align__(8) unsigned long long labels_full[kGroupPages];
  __shared__ __align__(8) unsigned long long table_full[kTeams][2];
  __shared__ __align__(8) unsigned long long table_empty[kTeams][2];
  __shared__ __align__(8) float2 table[kTeams][2][kTeamWarps][32];
  __shared__ float table_target[kTeams][2][32];
  __shared__ unsigned table_count[kTeams][2];
  __shared__ unsigned slot_info[kRing];
  __shared__ __align__(16) unsigned touch_sink[4];

  const unsigned warp = threadIdx.x >> 5;
  const unsigned lane = threadIdx.x & 31u;

  const unsigned ring_at = shared_address(ring);
  const unsigned label_at = shared_address(labels);
  const unsigned info_at = shared_address(slot_info);
  const unsigned full_at = shared_address(full);
  const unsigned empty_at = shared_address(empty);
  const unsigned label_bars = shared_address(labels_full);

  Producer producer;
  producer.logits = logits;
  producer.label = label;
  producer.policy = 0ull;
  producer.ring_at = ring_at;
  producer.info_at = info_at;
  producer.label_at = label_at;
  producer.full_at = full_at;
  producer.empty_at = empty_at;
  producer.label_bars = label_bars;
  producer.sink_at = shared_address(touch_sink);
  // Even, so that labels can be copied from there on.
  producer.lead =
      (((0u - static_cast<unsigned>(reinterpret_cast<unsigned long long>(logits))) &
        (kPageBytes - 1u)) /
       kRowBytes) &
      ~1u;
  producer.group = blockIdx.x % kGroups;
  producer.rank = blockIdx.x / kGroups;
  producer.members = (gridDim.x - 1u - producer.group) / kGroups + 1u;
  producer.base = producer.lead + producer.group * kPageRows;
  producer.turn = (producer.group * STAGGER) & (kPageRows - 1u);
  producer.prepared = 1u;
  producer.slot = 0u;
  producer.cycle = 0u;
  producer.tickets = kGroupRows - kRing * producer.members;
  producer.near_end = 0u;
  producer.u0 = 0u;
  producer.u1 = 0u;
  producer.u2 = 0u;

  if (warp == kProducer) {
    if (lane < kFullBars) barrier_init(full_at + 8u * lane, 1u);
    if (lane < kRing) barrier_init(empty_at + 8u * lane, kTeamWarps);
    if (lane < kGroupPages) barrier_init(label_bars + 8u * lane, 1u);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (lane == 0u) {
      producer.policy = stream_policy();
      // The first ring-full is static. The first page's labels come right behind its first row.
      producer.post_page(producer.rank);
      producer.advance();
      producer.post_labels(0u);
#pragma unroll 1
      for (unsigned k = 1u; k < kRing; ++k) {
        producer.post_page(k * producer.members + producer.rank);
        producer.advance();
      }
    }
    __syncwarp();
  } else if (warp > kProducer) {
    const unsigned team = warp - kProducer - 1u;
    if (lane < 2u) {
      barrier_init(shared_address(&table_full[team][lane]), kTeamWarps);
      barrier_init(shared_address(&table_empty[team][lane]), 1u);
    }
  }
  __syncthreads();

  if (warp < kConsumers) {
    const unsigned team = warp / kTeamWarps;
    const unsigned member = warp % kTeamWarps;
    const unsigned mine_at = member * (kWarpElements * 4u) + lane * 16u;

    unsigned bar = team;  // sequence number modulo 2 * kRing
    unsigned parity = 0u;
    unsigned n = 0u;      // rows of this team so far
    unsigned seen = 0xffffffffu;  // page whose labels are known to be there

#pragma unroll 1
    for (;; ++n) {
      const unsigned r = n & 31u;
      const unsigned buffer = (n >> 5) & 1u;
      const unsigned slot = bar >= kRing ? bar - kRing : bar;
      const unsigned data = ring_at + slot * kRowBytes;

      if (r == 0u && n >= 64u) {
        barrier_wait(shared_address(&table_empty[team][buffer]), ((n >> 6) - 1u) & 1u);
      }
      barrier_wait(full_at + 8u * bar, parity);

      const unsigned info = read_word(info_at + 4u * slot);
      float4 v[kVectors];
#pragma unroll
      for (int j = 0; j < kVectors; ++j) v[j] = read_vector(data + mine_at + j * 512u);

      if (info >= kEnd) break;

      if (info < kLabelArea) {
        const unsigned page = info / kPageLabelBytes;
        if (page != seen) {
          barrier_wait(label_bars + 8u * page, 0u);
          seen = page;
        }
      }
      const unsigned target = read_word(label_at + info);
      const bool has_target = target / kWarpElements == member;
      float picked = 0.0f;
      if (has_target) picked = read_scalar(data + target * 4u);

      // This warp's part of the row is in registers.
      __syncwarp();
      if (lane == 0u) barrier_arrive(empty_at + 8u * slot);

      float m0 = v[0].x, m1 = v[0].y, m2 = v[0].z, m3 = v[0].w;
#pragma unroll
      for (int j = 1; j < kVectors; ++j) {
        m0 = fmaxf(m0, v[j].x);
        m1 = fmaxf(m1, v[j].y);
        m2 = fmaxf(m2, v[j].z);
        m3 = fmaxf(m3, v[j].w);
      }
      const float own = fmaxf(fmaxf(m0, m1), fmaxf(m2, m3));
      const int key = __reduce_max_sync(0xffffffffu, ordered_key(__float_as_int(own)));
      const float largest = fmaxf(__int_as_float(ordered_key(key)), kLow);

      const float reference = __fmul_rn(largest, kLog2e);
      const float minus = -reference;
      float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
#pragma unroll
      for (int j = 0; j < kVectors; ++j) {
        s0 += ex2(__fmaf_rn(v[j].x, kLog2e, minus));
        s1 += ex2(__fmaf_rn(v[j].y, kLog2e, minus));
        s2 += ex2(__fmaf_rn(v[j].z, kLog2e, minus));
        s3 += ex2(__fmaf_rn(v[j].w, kLog2e, minus));
      }
      float sum = (s0 + s1) + (s2 + s3);
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);

      if (lane == 0u) {
        table[team][buffer][member][r] = make_float2(reference, sum);
        if (has_target) table_target[team][buffer][r] = picked;
        if (r == 31u) {
          if (member == 0u) table_count[team][buffer] = 32u;
          barrier_arrive(shared_address(&table_full[team][buffer]));
        }
      }

      bar += kTeams;
      if (bar >= kFullBars) {
        bar -= kFullBars;
        parity ^= 1u;
      }
    }

    // The last group, with fewer than 32 rows and perhaps none.
    if (lane == 0u) {
      const unsigned buffer = (n >> 5) & 1u;
      if (member == 0u) table_count[team][buffer] = n & 31u;
      barrier_arrive(shared_address(&table_full[team][buffer]));
    }
  } else if (warp == kProducer) {
    if (lane == 0u) {
      unsigned int* const counter = &g_group[producer.group * 32u];
      unsigned t0 = take_ticket(counter);
      unsigned t1 = take_ticket(counter);
      unsigned t2 = take_ticket(counter);

      // With the first ring-full on its way: translation and labels of the second page.
      producer.prepare(((kRing - 1u) * producer.members + producer.rank) / kPageRows);

      // Tickets of one thread ascend: where one is beyond the pages, so are the later ones.
#pragma unroll 1
      while (producer.serve_page(t0) && producer.serve_page(t1) && producer.serve_page(t2)) {
      }

      if (producer.near_end == 0u) producer.take_first_of_tail();
      unsigned u0 = producer.u0;
      unsigned u1 = producer.u1;
      unsigned u2 = producer.u2;
#pragma unroll 1
      while (producer.serve_tail(u0) && producer.serve_tail(u1) && producer.serve_tail(u2)) {
      }

      // An end mark for each team, made from all tickets on their way, so that none of them
      // outlives it. The slot of the first is free already.
      const unsigned mark = kEnd | t0 | t1 | t2 | u0 | u1 | u2;
      producer.post_end(mark);
      producer.advance();
      producer.wait_free();
      producer.post_end(mark);
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
  } else {
    const unsigned team = warp - kProducer - 1u;
    long long fixed = 0;
    double loose = 0.0;
    bool outsized = false;

#pragma unroll 1
    for (unsigned g = 0u;; ++g) {
      const unsigned buffer = g & 1u;
      barrier_wait(shared_address(&table_full[team][buffer]), (g >> 1) & 1u);
      const unsigned count = table_count[team][buffer];
      float2 p[kTeamWarps];
#pragma unroll
      for (unsigned w = 0; w < kTeamWarps; ++w) p[w] = table[team][buffer][w][lane];
      const float picked = table_target[team][buffer][lane];
      __syncwarp();
      if (lane == 0u) barrier_arrive(shared_address(&table_empty[team][buffer]));

      if (lane < count) {
        float top = p[0].x;
#pragma unroll
        for (unsigned w = 1; w < kTeamWarps; ++w) top = fmaxf(top, p[w].x);
        float sum = 0.0f;
#pragma unroll
        for (unsigned w = 0; w < kTeamWarps; ++w) {
          sum = __fmaf_rn(p[w].y, ex2(p[w].x - top), sum);
        }
        const double row_loss =
            (static_cast<double>(top) + static_cast<double>(log2f(sum))) * kInvLog2e -
            static_cast<double>(picked);
        if (fabs(row_loss) < kFixedLimit) {
          fixed += __double2ll_rn(row_loss * kFixedScale);
        } else {
          loose += row_loss;
          outsized = true;
        }
      }
      if (count < 32u) break;
    }
    __syncwarp();

#pragma unroll
    for (int d = 16; d > 0; d >>= 1) fixed += __shfl_xor_sync(0xffffffffu, fixed, d);
    const bool any_outsized = __any_sync(0xffffffffu, outsized) != 0;
    if (any_outsized) {
#pragma unroll
      for (int d = 16; d > 0; d >>= 1) loose += __shfl_xor_sync(0xffffffffu, loose, d);
    }

    if (lane == 0u) {
      if (any_outsized) {
        atomicAdd(&g_loose, loose);
        __threadfence();
      }
      const unsigned long long mine =
          (static_cast<unsigned long long>(fixed) << (2 * kFieldBits)) +
          (any_outsized ? (1ull << kFieldBits) : 0ull) + 1ull;
      const unsigned long long now = atomicAdd(&g_packed, mine) + mine;
      if ((static_cast<unsigned>(now) & kFieldMask) == kTeams * gridDim.x) {
        // The last of all: every row is in, and no ticket is on its way any more.
        double total = static_cast<double>(static_cast<long long>(now) >> (2 * kFieldBits)) *
                       (1.0 / kFixedScale);
        if (((static_cast<unsigned>(now) >> kFieldBits) & kFieldMask) != 0u) {
          __threadfence();
          total += __ldcg(&g_loose);
          g_loose = 0.0;
        }
        loss[0] = static_cast<float>(total * (1.0 / problem::rows));
        g_packed = 0ull;
        g_ticket = 0u;
#pragma unroll
        for (unsigned i = 0; i < kGroups; ++i) g_group[i * 32u] = 0u;
      }
    }
  }
}

}  // namespace own_sizes

// Plain kernels for all other sizes, with the sizes of problem.h.
namespace any_size {

namespace {

constexpr long long kRows = ::problem::rows;
constexpr long long kClasses = ::problem::classes;
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kBlocks = kRows < ANY_BLOCKS ? static_cast<int>(kRows) : ANY_BLOCKS;  // as in the plan
constexpr bool kRowPerBlock = kClasses > 1024;  // else a row for each warp

__device__ double g_block_sum[ANY_BLOCKS];  // every block writes its own in every run

__device__ __forceinline__ float lowest() { return __int_as_float(static_cast<int>(0xff800000u)); }

__device__ __forceinline__ float maximum_of_warp(float m) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, d));
  return m;
}

__device__ __forceinline__ double sum_of_warp(double s) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
  return s;
}

// Elements first, first + step, ... of a row.
__device__ __forceinline__ float part_maximum(const float* __restrict__ x, int first, int step) {
  float m = lowest();
#pragma unroll 4
  for (long long i = first; i < kClasses; i += step) m = fmaxf(m, x[i]);
  return m;
}

__device__ __forceinline__ double part_sum(const float* __restrict__ x, int first, int step,
                                           float largest) {
  const double reference = static_cast<double>(largest);
  double s = 0.0;
#pragma unroll 4
  for (long long i = first; i < kClasses; i += step) {
    s += exp(static_cast<double>(x[i]) - reference);
  }
  return s;
}

// Both terms are at least zero, so nothing cancels; one class gives exactly zero.
__device__ __forceinline__ double loss_of_row(const float* __restrict__ x, long long target,
                                              float largest, double sum) {
  double picked = __longlong_as_double(0x7ff8000000000000ll);  // no such class: not a number
  if (target >= 0 && target < kClasses) picked = static_cast<double>(x[target]);
  return log(sum) + (static_cast<double>(largest) - picked);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256)
ce_any_rows(const float* __restrict__ logits, const long long* __restrict__ label) {
  __shared__ float warp_largest[kWarps];
  __shared__ double warp_sum[kWarps];
  __shared__ double warp_total[kWarps];

  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread & 31;
  const int warp = thread >> 5;
  double total = 0.0;  // of the rows that this thread has finished

  if constexpr (kRowPerBlock) {
    for (long long row = blockIdx.x; row < kRows; row += gridDim.x) {
      const float* x = logits + row * kClasses;

      float largest = maximum_of_warp(part_maximum(x, thread, kThreads));
      if (lane == 0) warp_largest[warp] = largest;
      __syncthreads();
      largest = warp_largest[0];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) largest = fmaxf(largest, warp_largest[w]);

      const double part = sum_of_warp(part_sum(x, thread, kThreads, largest));
      if (lane == 0) warp_sum[warp] = part;
      // After this nobody reads warp_largest of this row; warp_sum is written again only after
      // the next row's first barrier.
      __syncthreads();
      if (thread == 0) {
        double sum = 0.0;
#pragma unroll
        for (int w = 0; w < kWarps; ++w) sum += warp_sum[w];
        total += loss_of_row(x, label[row], largest, sum);
      }
    }
  } else {
    const long long step = static_cast<long long>(gridDim.x) * kWarps;
    for (long long row = static_cast<long long>(blockIdx.x) * kWarps + warp; row < kRows;
         row += step) {
      const float* x = logits + row * kClasses;
      const float largest = maximum_of_warp(part_maximum(x, lane, 32));
      const double sum = sum_of_warp(part_sum(x, lane, 32, largest));
      if (lane == 0) total += loss_of_row(x, label[row], largest, sum);
    }
  }

  if (lane == 0) warp_total[warp] = total;
  __syncthreads();
  if (thread == 0) {
    double sum = 0.0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += warp_total[w];
    g_block_sum[blockIdx.x] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(256) ce_any_mean(float* __restrict__ loss) {
  __shared__ double warp_total[kWarps];

  const int thread = static_cast<int>(threadIdx.x);
  double total = 0.0;
  for (int i = thread; i < kBlocks; i += kThreads) total += g_block_sum[i];
  total = sum_of_warp(total);
  if ((thread & 31) == 0) warp_total[thread >> 5] = total;
  __syncthreads();
  if (thread == 0) {
    double sum = 0.0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += warp_total[w];
    loss[0] = static_cast<float>(sum / static_cast<double>(kRows));
  }
}

}  // namespace any_size
