#include "ops/gemm.h"

namespace rekernel {

namespace {

constexpr std::int64_t gemm_rows = 128;     // gemm::rows below
constexpr std::int64_t gemm_columns = 64;   // gemm::columns below
constexpr std::int64_t gemm_depth = 16;     // gemm::depth below
constexpr std::int64_t gemm_threads = 128;  // gemm::threads below
constexpr std::int64_t gemm_slots = 3;      // gemm::slots below
/// A slot holds a tile of the left matrix and one of the right, whose rows have a pitch of two more
/// than their length.
constexpr std::int64_t gemm_shared_bytes =
    gemm_slots * gemm_depth * (gemm_rows + gemm_columns + 2) * std::int64_t{sizeof(double)};

std::int64_t padded(std::int64_t length, std::int64_t tile) {
  return ceil_div(length, tile) * tile;
}

}  // namespace

std::string gemm_source() {
  return R"cuda(
namespace gemm {

// A block makes rows x columns elements, a warp of it 64 x 32.
constexpr int rows = 128, columns = 64, depth = 16, threads = 128, slots = 3;

__device__ constexpr int padded(int length, int tile) { return (length + tile - 1) / tile * tile; }

// sum += left * right by the matrix unit, in float64, over 8 of the depth, as the instruction's fragments
// have it. Which of 16 columns, 8 rows and 8 of the depth is which makes no difference to the sums as long
// as all agree, so that what a lane holds can be what lies side by side: lane 4 * g + t holds columns 2 * g
// and 2 * g + 1 of the right matrix's rows 2 * t and 2 * t + 1, row g of the left matrix's columns 2 * t and
// 2 * t + 1, and of the sum rows 2 * t + e % 2 and columns 2 * g + e / 2.
__device__ __forceinline__ void multiply_fragments(double (&sum)[4], double2 left, const double2 (&right)[2]) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
      : "d"(right[0].x), "d"(right[0].y), "d"(right[1].x), "d"(right[1].y), "d"(left.x), "d"(left.y));
#else
  const double wide[4] = {right[0].x, right[0].y, right[1].x, right[1].y}, tall[2] = {left.x, left.y};
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(sum[2 * (e % 2)]), "+d"(sum[2 * (e % 2) + 1])
        : "d"(wide[e]), "d"(tall[e / 2]));
  }
#endif
}

__device__ __forceinline__ void fetch(unsigned to, const double* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));
}

// Where a pair of neighbours along the depth lies in a tile of the left matrix. Odd rows have their halves
// exchanged, so that a fragment's reads are spread over all banks.
__device__ __forceinline__ int left_place(int row, int pair) {
  return row * depth + 2 * (pair ^ (row % 2 * (depth / 4)));
}

// For this block's tile of left * right, both padded to whole tiles: store(i, j, sum over l of left(i, l) *
// right(l, j)). Of three slots of shared memory one is multiplied while two are on their way; a pitch of two more
// than a multiple of 16 spreads reads of the right one over all banks.
template <class Store>
__device__ __forceinline__ void multiply(const double* __restrict__ left, int left_pitch,
                                         const double* __restrict__ right, int right_pitch, int length,
                                         Store store) {
  constexpr int warp_rows = 64, warp_columns = 32, warps_down = rows / warp_rows;
  constexpr int pitch = columns + 2, left_size = rows * depth, slot_size = left_size + depth * pitch;
  constexpr int pairs = depth / 2, row_step = threads / pairs;
  constexpr int pairs_across = columns / 2, l_step = threads / pairs_across;
  extern __shared__ double2 slots_of_pairs[];
  const double* tiles = reinterpret_cast<const double*>(slots_of_pairs);
  const int thread = threadIdx.x, group = thread % 32 / 4, member = thread % 4, warp = thread / 32;
  const int warp_row = warp % warps_down * warp_rows, warp_column = warp / warps_down * warp_columns;
  const int first_row = blockIdx.y * rows, first_column = blockIdx.x * columns;

  const double* left_from = left + 1ll * (first_row + thread / pairs) * left_pitch + 2 * (thread % pairs);
  const double* right_from =
      right + 1ll * (thread / pairs_across) * right_pitch + first_column + 2 * (thread % pairs_across);
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(tiles));
  const unsigned left_to = shared + 8 * left_place(thread / pairs, thread % pairs);
  const unsigned right_to =
      shared + 8 * (left_size + thread / pairs_across * pitch + 2 * (thread % pairs_across));
  const auto fetch_next = [&](int slot) {
    const unsigned at = slot * slot_size * 8;
#pragma unroll
    for (int part = 0; part < rows / row_step; ++part) {
      fetch(left_to + at + 8 * part * row_step * depth, left_from + 1ll * part * row_step * left_pitch);
    }
#pragma unroll
    for (int part = 0; part < depth / l_step; ++part) {
      fetch(right_to + at + 8 * part * l_step * pitch, right_from + 1ll * part * l_step * right_pitch);
    }
    left_from += depth;
    right_from += 1ll * depth * right_pitch;
  };
  const auto commit = [] { asm volatile("cp.async.commit_group;"); };

  constexpr int parts_down = warp_rows / 8, parts_across = warp_columns / 16;
  double sum[parts_across][parts_down][4] = {};
