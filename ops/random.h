// Input values as a pure function of (seed, stream, index). This one text is compiled by the host's
// C++ compiler and, as part of input_device_source(), by NVRTC. Both must give the same bits, so it
// uses only operations that IEEE 754 rounds correctly, each spelled out: nothing here may be
// contracted, reassociated or replaced by a library's logarithm.

#ifdef __CUDACC__
#define REKERNEL_ANYWHERE __device__ __forceinline__
#else
#pragma once
#include <bit>
#include <cmath>
#define REKERNEL_ANYWHERE inline
#endif

namespace rekernel::random {

#ifdef __CUDACC__
REKERNEL_ANYWHERE float add(float x, float y) { return __fadd_rn(x, y); }
REKERNEL_ANYWHERE float multiply(float x, float y) { return __fmul_rn(x, y); }
REKERNEL_ANYWHERE float multiply_add(float x, float y, float z) { return __fmaf_rn(x, y, z); }
REKERNEL_ANYWHERE float square_root(float x) { return __fsqrt_rn(x); }
REKERNEL_ANYWHERE float to_float(unsigned x) { return __uint2float_rn(x); }
REKERNEL_ANYWHERE float to_float(int x) { return __int2float_rn(x); }
REKERNEL_ANYWHERE float to_float(double x) { return __double2float_rn(x); }
REKERNEL_ANYWHERE unsigned bits_of(float x) { return __float_as_uint(x); }
REKERNEL_ANYWHERE float float_of_bits(unsigned x) { return __uint_as_float(x); }
#else
REKERNEL_ANYWHERE float add(float x, float y) { return x + y; }
REKERNEL_ANYWHERE float multiply(float x, float y) { return x * y; }
REKERNEL_ANYWHERE float multiply_add(float x, float y, float z) { return std::fma(x, y, z); }
REKERNEL_ANYWHERE float square_root(float x) { return std::sqrt(x); }
REKERNEL_ANYWHERE float to_float(unsigned x) { return static_cast<float>(x); }
REKERNEL_ANYWHERE float to_float(int x) { return static_cast<float>(x); }
REKERNEL_ANYWHERE float to_float(double x) { return static_cast<float>(x); }
REKERNEL_ANYWHERE unsigned bits_of(float x) { return std::bit_cast<unsigned>(x); }
REKERNEL_ANYWHERE float float_of_bits(unsigned x) { return std::bit_cast<float>(x); }
#endif

struct Words {
  unsigned word[4];
};

/// Philox4x32 with ten rounds: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel Random Numbers: As
/// Easy as 1, 2, 3", SC 2011.
REKERNEL_ANYWHERE Words philox(Words counter, unsigned key0, unsigned key1) {
  for (int round = 0; round < 10; ++round) {
    const unsigned long long product0 = 0xD2511F53ull * counter.word[0];
    const unsigned long long product1 = 0xCD9E8D57ull * counter.word[2];
    counter = {{static_cast<unsigned>(product1 >> 32) ^ counter.word[1] ^ key0,
                static_cast<unsigned>(product1),
                static_cast<unsigned>(product0 >> 32) ^ counter.word[3] ^ key1,
                static_cast<unsigned>(product0)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The four words behind elements 4·quad to 4·quad + 3. Streams are disjoint ranges of the counter,
/// so two tensors of one seed never share a block; seeds are keys.
REKERNEL_ANYWHERE Words words_of_quad(unsigned long long seed, unsigned stream,
                                      unsigned long long quad) {
  return philox({{static_cast<unsigned>(quad), static_cast<unsigned>(quad >> 32), stream, 0u}},
                static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
}

/// −log2(x) for 2^-32 <= x <= 1, to 1e-6. The polynomial is a minimax fit of log2(1 + f) ÷ f
/// between √½ − 1 and √2 − 1.
REKERNEL_ANYWHERE float minus_log2(float x) {
  const unsigned sqrt_half = 0x3f3504f3u;
  const int exponent = static_cast<int>(bits_of(x) - sqrt_half) >> 23;
  const float f = add(float_of_bits(bits_of(x) - (static_cast<unsigned>(exponent) << 23)), -1.0f);
  float p = 0x1.587236p-3f;
  p = multiply_add(p, f, -0x1.12651ep-2f);
  p = multiply_add(p, f, 0x1.2f39f8p-2f);
  p = multiply_add(p, f, -0x1.70272ep-2f);
  p = multiply_add(p, f, 0x1.ec25d8p-2f);
  p = multiply_add(p, f, -0x1.715620p-1f);
  p = multiply_add(p, f, 0x1.715490p+0f);
  return -multiply_add(f, p, to_float(exponent));
}

/// A standard normal from 32 random bits, by inversion: one bit of sign, 31 bits of two-sided tail
/// probability q. With x = 1 − q, z = √2·erfinv(x) is x times a smooth function of w = −log2(1 −
/// x²) (the variable is M. Giles's, "Approximating the erfinv function", GPU Computing Gems 2,
/// 2011; the fits are our own: to 1e-6 for w < 7, to 4e-6 in √w beyond). |z| ends at 6.34.
REKERNEL_ANYWHERE float standard_normal(unsigned word) {
  const float q = multiply(to_float((word << 1) | 1u), 0x1p-32f);
  const float x = add(1.0f, -q);
  const float w = minus_log2(multiply(q, add(2.0f, -q)));
  float p;
  if (w < 7.0f) {
    const float t = add(w, -3.5f);
    p = 0x1.44580ep-25f;
    p = multiply_add(p, t, -0x1.1ad784p-21f);
    p = multiply_add(p, t, -0x1.6bc488p-21f);
    p = multiply_add(p, t, 0x1.2b5e38p-14f);
    p = multiply_add(p, t, -0x1.45745ap-11f);
    p = multiply_add(p, t, -0x1.5a7fb0p-9f);
    p = multiply_add(p, t, 0x1.f058acp-3f);
    p = multiply_add(p, t, 0x1.0c7a14p+1f);
  } else {
    const float t = add(square_root(w), -4.0f);
    p = -0x1.3af0c4p-14f;
    p = multiply_add(p, t, 0x1.7e51cep-12f);
    p = multiply_add(p, t, -0x1.9e0ba8p-11f);
    p = multiply_add(p, t, 0x1.550b34p-10f);
    p = multiply_add(p, t, -0x1.42de62p-9f);
    p = multiply_add(p, t, 0x1.2478c6p-8f);
    p = multiply_add(p, t, 0x1.2f3db2p+0f);
    p = multiply_add(p, t, 0x1.1e6c54p+2f);
  }
  return float_of_bits(bits_of(multiply(x, p)) ^ (word & 0x80000000u));
}

/// A Distribution for one seed and tensor. `kind` is Distribution::Kind: normal with mean a and
/// deviation b, uniform between a and b, or the constant a.
struct Parameters {
  int kind;
  float a, b;
  float row_a, row_b;                     ///< mean and deviation of the odd row
  unsigned long long row_begin, row_end;  ///< its elements; equal: there is none
  unsigned stretch_bits, has_outliers;    ///< one outlier in each 2^stretch_bits elements
  float outlier;
  unsigned key;  ///< decides where they are
};

/// Where in its stretch the outlier is: the finaliser of MurmurHash3 (A. Appleby) on its number.
/// `quad` counts four elements, which never belong to two stretches.
REKERNEL_ANYWHERE unsigned outlier_place(const Parameters& parameters, unsigned long long quad) {
  unsigned x = static_cast<unsigned>(quad >> (parameters.stretch_bits - 2)) ^ parameters.key;
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return (x ^ x >> 16) & ((1u << parameters.stretch_bits) - 1u);
}

/// One element before it is rounded to the tensor's dtype. Everything is computed for every kind of
/// distribution on the device, so that no kind takes longer to draw than another: time would tell
/// which inputs come.
REKERNEL_ANYWHERE float draw(const Parameters& parameters, unsigned word, unsigned long long index,
                             unsigned place) {
  const float normal = standard_normal(word);
  const float uniform = multiply(to_float(word >> 8), 0x1p-24f);
#ifdef __CUDACC__
  asm volatile("" ::"f"(normal), "f"(uniform));
#endif
  float value = parameters.a;
  if (parameters.kind == 0) value = multiply_add(parameters.b, normal, parameters.a);
  if (parameters.kind == 1) {
    value = multiply_add(add(parameters.b, -parameters.a), uniform, parameters.a);
  }
  if (index >= parameters.row_begin && index < parameters.row_end) {
    value = multiply_add(parameters.row_b, normal, parameters.row_a);
  }
  const unsigned in_stretch = static_cast<unsigned>(index) & ((1u << parameters.stretch_bits) - 1u);
  if (parameters.has_outliers && in_stretch == place) value = parameters.outlier;
  return value;
}

}  // namespace rekernel::random
