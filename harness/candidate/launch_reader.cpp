#include "harness/candidate/launch_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "harness/candidate/argument_reader.h"
#include "harness/candidate/code.h"

namespace rekernel {

namespace {

constexpr std::array<std::int64_t, 3> max_grid = {2147483647, 65535, 65535};
constexpr std::array<std::int64_t, 3> max_block = {1024, 1024, 64};
constexpr std::int64_t max_block_threads = 1024;
/// All of a plan is issued before the device may begin it: what a stream takes without waiting.
constexpr std::size_t most_steps = 512;

Memset read_memset(JsonReader reader, PlanContext& context) {
  Memset memset;
  JsonReader name = reader.required("memset");
  memset.buffer = context.buffer(name);
  if (context.problem().find_tensor(memset.buffer)) {
    name.fail("\"" + memset.buffer + "\" is a tensor; only a workspace can be set");
  }
  memset.value = static_cast<std::uint8_t>(context.integer(reader.required("value"), 0, 255));
  if (reader.error()) return memset;
  const std::int64_t available = *context.bytes(memset.buffer);
  if (reader.has("offset_bytes")) {
    memset.offset_bytes = context.integer(reader.required("offset_bytes"), 0, available - 1);
  }
  if (reader.has("bytes")) {
    memset.bytes = context.integer(reader.required("bytes"), 1, available - memset.offset_bytes);
  }
  reader.no_other_keys();
  return memset;
}

/// What a person wrote has a plain name; what a compiler made has any that its assembler takes.
std::string read_kernel_name(JsonReader reader, const Program& program, int module) {
  const bool written =
      module == 0
          ? program.language == Language::cuda
          : program.modules[static_cast<std::size_t>(module) - 1].language == Language::cuda;
  if (written || reader.error()) return reader.identifier();
  const std::string name = reader.string(max_kernel_name);
  if (!is_kernel_name(name)) reader.expect("a kernel's name of letters, digits, _, $ and .");
  return name;
}

void read_grid(JsonReader reader, PlanContext& context, KernelLaunch& launch) {
  std::vector<JsonReader> extents = reader.array(1, 3);
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (i == 0 && extents[i].is_object()) {
      launch.grid[i] = {context.integer(extents[i].required("per_sm"), 1, 32), true};
      extents[i].no_other_keys();
    } else {
      launch.grid[i] = {context.integer(extents[i], 1, max_grid[i]), false};
    }
  }
}

void read_block(JsonReader reader, PlanContext& context, KernelLaunch& launch) {
  std::vector<JsonReader> extents = reader.array(1, 3);
  std::int64_t threads = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    launch.block[i] = context.integer(extents[i], 1, max_block[i]);
    threads *= launch.block[i];
  }
  if (threads > max_block_threads) {
    context.refuse(reader, "expected at most " + std::to_string(max_block_threads) +
                               " threads, got " + std::to_string(threads));
  }
}

void read_cluster(JsonReader reader, PlanContext& context, KernelLaunch& launch) {
  context.require(has_clusters, reader);
  const std::int64_t max_cluster_blocks = context.arch()->max_cluster_blocks;
  std::vector<JsonReader> extents = reader.array(1, 3);
  std::int64_t blocks = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    launch.cluster[i] = context.integer(extents[i], 1, max_cluster_blocks);
    blocks *= launch.cluster[i];
    const GridExtent& grid = launch.grid[i];
    if (!grid.per_sm && grid.count % launch.cluster[i] != 0) {
      context.refuse(extents[i], "the grid's extent of " + std::to_string(grid.count) +
                                     " is not a multiple of " + std::to_string(launch.cluster[i]));
    }
  }
  if (blocks > max_cluster_blocks) {
    context.refuse(reader, "expected at most " + std::to_string(max_cluster_blocks) +
                               " blocks, got " + std::to_string(blocks));
  }
}

KernelLaunch read_kernel(JsonReader reader, PlanContext& context, const Program& program) {
  KernelLaunch launch;
  if (reader.has("module")) {
    launch.module = static_cast<int>(
        reader.required("module").integer(0, static_cast<std::int64_t>(program.modules.size())));
  }
  launch.kernel = read_kernel_name(reader.required("kernel"), program, launch.module);
  read_grid(reader.required("grid"), context, launch);
  read_block(reader.required("block"), context, launch);
  if (auto cluster = reader.optional("cluster")) read_cluster(*cluster, context, launch);
  if (auto shared = reader.optional("dynamic_shared_bytes")) {
    launch.dynamic_shared_bytes =
        context.integer(*shared, 0, context.arch()->max_shared_bytes_per_block);
  }
  if (auto flag = reader.optional("cooperative")) launch.cooperative = flag->boolean();
  if (auto flag = reader.optional("programmatic_launch")) {
    launch.programmatic_launch = flag->boolean();
    if (launch.programmatic_launch) context.require(has_clusters, *flag);
  }
  if (auto carveout = reader.optional("shared_memory_carveout")) {
    launch.shared_memory_carveout = static_cast<int>(carveout->integer(0, most_carveout));
  }
  for (JsonReader& argument : reader.required("args").array(0, 64)) {
    launch.args.push_back(read_argument(argument, context));
  }
  reader.no_other_keys();
  return launch;
}

}  // namespace

std::vector<Step> read_launches(JsonReader reader, PlanContext& context, const Program& program) {
  std::vector<Step> steps;
  bool has_kernel = false;
  bool has_condition = false;
  for (JsonReader& one : reader.array(1, most_steps)) {
    bool runs = true;
    if (auto when = one.optional("when")) {
      has_condition = true;
      runs = context.condition(*when);
    }
    context.skip(!runs);
    Step step = one.has("memset") ? Step(read_memset(one, context))
                                  : Step(read_kernel(one, context, program));
    context.skip(false);
    if (!runs) continue;
    has_kernel |= std::holds_alternative<KernelLaunch>(step);
    steps.push_back(std::move(step));
  }
  if (!has_kernel) {
    reader.fail(has_condition ? "expected at least one kernel, and no \"when\" of one holds"
                              : "expected at least one kernel");
  }
  return steps;
}

}  // namespace rekernel