#pragma unroll
  for (int slot = 0; slot < slots - 1; ++slot) {
    if (slot * depth < length) fetch_next(slot);
    commit();
  }
  int slot = 0, free_slot = slots - 1;
  for (int start = 0; start < length; start += depth) {
    asm volatile("cp.async.wait_group %0;" ::"n"(slots - 2));
    __syncthreads();
    if (start + (slots - 1) * depth < length) fetch_next(free_slot);
    commit();
    const double* left_tile = tiles + slot * slot_size;
    const double* right_tile = left_tile + left_size;
#pragma unroll
    for (int step = 0; step < depth; step += 8) {
      double2 wide[parts_across][2], tall[parts_down];
#pragma unroll
      for (int i = 0; i < parts_across; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          wide[i][e] = *reinterpret_cast<const double2*>(right_tile + (step + 2 * member + e) * pitch +
                                                         warp_column + 16 * i + 2 * group);
        }
      }
#pragma unroll
      for (int j = 0; j < parts_down; ++j) {
        tall[j] = *reinterpret_cast<const double2*>(
            left_tile + left_place(warp_row + 8 * j + group, step / 2 + member));
      }
#pragma unroll
      for (int j = 0; j < parts_down; ++j) {
#pragma unroll
        for (int i = 0; i < parts_across; ++i) multiply_fragments(sum[i][j], tall[j], wide[i]);
      }
    }
    slot = slot + 1 == slots ? 0 : slot + 1;
    free_slot = free_slot + 1 == slots ? 0 : free_slot + 1;
  }

#pragma unroll
  for (int j = 0; j < parts_down; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int i = 0; i < parts_across; ++i) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          store(first_row + warp_row + 8 * j + 2 * member + h,
                first_column + warp_column + 16 * i + 2 * group + e, sum[i][j][h + 2 * e]);
        }
      }
    }
  }
}

}  // namespace gemm
)cuda";
}

std::int64_t padded_rows(std::int64_t rows) { return padded(rows, gemm_rows); }
std::int64_t padded_columns(std::int64_t columns) { return padded(columns, gemm_columns); }
std::int64_t padded_depth(std::int64_t depth) { return padded(depth, gemm_depth); }

KernelLaunch gemm_launch(const std::string& kernel, std::int64_t rows, std::int64_t columns,
                         std::int64_t batch, std::vector<Argument> args) {
  KernelLaunch launch = simple_launch(kernel, ceil_div(columns, gemm_columns),
                                      ceil_div(rows, gemm_rows), gemm_threads, std::move(args));
  launch.grid[2] = GridExtent{batch};
  launch.dynamic_shared_bytes = gemm_shared_bytes;
  return launch;
}

KernelLaunch simple_launch(const std::string& kernel, std::int64_t blocks_x, std::int64_t blocks_y,
                           std::int64_t threads, std::vector<Argument> args) {
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.grid = {GridExtent{blocks_x}, GridExtent{blocks_y}, GridExtent{1}};
  launch.block = {threads, 1, 1};
  launch.args = std::move(args);
  return launch;
}

std::vector<Argument> buffers(const std::vector<std::string>& names) {
  std::vector<Argument> arguments;
  for (const std::string& name : names) arguments.push_back(BufferArgument{name});
  return arguments;
}

}  // namespace rekernel
