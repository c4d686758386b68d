#include "ops/dtype.h"

#include <array>
#include <limits>
#include <stdexcept>

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

}  // namespace rekernel
