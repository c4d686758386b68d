// The table of kernel.json: what stands in `launches`.

#include <array>
#include <limits>

#include "harness/candidate/code.h"
#include "harness/plan/plan_values.h"
#include "ops/program.h"

namespace rekernel::plan_parts {

namespace {

PlanKey when(const std::string& example) {
  return {.key = "when",
          .value = condition(),
          .meaning =
              "It runs only at sizes where this holds: comparisons of integers, joined by "
              "`and`, `or` and `not`; always by default.",
          .example = "\"" + example + "\""};
}

PlanObject memset() {
  return {"memset",
          "A memset",
          "Sets bytes of a workspace before the next launch.",
          {{.key = "memset",
            .value = text(1u << 16, "", "name of a workspace"),
            .required = true,
            .meaning = "Which workspace. Tensors cannot be set.",
            .example = R"("row_sum")"},
           {.key = "value",
            .value = sized_integer(0, 255),
            .required = true,
            .meaning = "Every byte gets this value.",
            .example = "0"},
           {.key = "offset_bytes",
            .value = sized_integer(0, static_cast<std::uint64_t>(max_workspace_bytes) - 1),
            .meaning = "The first byte that is set; 0 by default.",
            .example = "0",
            .most_words = "within the buffer"},
           {.key = "bytes",
            .value = sized_integer(1, static_cast<std::uint64_t>(max_workspace_bytes)),
            .meaning = "How many; up to the end of the workspace by default.",
            .example = "4096",
            .most_words = "within the buffer"},
           when("rows > 1")}};
}

PlanValue extents(std::array<std::uint64_t, 3> most, std::string words) {
  return list(1, 3,
              {sized_integer(1, most[0]), sized_integer(1, most[1]), sized_integer(1, most[2])},
              std::move(words));
}

PlanValue grid_extents() {
  PlanValue grid = extents({2147483647, 65535, 65535},
                           "list of 1 to 3 integers from 1 to 2147483647, 65535, 65535; the first "
                           "may be {\"per_sm\": n}");
  grid.of[0] = any_of({grid.of[0], object("per_sm", "")});
  return grid;
}

PlanValue cluster_extents() { return list(1, 3, {sized_integer(1, most_of_any(most_cluster))}); }

PlanObject launch() {
  return {
      "launch",
      "A kernel launch",
      "",
      {{.key = "kernel",
        .value = text(max_kernel_name, "^[A-Za-z0-9_$.]+$", "name of a kernel"),
        .required = true,
        .meaning = "An `extern \"C\" __global__` function of the source.",
        .example = R"("normalise")"},
       {.key = "module",
        .value = integer(0, most_modules),
        .meaning = "Which file of code has it, for captured programs of several: 0 is the first.",
        .example = "0",
        .in_replies = false,
        .most_words = "below the number of files"},
       {.key = "grid",
        .value = grid_extents(),
        .required = true,
        .meaning = "Blocks.",
        .example = R"([{"per_sm": 2}])"},
       {.key = "block",
        .value = extents({1024, 1024, 64}, "list of 1 to 3 integers from 1 to 1024, 1024, 64"),
        .required = true,
        .meaning = "Threads of a block, at most 1024 together.",
        .example = "[256]"},
       {.key = "cluster",
        .value = cluster_extents(),
        .meaning =
            "Blocks of a cluster; the most holds for their product too. The grid's extents are "
            "multiples of these.",
        .example = "[2]",
        .needs = has_clusters,
        .most = most_cluster},
       {.key = "dynamic_shared_bytes",
        .value = sized_integer(0, most_of_any(most_shared)),
        .meaning = "Dynamic shared memory of a block. With the static part it has to fit what the "
                   "device grants a block.",
        .example = "65536",
        .most = most_shared},
       {.key = "cooperative",
        .value = boolean(),
        .meaning = "A cooperative launch: all blocks are resident at once and may wait for each "
                   "other (`cooperative_groups::this_grid().sync()`).",
        .example = "false"},
       {.key = "programmatic_launch",
        .value = boolean(),
        .meaning = "The kernel may begin before the one before it has ended; it waits with "
                   "`cudaGridDependencySynchronize()`.",
        .example = "true",
        .needs = has_clusters},
       {.key = "shared_memory_carveout",
        .value = integer(0, most_carveout),
        .meaning =
            "How much of the memory that shared memory and the L1 cache divide is to be shared "
            "memory, in percent: a preference. Without it, the driver chooses.",
        .example = "100"},
       {.key = "args",
        .value = list(0, 64,
                      {any_of({buffer(), object("scalar", ""), object("tensor_map_argument", ""),
                               object("bytes_argument", "")})},
                      "list of at most 64 arguments"),
        .required = true,
        .meaning = "The kernel's arguments in order. A name passes the address of a tensor or "
                   "workspace.",
        .example = R"(["x", {"i32": 7}])"},
       when("rows % 4 == 0")}};
}

PlanObject per_sm() {
  return {"per_sm",
          "Blocks by multiprocessor",
          "The first extent of a grid that fits any device.",
          {{.key = "per_sm",
            .value = sized_integer(1, 32),
            .required = true,
            .meaning = "So many blocks for each multiprocessor; of a cooperative launch, as many "
                       "as can be resident, up to that.",
            .example = "2"}}};
}

PlanObject scalar() {
  const auto one = [](const char* key, PlanValue value, const char* type, const char* example) {
    return PlanKey{.key = key,
                   .value = std::move(value),
                   .meaning = std::string("Passed as `") + type + "`.",
                   .example = example};
  };
  return {
      "scalar",
      "An argument: a scalar",
      "Exactly one key, the type of the kernel's parameter.",
      {one("i32", sized_integer(std::numeric_limits<std::int32_t>::min(), 2147483647), "int", "-7"),
       one("u32", sized_integer(0, 4294967295), "unsigned int", "7"),
       one("i64", sized_integer(least_i64, most_i64), "long long", "-7"),
       one("u64", sized_integer(0, std::numeric_limits<std::uint64_t>::max()), "unsigned long long",
           "7"),
       one("f32", real(), "float", "0.5"), one("f64", real(), "double", "0.5")},
      true};
}

std::vector<PlanObject> tensor_map() {
  const auto extents_of = [](std::int64_t least_rank, std::uint64_t most_rank, std::int64_t least,
                             std::uint64_t most) {
    return list(least_rank, most_rank, {sized_integer(least, most)});
  };
  return {
      {"tensor_map_argument",
       "An argument: a tensor map",
       "A descriptor for bulk tensor copies, which the harness encodes and passes by value as "
       "`const __grid_constant__ CUtensorMap`.",
       {{.key = "tensor_map",
         .value = object("tensor_map", "object: a tensor map"),
         .required = true,
         .meaning = "What is copied, and in which boxes.",
         .example = R"({"of": "x", "dtype": "f32", "dims": [65536, 4096],
        "strides_bytes": [262144], "box": [32, 64], "swizzle": "128B"})",
         .needs = has_tensor_maps}}},
      {"tensor_map",
       "A tensor map",
       "Dimensions run from the innermost outwards, as in cuTensorMapEncodeTiled. It may reach "
       "nothing beyond the buffer.",
       {{.key = "of",
         .value = buffer(),
         .required = true,
         .meaning = "Which buffer.",
         .example = R"("x")"},
        {.key = "dtype",
         .value = choice({"f16", "bf16", "f32", "f64", "u8", "i32", "i64"}),
         .required = true,
         .meaning = "Type of the elements.",
         .example = R"("f32")"},
        {.key = "dims",
         .value = extents_of(1, 5, 1, std::uint64_t{1} << 32),
         .required = true,
         .meaning = "Extents in elements, the innermost first.",
         .example = "[65536, 4096]"},
        {.key = "strides_bytes",
         .value = extents_of(0, 4, 16, (std::uint64_t{1} << 40) - 1),
         .required = true,
         .meaning = "Strides of all dimensions but the innermost, multiples of 16.",
         .example = "[262144]"},
        {.key = "box",
         .value = extents_of(1, 5, 1, 256),
         .required = true,
         .meaning = "Extents of one copy, one for each dimension. The innermost has a multiple of "
                    "16 bytes, and no more than the swizzle.",
         .example = "[32, 64]"},
        {.key = "offset_bytes",
         .value = sized_integer(0, most_i64),
         .meaning = "Where in the buffer it begins, a multiple of 16; 0 by default.",
         .example = "0"},
        {.key = "element_strides",
         .value = extents_of(1, 5, 1, 8),
         .meaning = "Steps between elements, one for each dimension; all 1 by default.",
         .example = "[1, 1]"},
        {.key = "swizzle",
         .value = choice({"none", "32B", "64B", "128B"}),
         .meaning = "How the box lies in shared memory; `none` by default.",
         .example = R"("128B")"},
        {.key = "l2_promotion",
         .value = choice({"none", "64B", "128B", "256B"}),
         .meaning = "How much is read into the L2 cache at once; `none` by default.",
         .example = R"("256B")"},
        {.key = "fill",
         .value = choice({"zeros", "nan"}),
         .meaning = "What lies outside reads as; `zeros` by default.",
         .example = R"("nan")"}}}};
}

