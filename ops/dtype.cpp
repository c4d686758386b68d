#include "ops/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

namespace rekernel {

namespace {

struct Row {
  DType dtype;
  const char* name;
  std::int64_t bytes;
  std::optional<FloatFormat> format;
  std::optional<IntegerRange> range;
};

template <class Integer>
constexpr IntegerRange range_of() {
  return {std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()};
}

// FP8: P. Micikevicius et al., "FP8 Formats for Deep Learning", 2022.
constexpr std::array<Row, 11> table = {{
    {DType::f16, "f16", 2, FloatFormat{11, -14, 65504.0}, {}},
    {DType::bf16, "bf16", 2, FloatFormat{8, -126, 0x1.fep127}, {}},
    {DType::f32, "f32", 4, FloatFormat{24, -126, 0x1.fffffep127}, {}},
    {DType::f64, "f64", 8, FloatFormat{53, -1022, std::numeric_limits<double>::max()}, {}},
    {DType::u8, "u8", 1, {}, range_of<std::uint8_t>()},
    {DType::i32, "i32", 4, {}, range_of<std::int32_t>()},
    {DType::f8e4m3, "f8e4m3", 1, FloatFormat{4, -6, 448.0, false}, {}},
    {DType::f8e5m2, "f8e5m2", 1, FloatFormat{3, -14, 57344.0}, {}},
    {DType::i8, "i8", 1, {}, range_of<std::int8_t>()},
    {DType::i64, "i64", 8, {}, range_of<std::int64_t>()},
    {DType::boolean, "bool", 1, {}, IntegerRange{0, 1}},
}};

const Row& row_of(DType dtype) {
  for (const Row& row : table) {
    if (row.dtype == dtype) return row;
  }
  throw std::logic_error("not a DType");
}

}  // namespace

std::int64_t size_in_bytes(DType dtype) { return row_of(dtype).bytes; }

const char* to_string(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const Row& row : table) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

const FloatFormat* float_format(DType dtype) {
  const Row& row = row_of(dtype);
  return row.format ? &*row.format : nullptr;
}

std::optional<IntegerRange> integer_range(DType dtype) { return row_of(dtype).range; }

double rounded_to(DType dtype, double value) {
  const FloatFormat* format = float_format(dtype);
  if (!format || dtype == DType::f64 || std::isnan(value) || value == 0) return value;
  const double beyond = format->has_infinity
                            ? std::copysign(std::numeric_limits<double>::infinity(), value)
                            : std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(value)) return beyond;
  const int exponent = std::max(std::ilogb(value), format->smallest_exponent);
  const double steps = std::nearbyint(std::ldexp(value, format->significand_bits - 1 - exponent));
  const double rounded = std::ldexp(steps, exponent - format->significand_bits + 1);
  return std::fabs(rounded) <= format->largest ? rounded : beyond;
}

exact::Encoding encoding_of(DType dtype) {
  const Row& row = row_of(dtype);
  exact::Encoding encoding{};
  encoding.bytes = static_cast<int>(row.bytes);
  switch (dtype) {
    case DType::f32:
      encoding.kind = exact::Encoding::float32;
      return encoding;
    case DType::i8:
    case DType::i32:
    case DType::i64:
      encoding.kind = exact::Encoding::integer;
      return encoding;
    case DType::boolean:
      encoding.kind = exact::Encoding::condition;
      return encoding;
    case DType::f64:
    case DType::u8:
      throw std::logic_error(std::string("encoding_of: ") + row.name);
    default:
      break;
  }
  const unsigned magnitudes = 1u << (8 * encoding.bytes - 1);
  encoding.kind = exact::Encoding::narrow_float;
  encoding.fraction_bits = row.format->significand_bits - 1;
  encoding.smallest_exponent = row.format->smallest_exponent;
  if (row.format->has_infinity) {
    encoding.infinity = magnitudes - (1u << encoding.fraction_bits);
    encoding.first_nan = encoding.infinity + 1;
  } else {
    encoding.infinity = encoding.first_nan = magnitudes - 1;
  }
  encoding.most = encoding.bytes == 1 ? encoding.infinity - 1 : encoding.infinity;
  return encoding;
}

std::uint64_t stored_bits(DType dtype, double value) {
  if (dtype == DType::f64) return std::bit_cast<std::uint64_t>(value);
  const std::int64_t bytes = size_in_bytes(dtype);
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - 8 * bytes);
  if (dtype == DType::boolean) return value != 0 ? 1 : 0;
  if (integer_range(dtype)) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) & all;
  }
  const auto rounded = static_cast<float>(rounded_to(dtype, value));
  if (dtype == DType::f32) return std::bit_cast<std::uint32_t>(rounded);
  const exact::Encoding encoding = encoding_of(dtype);
  const std::uint64_t sign = std::signbit(rounded) ? std::uint64_t{1} << (8 * bytes - 1) : 0;
  // A NaN of every type, quiet where there are others.
  if (std::isnan(rounded)) return sign | (all >> 1);
  if (std::isinf(rounded)) return sign | encoding.infinity;
  return exact::narrowed(encoding, rounded);
}

double stored_value(DType dtype, std::uint64_t bits) {
  if (dtype == DType::f64) return std::bit_cast<double>(bits);
  if (dtype == DType::u8) return static_cast<double>(bits);
  return exact::value_of(encoding_of(dtype), bits);
}

}  // namespace rekernel
