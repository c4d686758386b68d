#include "harness/candidate/argument_reader.h"

#include <boost/json.hpp>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "harness/base/text.h"
#include "harness/candidate/plan_names.h"

namespace rekernel {

namespace {

constexpr std::size_t max_parameter_bytes = 32764;  ///< of one kernel, from sm_70 on
constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

std::string read_hexadecimal(JsonReader reader) {
  const auto bytes = from_hexadecimal(reader.string(2 * max_parameter_bytes));
  if (!bytes || bytes->empty()) reader.expect("1 or more bytes as pairs of hexadecimal digits");
  return bytes.value_or("");
}

template <class Integer>
ScalarArgument read_integer(const JsonReader& reader, PlanContext& context) {
  return static_cast<Integer>(context.integer(reader, std::numeric_limits<Integer>::min(),
                                              std::numeric_limits<Integer>::max()));
}

ScalarArgument read_f32(JsonReader reader) {
  const double value = reader.real();
  // Beyond the largest float, the conversion is undefined.
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) {
    reader.expect("a number in the range of f32");
    return 0.0f;
  }
  return static_cast<float>(value);
}

ScalarArgument read_scalar(JsonReader reader, PlanContext& context) {
  std::vector<std::pair<std::string, JsonReader>> members;
  if (reader.is_object()) members = reader.entries();
  if (members.size() == 1) {
    const auto& [type, value] = members.front();
    if (type == "i32") return read_integer<std::int32_t>(value, context);
    if (type == "u32") return read_integer<std::uint32_t>(value, context);
    if (type == "i64") return read_integer<std::int64_t>(value, context);
    if (type == "u64") return context.unsigned_integer(value);
    if (type == "f32") return read_f32(value);
    if (type == "f64") return JsonReader(value).real();
  }
  reader.expect(
      "the name of a buffer, {\"i32\", \"u32\", \"i64\", \"u64\", \"f32\" or \"f64\": value} or "
      "{\"tensor_map\": {…}}");
  return std::int32_t{0};
}

std::vector<std::int64_t> read_integers(JsonReader reader, PlanContext& context, std::size_t count,
                                        std::int64_t min, std::int64_t max) {
  std::vector<std::int64_t> result;
  for (JsonReader& entry : reader.array(count, count)) {
    result.push_back(context.integer(entry, min, max));
  }
  return result;
}

void check_alignment(std::int64_t bytes, JsonReader& reader, const PlanContext& context) {
  if (bytes % 16 != 0) {
    context.refuse(reader, "expected multiples of 16 bytes, got " + std::to_string(bytes));
  }
}

void check_inner_box(const TensorMapArgument& map, JsonReader& reader, const PlanContext& context) {
  const std::int64_t bytes = map.box.front() * size_in_bytes(map.dtype);
  if (bytes % 16 != 0) {
    context.refuse(reader, "the innermost extent has " + std::to_string(bytes) +
                               " bytes; expected a multiple of 16");
  }
  std::int64_t limit = no_limit;
  if (map.swizzle == TensorMapArgument::Swizzle::b32) limit = 32;
  if (map.swizzle == TensorMapArgument::Swizzle::b64) limit = 64;
  if (map.swizzle == TensorMapArgument::Swizzle::b128) limit = 128;
  if (bytes > limit) {
    context.refuse(reader, "the innermost extent has " + std::to_string(bytes) +
                               " bytes; this swizzle takes at most " + std::to_string(limit));
  }
}

/// The copy engine may touch nothing past the buffer.
void check_extent(const TensorMapArgument& map, JsonReader& reader, const PlanContext& context) {
  const std::int64_t available = *context.bytes(map.buffer);
  std::int64_t end = map.dims[0] * size_in_bytes(map.dtype);  // at most 2^35
  bool overflow = __builtin_add_overflow(end, map.offset_bytes, &end);
  for (std::size_t i = 1; i < map.dims.size(); ++i) {
    std::int64_t span = 0;
    overflow |= __builtin_mul_overflow(map.dims[i] - 1, map.strides_bytes[i - 1], &span);
    overflow |= __builtin_add_overflow(end, span, &end);
  }
  if (overflow || end > available) {
    context.refuse(reader, "reaches " + (overflow ? "more than 2^63" : std::to_string(end)) +
                               " bytes into \"" + map.buffer + "\", which has " +
                               std::to_string(available));
  }
}

TensorMapArgument read_tensor_map(JsonReader reader, PlanContext& context) {
  context.require(has_tensor_maps, reader);
  TensorMapArgument map;
  map.buffer = context.buffer(reader.required("of"));
  map.dtype = read_name(reader.required("dtype"), tensor_map_dtypes);
  for (JsonReader& extent : reader.required("dims").array(1, 5)) {
    map.dims.push_back(context.integer(extent, 1, std::int64_t{1} << 32));
  }
  if (reader.error()) return map;
  const std::size_t rank = map.dims.size();
  JsonReader strides = reader.required("strides_bytes");
  map.strides_bytes = read_integers(strides, context, rank - 1, 16, (std::int64_t{1} << 40) - 1);
  JsonReader box = reader.required("box");
  map.box = read_integers(box, context, rank, 1, 256);
  if (auto offset = reader.optional("offset_bytes")) {
    map.offset_bytes = context.integer(*offset, 0, no_limit);
    check_alignment(map.offset_bytes, *offset, context);
  }
  if (auto steps = reader.optional("element_strides")) {
    map.element_strides = read_integers(*steps, context, rank, 1, 8);
  }
  if (auto swizzle = reader.optional("swizzle")) map.swizzle = read_name(*swizzle, swizzle_names);
  if (auto promotion = reader.optional("l2_promotion")) {
    map.l2_promotion = read_name(*promotion, l2_promotion_names);
  }
  if (auto fill = reader.optional("fill")) map.fill_nan = read_name(*fill, fill_names);
  reader.no_other_keys();
  if (reader.error()) return map;
  for (const std::int64_t stride : map.strides_bytes) check_alignment(stride, strides, context);
  check_inner_box(map, box, context);
  check_extent(map, reader, context);
  return map;
}

void read_placed_maps(JsonReader& reader, PlanContext& context, BytesArgument& argument) {
  const auto size = static_cast<std::int64_t>(argument.bytes.size());
  std::int64_t free = 0;
  for (JsonReader& entry : reader.array(0, max_parameter_bytes / tensor_map_bytes)) {
    JsonReader at = entry.required("at");
    const std::int64_t begin = context.integer(at, 0, max_parameter_bytes);
    if (begin % tensor_map_alignment != 0 || begin < free || begin + tensor_map_bytes > size) {
      context.refuse(at, "expected multiples of 64, rising, with 128 bytes from each on");
    }
    free = begin + tensor_map_bytes;
    for (const BytesArgument::Address& address : argument.addresses) {
      if (address.at < free && address.at + 8 > begin) {
        context.refuse(at,
                       "the address at " + std::to_string(address.at) + " lies in the tensor map");
      }
    }
    argument.tensor_maps.push_back({begin, read_tensor_map(entry.required("tensor_map"), context)});
    entry.no_other_keys();
    if (reader.error()) return;
  }
}

BytesArgument read_bytes(JsonReader reader, PlanContext& context) {
  BytesArgument argument;
  argument.bytes = read_hexadecimal(reader.required("bytes"));
  const auto size = static_cast<std::int64_t>(argument.bytes.size());
  std::int64_t free = 0;
  if (auto addresses = reader.optional("addresses")) {
    for (JsonReader& entry : addresses->array(0, max_parameter_bytes / 8)) {
      BytesArgument::Address address;
      JsonReader at = entry.required("at");
      address.at = context.integer(at, 0, max_parameter_bytes);
      if (address.at % 8 != 0 || address.at < free || address.at + 8 > size) {
        context.refuse(at, "expected multiples of 8, rising, with 8 bytes from each on");
      }
      free = address.at + 8;
      address.buffer = context.buffer(entry.required("of"));
      if (reader.error()) return argument;
      if (auto offset = entry.optional("offset_bytes")) {
        address.offset_bytes = context.integer(*offset, 0, *context.bytes(address.buffer));
      }
      entry.no_other_keys();
      argument.addresses.push_back(std::move(address));
    }
  }
  if (auto maps = reader.optional("tensor_maps")) read_placed_maps(*maps, context, argument);
  reader.no_other_keys();
  return argument;
}

}  // namespace

Argument read_argument(JsonReader reader, PlanContext& context) {
  if (reader.is_string()) return BufferArgument{context.buffer(reader)};
  if (reader.has("tensor_map")) {
    const TensorMapArgument map = read_tensor_map(reader.required("tensor_map"), context);
    reader.no_other_keys();
    return map;
  }
  if (reader.has("bytes")) return read_bytes(reader, context);
  return read_scalar(reader, context);
}

}  // namespace rekernel
