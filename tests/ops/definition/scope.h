#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/definition/definition.h"

namespace rekernel::definition {

/// A tensor as a problem's file declares it, without names of its extents in C++.
inline TensorInfo tensor(const std::string& name, DType dtype, std::vector<std::int64_t> extents,
                         TensorInfo::Role role = TensorInfo::Role::input) {
  TensorInfo info;
  info.name = name;
  info.role = role;
  info.dtype = dtype;
  info.extents = std::move(extents);
  for (const std::int64_t extent : info.extents) {
    info.extent_texts.push_back(std::to_string(extent));
  }
  info.is_defined = role == TensorInfo::Role::input;
  if (const auto range = integer_range(dtype)) {
    info.type = dtype == DType::boolean ? Type::boolean : Type::integer;
    info.interval = {range->low, range->high};
  }
  return info;
}

inline TensorInfo output(const std::string& name, DType dtype, std::vector<std::int64_t> extents) {
  return tensor(name, dtype, std::move(extents), TensorInfo::Role::output);
}

inline void expect_ok(const Result<Ok>& result) {
  if (!result) throw std::logic_error(result.error().message);
}

/// A definition of these tensors and statements, which are sound.
inline Definition definition_of(std::vector<TensorInfo> tensors,
                                const std::vector<std::string>& statements) {
  Definition definition;
  for (TensorInfo& one : tensors) expect_ok(definition.add_tensor(std::move(one)));
  for (const std::string& statement : statements) {
    expect_ok(definition.add_statement(std::string_view(statement)));
  }
  return definition;
}

}  // namespace rekernel::definition
