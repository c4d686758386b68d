#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/base/json.h"
#include "ops/dtype.h"
#include "ops/program.h"

namespace rekernel {

/// A name in kernel.json for each value of an enumeration.
template <class Value>
using Names = std::vector<std::pair<const char*, Value>>;

inline const Names<TensorMapArgument::Swizzle> swizzle_names = {
    {"none", TensorMapArgument::Swizzle::none},
    {"32B", TensorMapArgument::Swizzle::b32},
    {"64B", TensorMapArgument::Swizzle::b64},
    {"128B", TensorMapArgument::Swizzle::b128}};
inline const Names<TensorMapArgument::L2Promotion> l2_promotion_names = {
    {"none", TensorMapArgument::L2Promotion::none},
    {"64B", TensorMapArgument::L2Promotion::b64},
    {"128B", TensorMapArgument::L2Promotion::b128},
    {"256B", TensorMapArgument::L2Promotion::b256}};
inline const Names<bool> fill_names = {{"zeros", false}, {"nan", true}};
inline const Names<DType> tensor_map_dtypes = {
    {to_string(DType::f16), DType::f16}, {to_string(DType::bf16), DType::bf16},
    {to_string(DType::f32), DType::f32}, {to_string(DType::f64), DType::f64},
    {to_string(DType::u8), DType::u8},   {to_string(DType::i32), DType::i32},
    {to_string(DType::i64), DType::i64}};

template <class Value>
Value read_name(JsonReader reader, const Names<Value>& names) {
  std::string known;
  const std::string text = reader.is_string() ? reader.string() : "";
  for (const auto& [name, value] : names) {
    if (text == name) return value;
    known += (known.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  }
  reader.expect("one of " + known);
  return names.front().second;
}

template <class Value>
const char* name_of(Value value, const Names<Value>& names) {
  for (const auto& [name, named] : names) {
    if (named == value) return name;
  }
  return names.front().first;
}

}  // namespace rekernel
