// Arithmetic and stored values on which the host and the device agree bit for bit. This one text is
// compiled by the host's C++ compiler and, before random.h, by NVRTC, so it uses only operations
// that IEEE 754 rounds correctly, each spelled out: nothing here may be contracted or reassociated.

#ifdef __CUDACC__
#define REKERNEL_ANYWHERE __device__ __forceinline__
#else
#pragma once
#include <bit>
#include <cmath>
#define REKERNEL_ANYWHERE inline
#endif

namespace rekernel::exact {

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
REKERNEL_ANYWHERE unsigned multiply_high(unsigned x, unsigned y) { return __umulhi(x, y); }
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
REKERNEL_ANYWHERE unsigned multiply_high(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
#endif

/// How the elements of a type are stored.
struct Encoding {
  enum Kind : int { narrow_float, float32, integer, condition };
  int kind;
  int bytes;
  // For a narrow float, which has a sign, an exponent and a fraction.
  int fraction_bits;
  int smallest_exponent;  ///< of a normal number
  unsigned most;          ///< magnitude as which all larger ones are stored
  unsigned infinity;      ///< magnitude of infinity, or that of the first NaN where there is none
  unsigned first_nan;     ///< from this magnitude on, NaN
};
static_assert(sizeof(Encoding) == 28, "a parameter of kernels");

REKERNEL_ANYWHERE float power_of_two(int exponent) {
  return float_of_bits(static_cast<unsigned>(exponent + 127) << 23);
}

/// The nearest narrow float, ties to even.
REKERNEL_ANYWHERE unsigned narrowed(const Encoding& encoding, float value) {
  const unsigned bits = bits_of(value), magnitude = bits & 0x7fffffffu;
  const int shift = 23 - encoding.fraction_bits;
  const unsigned first_normal = static_cast<unsigned>(encoding.smallest_exponent + 127) << 23;
  unsigned rounded;
  if (magnitude >= first_normal) {
    // A carry out of the fraction counts the exponent up, as it should.
    const unsigned half = (1u << (shift - 1)) - 1u + (magnitude >> shift & 1u);
    rounded = (magnitude + half - (first_normal - 0x800000u)) >> shift;
  } else {
    // The last place of this sum is the smallest step.
    const float one = power_of_two(encoding.smallest_exponent - encoding.fraction_bits + 23);
    rounded = bits_of(add(float_of_bits(magnitude), one)) - bits_of(one);
  }
  if (rounded > encoding.most) rounded = encoding.most;
  return rounded | (bits >> 31) << (8 * encoding.bytes - 1);
}

REKERNEL_ANYWHERE float widened(const Encoding& encoding, unsigned bits) {
  const unsigned sign = bits >> (8 * encoding.bytes - 1) & 1u;
  const unsigned magnitude = bits & ((1u << (8 * encoding.bytes - 1)) - 1u);
  float value = multiply(float_of_bits(magnitude << (23 - encoding.fraction_bits)),
                         power_of_two(126 + encoding.smallest_exponent));
  if (magnitude >= encoding.infinity) value = float_of_bits(0x7f800000u);
  if (magnitude >= encoding.first_nan) value = float_of_bits(0x7fc00000u);
  return float_of_bits(bits_of(value) | sign << 31);
}

/// The bits of an element in which a value is stored. The value must be one of an integer type.
template <class Word>
REKERNEL_ANYWHERE Word stored(const Encoding& encoding, float value) {
  switch (encoding.kind) {
    case Encoding::narrow_float:
      return static_cast<Word>(narrowed(encoding, value));
    case Encoding::float32:
      return static_cast<Word>(bits_of(value));
    case Encoding::integer:
      return static_cast<Word>(static_cast<long long>(value));
    default:
      return static_cast<Word>(value != 0.0f ? 1 : 0);
  }
}

/// The value of an element. A condition's that is neither 0 nor 1 is NaN.
REKERNEL_ANYWHERE double value_of(const Encoding& encoding, unsigned long long bits) {
  const int unused = 64 - 8 * encoding.bytes;
  switch (encoding.kind) {
    case Encoding::narrow_float:
      return widened(encoding, static_cast<unsigned>(bits));
    case Encoding::float32:
      return float_of_bits(static_cast<unsigned>(bits));
    case Encoding::integer:
      return static_cast<double>(static_cast<long long>(bits << unused) >> unused);
    default:
      return bits <= 1 ? static_cast<double>(bits) : float_of_bits(0x7fc00000u);
  }
}

}  // namespace rekernel::exact
