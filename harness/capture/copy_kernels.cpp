#include "harness/capture/copy_kernels.h"

namespace rekernel {

const char* const copy_kernels = R"cuda(// What a captured program asked the driver for.
extern "C" __global__ void copy_bytes(unsigned char* to, const unsigned char* from, long long bytes) {
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long step = gridDim.x * static_cast<long long>(blockDim.x);
  const bool aligned = ((reinterpret_cast<unsigned long long>(to) |
                         reinterpret_cast<unsigned long long>(from)) & 15) == 0;
  const long long wide = aligned ? bytes / 16 : 0;
  for (long long i = first; i < wide; i += step) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  for (long long i = 16 * wide + first; i < bytes; i += step) to[i] = from[i];
}

// `width` bytes of `value`, `count` times; `width` is 1, 2 or 4.
extern "C" __global__ void fill_bytes(unsigned char* to, unsigned int value, int width,
                                      long long count) {
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long step = gridDim.x * static_cast<long long>(blockDim.x);
  const long long bytes = count * width;
  const unsigned int word = width == 1   ? (value & 0xff) * 0x01010101u
                            : width == 2 ? (value & 0xffff) * 0x00010001u
                                         : value;
  const bool aligned = (reinterpret_cast<unsigned long long>(to) & 15) == 0;
  const long long wide = aligned ? bytes / 16 : 0;
  for (long long i = first; i < wide; i += step) {
    reinterpret_cast<uint4*>(to)[i] = make_uint4(word, word, word, word);
  }
  for (long long i = 16 * wide + first; i < bytes; i += step) {
    to[i] = static_cast<unsigned char>(value >> (8 * (i % width)));
  }
}
)cuda";

}  // namespace rekernel
