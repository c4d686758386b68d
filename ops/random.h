// Input values as a pure function of (seed, stream, index). This one text is compiled by the host's
// C++ compiler and, after exact.h as part of input_device_source(), by NVRTC. Both must give the
// same bits: all arithmetic is exact.h's, and nothing may be replaced by a library's logarithm.

#ifndef __CUDACC__
#pragma once
#include "ops/exact.h"
#endif

namespace rekernel::random {

// NOLINTNEXTLINE(google-build-using-namespace): what host and device share
using namespace exact;

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

/// The four words that make elements 4·quad to 4·quad + 3. Streams are disjoint ranges of the
/// counter, so two tensors of one seed never share a block; seeds are keys.
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
/// deviation b, uniform between a and b, the constant a, integers from `first` on, or one of
/// `choices`. A parameter of kernels: host and device lay it out alike.
struct Parameters {
  unsigned long long row_begin, row_end;  ///< the odd row's elements; equal: there is none
  int kind;
  int first;      ///< of integers
  unsigned span;  ///< of integers: how many; of a choice: how many values it has
  float a, b;
  float row_a, row_b;                   ///< mean and deviation of the odd row
  unsigned stretch_bits, has_outliers;  ///< one outlier in each 2^stretch_bits elements
  float outlier;
  unsigned key;  ///< decides where they are
  float choices[16];
  unsigned long long end_row, end_share;  ///< elements of a row, 0 for none; (2^64 - 1) / end_row
  float end_value;                        ///< of the last element of each row
};
static_assert(sizeof(Parameters) == 152, "host and device must agree");

/// Where in its stretch the outlier is: the finaliser of MurmurHash3 (A. Appleby) on its number.
/// `quad` counts four elements, which never belong to two stretches.
REKERNEL_ANYWHERE unsigned outlier_place(const Parameters& parameters, unsigned long long quad) {
  unsigned x = static_cast<unsigned>(quad >> (parameters.stretch_bits - 2)) ^ parameters.key;
  x = (x ^ x >> 16) * 0x85ebca6bu;
  x = (x ^ x >> 13) * 0xc2b2ae35u;
  return (x ^ x >> 16) & ((1u << parameters.stretch_bits) - 1u);
}

/// The second if the number has the bit, else the first.
REKERNEL_ANYWHERE float by_bit(unsigned number, unsigned bit, float first, float second) {
  return number & bit ? second : first;
}

REKERNEL_ANYWHERE float of_four(const float* choices, unsigned number) {
  return by_bit(number, 2u, by_bit(number, 1u, choices[0], choices[1]),
                by_bit(number, 1u, choices[2], choices[3]));
}

/// The choice with a number below 16, by its bits: a look-up would take longer for some numbers.
REKERNEL_ANYWHERE float choice_of(const float* choices, unsigned number) {
  return by_bit(number, 8u,
                by_bit(number, 4u, of_four(choices, number), of_four(choices + 4, number)),
                by_bit(number, 4u, of_four(choices + 8, number), of_four(choices + 12, number)));
}

/// Whether an element is the last one of its row. The quotient by the share of 2^64 is right or one
/// too small.
REKERNEL_ANYWHERE bool is_end_of_row(const Parameters& parameters, unsigned long long index) {
#ifdef __CUDACC__
  const unsigned long long rows = __umul64hi(index, parameters.end_share);
#else
  __extension__ using Wide = unsigned __int128;
  const auto rows = static_cast<unsigned long long>(Wide{index} * parameters.end_share >> 64);
#endif
  const unsigned long long rest = index - rows * parameters.end_row;
  const unsigned long long last = parameters.end_row - 1;
  return rest == last || rest == last + parameters.end_row;
}

/// One element before it is rounded to the tensor's dtype. Everything is computed for every kind of
/// distribution on the device, so that no kind takes longer to draw than another: time would tell
/// which inputs come.
REKERNEL_ANYWHERE float draw(const Parameters& parameters, unsigned word, unsigned long long index,
                             unsigned place) {
  const float normal = standard_normal(word);
  const float uniform = multiply(to_float(word >> 8), 0x1p-24f);
  const unsigned number = multiply_high(word, parameters.span);
  const float integer = to_float(parameters.first + static_cast<int>(number));
  const float choice = choice_of(parameters.choices, number);
#ifdef __CUDACC__
  asm volatile("" ::"f"(normal), "f"(uniform), "f"(integer), "f"(choice));
#endif
  float value = parameters.a;
  if (parameters.kind == 0) value = multiply_add(parameters.b, normal, parameters.a);
  if (parameters.kind == 1) {
    value = multiply_add(add(parameters.b, -parameters.a), uniform, parameters.a);
  }
  if (parameters.kind == 3) value = integer;
  if (parameters.kind == 4) value = choice;
  if (index >= parameters.row_begin && index < parameters.row_end) {
    value = multiply_add(parameters.row_b, normal, parameters.row_a);
  }
  const unsigned in_stretch = static_cast<unsigned>(index) & ((1u << parameters.stretch_bits) - 1u);
  if (parameters.has_outliers && in_stretch == place) value = parameters.outlier;
  if (is_end_of_row(parameters, index)) value = parameters.end_value;
  return value;
}

}  // namespace rekernel::random