std::vector<PlanObject> bytes_argument() {
  constexpr std::uint64_t most_bytes = 32764;  // of one kernel's parameters, from sm_70 on
  return {
      {"bytes_argument",
       "An argument: bytes",
       "A parameter as its bytes, into which the harness writes addresses. Captured programs pass "
       "structs so.",
       {{.key = "bytes",
         .value = text(2 * most_bytes, "^([0-9a-fA-F]{2})+$", "pairs of hexadecimal digits"),
         .required = true,
         .meaning = "The parameter's bytes.",
         .example = R"("0000000000000000ff000000")",
         .in_replies = false},
        {.key = "addresses",
         .value =
             list(0, most_bytes / 8, {object("address", "")}, "list of at most 4095 addresses"),
         .meaning = "What is written into them.",
         .example = R"([{"at": 0, "of": "x"}])",
         .in_replies = false},
        {.key = "tensor_maps",
         .value = list(0, most_bytes / 128, {object("placed_tensor_map", "")},
                       "list of at most 255 tensor maps"),
         .meaning = "Tensor maps that are encoded into them.",
         .example = "[]",
         .in_replies = false}}},
      {"placed_tensor_map",
       "A tensor map in bytes",
       "",
       {{.key = "at",
         .value = sized_integer(0, most_bytes),
         .required = true,
         .meaning = "Where in the bytes: multiples of 64, rising, with 128 bytes from each on, in "
                    "which no address lies.",
         .example = "0",
         .in_replies = false},
        {.key = "tensor_map",
         .value = object("tensor_map", "object: a tensor map"),
         .required = true,
         .meaning = "As an argument's.",
         .example = R"({"of": "x", "dtype": "f32", "dims": [65536], "strides_bytes": [],
        "box": [32]})",
         .needs = has_tensor_maps,
         .in_replies = false}}},
      {"address",
       "An address in bytes",
       "",
       {{.key = "at",
         .value = sized_integer(0, most_bytes),
         .required = true,
         .meaning = "Where in the bytes: multiples of 8, rising, with 8 bytes after each.",
         .example = "0",
         .in_replies = false},
        {.key = "of",
         .value = buffer(),
         .required = true,
         .meaning = "Whose address.",
         .example = R"("x")",
         .in_replies = false},
        {.key = "offset_bytes",
         .value = sized_integer(0, most_i64),
         .meaning = "Added to the address; 0 by default.",
         .example = "16",
         .in_replies = false,
         .most_words = "within the buffer"}}}};
}

}  // namespace

std::vector<PlanObject> launch_objects() {
  std::vector<PlanObject> objects{memset(), launch(), per_sm(), scalar()};
  for (const std::vector<PlanObject>& more : {tensor_map(), bytes_argument()}) {
    objects.insert(objects.end(), more.begin(), more.end());
  }
  return objects;
}

}  // namespace rekernel::plan_parts
