#include "harness/capture/tensor_maps.h"

#include <algorithm>

namespace rekernel {
namespace {

/// CUtensorMapDataType, which no recording may depend on a header for.
std::optional<DType> type_of(int number) {
  switch (number) {
    case 0:
      return DType::u8;
    case 3:
      return DType::i32;
    case 5:
      return DType::i64;
    case 6:
      return DType::f16;
    case 7:
      return DType::f32;
    case 8:
      return DType::f64;
    case 9:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

/// The values of an enumeration, in the driver's order.
template <class Value, std::size_t count>
std::optional<Value> named(const Value (&values)[count], int number) {
  if (number < 0 || static_cast<std::size_t>(number) >= count) return std::nullopt;
  return values[number];
}

constexpr TensorMapArgument::Swizzle swizzles[] = {
    TensorMapArgument::Swizzle::none, TensorMapArgument::Swizzle::b32,
    TensorMapArgument::Swizzle::b64, TensorMapArgument::Swizzle::b128};
constexpr TensorMapArgument::L2Promotion promotions[] = {
    TensorMapArgument::L2Promotion::none, TensorMapArgument::L2Promotion::b64,
    TensorMapArgument::L2Promotion::b128, TensorMapArgument::L2Promotion::b256};
constexpr bool fills[] = {false, true};

/// CUTLASS gives a dimension of one element the stride 0, which a plan does not have. No element is
/// reached by it, so that any will do: the one that follows from the dimension before.
bool make_strides_plain(TensorMapArgument& map) {
  std::int64_t packed = map.dims[0] * size_in_bytes(map.dtype);
  for (std::size_t i = 1; i < map.dims.size(); ++i) {
    std::int64_t& stride = map.strides_bytes[i - 1];
    if (stride == 0 && map.dims[i] == 1) stride = (packed + 15) / 16 * 16;
    if (stride < 16 || stride % 16 != 0 || stride >= std::int64_t{1} << 40) return false;
    if (__builtin_mul_overflow(map.dims[i], stride, &packed)) return false;
  }
  return true;
}

/// The first byte after the last element, or nothing where that is no number.
std::optional<std::int64_t> end_of(const TensorMapArgument& map) {
  std::int64_t end = map.dims[0] * size_in_bytes(map.dtype);
  bool overflow = __builtin_add_overflow(end, map.offset_bytes, &end);
  for (std::size_t i = 1; i < map.dims.size(); ++i) {
    std::int64_t span = 0;
    overflow |= __builtin_mul_overflow(map.dims[i] - 1, map.strides_bytes[i - 1], &span);
    overflow |= __builtin_add_overflow(end, span, &end);
  }
  if (overflow) return std::nullopt;
  return end;
}

}  // namespace

std::vector<FoundMap> find_maps(const RecordedParameter& parameter,
                                const std::vector<RecordedTensorMap>& encoded) {
  std::vector<FoundMap> found;
  const auto size = static_cast<std::int64_t>(parameter.bytes.size());
  std::int64_t at = 0;
  while (at + tensor_map_bytes <= size) {
    const std::string_view here(parameter.bytes.data() + at, tensor_map_bytes);
    const auto known = std::find_if(encoded.rbegin(), encoded.rend(),
                                    [&](const auto& map) { return map.bytes == here; });
    if (known == encoded.rend()) {
      at += tensor_map_alignment;
    } else {
      found.push_back({at, &*known});
      at += tensor_map_bytes;
    }
  }
  return found;
}

bool same_description(const RecordedTensorMap& one, const RecordedTensorMap& other) {
  return one.type == other.type && one.dims == other.dims && one.strides == other.strides &&
         one.box == other.box && one.element_strides == other.element_strides &&
         one.interleave == other.interleave && one.swizzle == other.swizzle &&
         one.promotion == other.promotion && one.fill == other.fill;
}

std::optional<TensorMapArgument> planned_map(const RecordedTensorMap& map,
                                             const std::string& buffer, std::int64_t offset_bytes,
                                             std::int64_t bytes) {
  const std::optional<DType> dtype = type_of(map.type);
  const auto swizzle = named(swizzles, map.swizzle);
  const auto promotion = named(promotions, map.promotion);
  const auto fill = named(fills, map.fill);
  if (!dtype || !swizzle || !promotion || !fill || map.interleave != 0) return std::nullopt;
  TensorMapArgument planned{.buffer = buffer,
                            .dtype = *dtype,
                            .offset_bytes = offset_bytes,
                            .dims = map.dims,
                            .strides_bytes = map.strides,
                            .box = map.box,
                            .swizzle = *swizzle,
                            .l2_promotion = *promotion,
                            .fill_nan = *fill};
  const bool plain_steps = std::all_of(map.element_strides.begin(), map.element_strides.end(),
                                       [](std::int64_t step) { return step == 1; });
  if (!plain_steps) planned.element_strides = map.element_strides;
  if (offset_bytes % 16 != 0 || !make_strides_plain(planned)) return std::nullopt;
  if (planned.box.front() * size_in_bytes(*dtype) % 16 != 0) return std::nullopt;
  const std::optional<std::int64_t> end = end_of(planned);
  if (!end || *end > bytes) return std::nullopt;
  return planned;
}

}  // namespace rekernel
