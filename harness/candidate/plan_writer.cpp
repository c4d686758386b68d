// kernel.json: writing a plan.

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/plan_names.h"

namespace rekernel {
namespace {

namespace json = boost::json;

/// The shortest decimal that reads back as this float.
double shortest_decimal(float value) {
  std::array<char, 64> text;
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double decimal = 0;
  std::from_chars(text.data(), end, decimal);
  return decimal;
}

/// Extents without the ones at the end.
json::array extents_json(const std::array<std::int64_t, 3>& extents) {
  std::size_t size = 3;
  while (size > 1 && extents[size - 1] == 1) --size;
  return json::array(extents.begin(), extents.begin() + size);
}

json::array grid_json(const std::array<GridExtent, 3>& grid) {
  json::array result;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const bool only_ones = std::all_of(grid.begin() + i, grid.end(), [](const GridExtent& extent) {
      return extent.count == 1 && !extent.per_sm;
    });
    if (i > 0 && only_ones) break;
    if (grid[i].per_sm) {
      result.push_back(json::object{{"per_sm", grid[i].count}});
    } else {
      result.push_back(grid[i].count);
    }
  }
  return result;
}

json::value argument_json(const BufferArgument& argument) { return json::string(argument.buffer); }

json::value argument_json(const ScalarArgument& argument) {
  constexpr std::array types = {"i32", "u32", "i64", "u64", "f32", "f64"};
  json::object result;
  std::visit(
      [&](auto value) {
        if constexpr (std::is_same_v<decltype(value), float>) {
          result[types[argument.index()]] = shortest_decimal(value);
        } else {
          result[types[argument.index()]] = value;
        }
      },
      argument);
  return result;
}

json::value argument_json(const TensorMapArgument& map) {
  json::object result;
  result["of"] = map.buffer;
  result["dtype"] = to_string(map.dtype);
  if (map.offset_bytes != 0) result["offset_bytes"] = map.offset_bytes;
  result["dims"] = json::value_from(map.dims);
  result["strides_bytes"] = json::value_from(map.strides_bytes);
  result["box"] = json::value_from(map.box);
  if (!map.element_strides.empty()) {
    result["element_strides"] = json::value_from(map.element_strides);
  }
  if (map.swizzle != TensorMapArgument::Swizzle::none) {
    result["swizzle"] = name_of(map.swizzle, swizzle_names);
  }
  if (map.l2_promotion != TensorMapArgument::L2Promotion::none) {
    result["l2_promotion"] = name_of(map.l2_promotion, l2_promotion_names);
  }
  if (map.fill_nan) result["fill"] = name_of(map.fill_nan, fill_names);
  return json::object{{"tensor_map", result}};
}

json::value argument_json(const BytesArgument& argument) {
  json::object result = {{"bytes", hexadecimal(argument.bytes)}};
  for (const BytesArgument::Address& address : argument.addresses) {
    json::value& list = result["addresses"];
    if (!list.is_array()) list.emplace_array();
    json::object entry = {{"at", address.at}, {"of", address.buffer}};
    if (address.offset_bytes != 0) entry["offset_bytes"] = address.offset_bytes;
    list.get_array().push_back(std::move(entry));
  }
  if (!argument.tensor_maps.empty()) {
    json::array maps;
    for (const auto& [at, map] : argument.tensor_maps) {
      json::object entry = argument_json(map).as_object();
      entry["at"] = at;
      maps.push_back(std::move(entry));
    }
    result["tensor_maps"] = std::move(maps);
  }
  return result;
}

json::object step_json(const Memset& memset) {
  json::object result = {{"memset", memset.buffer},
                         {"value", static_cast<std::int64_t>(memset.value)}};
  if (memset.offset_bytes != 0) result["offset_bytes"] = memset.offset_bytes;
  if (memset.bytes != 0) result["bytes"] = memset.bytes;
  return result;
}

json::object step_json(const KernelLaunch& launch) {
  json::object result;
  result["kernel"] = launch.kernel;
  if (launch.module != 0) result["module"] = launch.module;
  result["grid"] = grid_json(launch.grid);
  result["block"] = extents_json(launch.block);
  if (launch.cluster != std::array<std::int64_t, 3>{1, 1, 1}) {
    result["cluster"] = extents_json(launch.cluster);
  }
  if (launch.dynamic_shared_bytes != 0) {
    result["dynamic_shared_bytes"] = launch.dynamic_shared_bytes;
  }
  if (launch.cooperative) result["cooperative"] = true;
  if (launch.programmatic_launch) result["programmatic_launch"] = true;
  if (launch.shared_memory_carveout) {
    result["shared_memory_carveout"] = *launch.shared_memory_carveout;
  }
  json::array args;
  for (const Argument& argument : launch.args) {
    args.push_back(std::visit([](const auto& value) { return argument_json(value); }, argument));
  }
  result["args"] = std::move(args);
  return result;
}

json::object origin_json(const Origin& origin) {
  if (!origin.note.empty()) return {{"note", origin.note}};
  return {{"trajectory", origin.trajectory}, {"candidate", origin.candidate}};
}

json::object compile_json(const CompileOptions& options) {
  json::object result;
  if (options.fast_math) result["fast_math"] = true;
  if (options.max_registers) result["max_registers"] = *options.max_registers;
  json::object defines;
  for (const auto& [name, text] : options.defines) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool integer = code == std::errc() && end == text.data() + text.size();
    defines[name] = integer ? json::value(number) : json::value(text);
  }
  if (!defines.empty()) result["defines"] = std::move(defines);
  return result;
}

/// What depends on sizes, as it was written where that is in axes.
json::object sized_json(const Candidate& candidate) {
  if (candidate.is_in_axes()) return json::parse(candidate.written).as_object();
  const Program& program = candidate.program;
  json::object result;
  if (!program.workspaces.empty()) {
    json::object& workspaces = result["workspace"].emplace_object();
    for (const Workspace& workspace : program.workspaces) {
      workspaces[workspace.name] = workspace.bytes;
    }
  }
  json::array& launches = result["launches"].emplace_array();
  for (const Step& step : program.steps) {
    launches.push_back(std::visit([](const auto& value) { return step_json(value); }, step));
  }
  return result;
}

}  // namespace

std::string candidate_json(const Candidate& candidate) {
  json::object result;
  result["schema"] = 1;
  result["problem"] = candidate.problem;
  result["name"] = candidate.name;
  result["idea"] = candidate.idea;
  result["arch"] = to_string(candidate.arch);
  result["origin"] = origin_json(candidate.origin);
  const Program& program = candidate.program;
  if (json::object compile = compile_json(program.compile); !compile.empty()) {
    result["compile"] = std::move(compile);
  }
  for (auto& [key, value] : sized_json(candidate)) result[key] = std::move(value);
  return pretty_json(result);
}

}  // namespace rekernel
