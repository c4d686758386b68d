#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "ops/exact.h"

namespace rekernel {

/// Element types of tensors. Tensor maps have some of them.
enum class DType { f16, bf16, f32, f64, u8, i32, f8e4m3, f8e5m2, i8, i64, boolean };

std::int64_t size_in_bytes(DType dtype);
/// "f16", …; "bool"
const char* to_string(DType dtype);
std::optional<DType> dtype_named(std::string_view name);

/// What a floating-point type can hold.
struct FloatFormat {
  int significand_bits = 0;   ///< the leading one counted
  int smallest_exponent = 0;  ///< of a normal number
  double largest = 0;
  bool has_infinity = true;  ///< f8e4m3 has none: what is too large is NaN
};
/// Null of integers and bool.
const FloatFormat* float_format(DType dtype);

/// The values of an integer type, or of bool, from the least to the largest.
struct IntegerRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};
std::optional<IntegerRange> integer_range(DType dtype);

/// The nearest value of a floating-point type, ties to even; others' values stay. Larger ones than
/// the largest become infinity, or, where the type has none, NaN.
double rounded_to(DType dtype, double value);

/// How elements are stored. Values beyond the largest are stored as infinity, of types of 8 bits as
/// the largest. None of f64 and u8, which no tensor of a problem has: a defect, which is thrown.
exact::Encoding encoding_of(DType dtype);

/// The bits of an element that holds `rounded_to(dtype, value)`, and its value, for all types.
std::uint64_t stored_bits(DType dtype, double value);
double stored_value(DType dtype, std::uint64_t bits);

}  // namespace rekernel
