// The table of kernel.json: keys, ranges, meanings, examples.

#include "harness/plan/plan_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"
#include "ops/program.h"

namespace rekernel {

// A namespace of their own: short words, in a source that is compiled together with others.
namespace plan_parts {

using Kind = PlanValue::Kind;

constexpr std::int64_t least_i64 = std::numeric_limits<std::int64_t>::min();
constexpr std::uint64_t most_i64 = std::numeric_limits<std::int64_t>::max();
constexpr const char* identifier_pattern = "^[A-Za-z_][A-Za-z0-9_]{0,63}$";

PlanValue integer(std::int64_t least, std::uint64_t most) {
  return {.kind = Kind::integer, .least = least, .most = most};
}
PlanValue boolean() { return {.kind = Kind::boolean}; }
PlanValue real() { return {.kind = Kind::real}; }
PlanValue text(std::uint64_t most, std::string pattern = "", std::string words = "") {
  return {.kind = Kind::text,
          .least = 1,
          .most = most,
          .pattern = std::move(pattern),
          .words = std::move(words)};
}
PlanValue buffer() { return text(1u << 16, "", "name of a tensor or a workspace"); }
PlanValue identifier() { return text(64, identifier_pattern, "identifier"); }
PlanValue choice(std::vector<std::string> choices) {
  return {.kind = Kind::choice, .choices = std::move(choices)};
}
PlanValue object(std::string name, std::string words) {
  return {.kind = Kind::object, .object = std::move(name), .words = std::move(words)};
}
PlanValue any_of(std::vector<PlanValue> values, std::string words = "") {
  return {.kind = Kind::any_of, .of = std::move(values), .words = std::move(words)};
}
PlanValue list(std::int64_t least, std::uint64_t most, std::vector<PlanValue> of,
               std::string words = "") {
  return {.kind = Kind::list,
          .least = least,
          .most = most,
          .of = std::move(of),
          .words = std::move(words)};
}
PlanValue map(std::uint64_t most, std::string pattern, PlanValue of, std::string words) {
  return {.kind = Kind::map,
          .most = most,
          .pattern = std::move(pattern),
          .of = {std::move(of)},
          .words = std::move(words)};
}

/// The largest of what architectures allow.
std::uint64_t most_of_any(std::int64_t (*most)(Arch)) {
  std::int64_t largest = 0;
  for (const Arch arch : Arch::all()) largest = std::max(largest, most(arch));
  return static_cast<std::uint64_t>(largest);
}

std::int64_t most_shared(Arch arch) { return arch->max_shared_bytes_per_block; }
std::int64_t most_cluster(Arch arch) { return arch->max_cluster_blocks; }
std::int64_t most_registers(Arch arch) { return arch->max_registers_per_thread; }

std::vector<std::string> arch_names() {
  std::vector<std::string> names;
  for (const Arch arch : Arch::all()) names.emplace_back(to_string(arch));
  return names;
}

PlanObject plan() {
  return {
      "plan",
      "The plan",
      "The whole of kernel.json. Unknown keys are errors, at every level.",
      {{.key = "schema",
        .value = integer(1, 1),
        .required = true,
        .meaning = "Version of this format.",
        .example = "1",
        .in_replies = false},
       {.key = "problem",
        .value = text(64, "", "id of a problem"),
        .required = true,
        .meaning = "What the candidate computes; `rekernel list` names the problems. Below "
                   "generated/, the folder above has this name.",
        .example = R"("softmax")",
        .in_replies = false},
       {.key = "name",
        .value = text(64, "^[a-z0-9_]{1,64}$", "name of a-z, 0-9 and _"),
        .required = true,
        .meaning = "Of the candidate. Below generated/, its folder has this name.",
        .example = R"("two_passes")",
        .in_replies = false},
       {.key = "idea",
        .value = text(4000),
        .required = true,
        .meaning = "One paragraph in plain language: what makes it fast.",
        .example = R"("A first kernel finds each row's sum, a second one divides by it.")"},
       {.key = "arch",
        .value = choice(arch_names()),
        .required = true,
        .meaning = "The lowest target. Names that end in `a` run on that chip family alone, the "
                   "others on everything newer too.",
        .example = R"("sm_90a")"},
       {.key = "origin",
        .value = any_of({object("search_origin", ""), object("noted_origin", "")},
                        "object: where it was found"),
        .required = true,
        .meaning = "Where the candidate comes from: a recorded search, or a note.",
        .example = R"({"trajectory": "trajectories/softmax.jsonl", "candidate": "r4.i2.b1"})",
        .in_replies = false},
       {.key = "compile",
        .value = object("compile", "object: compile options"),
        .meaning = "How NVRTC compiles the source, as C++20.",
        .example = R"({"fast_math": true, "defines": {"THREADS": 256}})"},
       {.key = "workspace",
        .value =
            map(64, identifier_pattern, integer(1, static_cast<std::uint64_t>(max_workspace_bytes)),
                "object: bytes by name"),
        .meaning = "Scratch memory. Its content is undefined at the first launch of every run. A "
                   "name is an identifier, and none of a tensor's. All of it together, with "
                   "`__device__` variables, has at most 8589934592 bytes.",
        .example = R"({"row_sum": 16384})"},
       {.key = "launches",
        .value = list(1, 512, {any_of({object("memset", ""), object("launch", "")})},
                      "list of 1 to 512 memsets and kernel launches"),
        .required = true,
        .meaning = "What is run, in this order on one stream; at least one kernel.",
        .example = R"([{"memset": "row_sum", "value": 0},
    {"kernel": "normalise", "grid": [{"per_sm": 2}], "block": [256], "args": ["x", "row_sum", "y"]}])"}}};
}

std::vector<PlanObject> origins() {
  return {{"search_origin",
           "Origin: a recorded search",
           "",
           {{.key = "trajectory",
             .value = text(128, R"(^trajectories/[a-z0-9_-]+\.jsonl$)", "path of a trajectory"),
             .required = true,
             .meaning = "The recording, from the project's root.",
             .example = R"("trajectories/softmax.jsonl")",
             .in_replies = false},
            {.key = "candidate",
             .value = text(64, "^[a-z0-9._-]{1,64}$", "id of a candidate"),
             .required = true,
             .meaning = "Round, idea and branch in that search. Source and plan are those of this "
                        "candidate, byte for byte.",
             .example = R"("r4.i2.b1")",
             .in_replies = false}}},
          {"noted_origin",
           "Origin: a note",
           "For what no recorded search found. It stands alone, without the other two keys.",
           {{.key = "note",
             .value = text(4000),
             .required = true,
             .meaning = "Who or what wrote it, and from what.",
             .example = R"("written by hand")",
             .in_replies = false}}}};
}

PlanObject compile_options() {
  return {"compile",
          "Compile options",
          "",
          {{.key = "fast_math",
            .value = boolean(),
            .meaning = "NVRTC's --use_fast_math: approximate division, square root and "
                       "transcendental functions, and denormals as zero.",
            .example = "true"},
           {.key = "max_registers",
            .value = integer(16, most_of_any(most_registers)),
            .meaning = "NVRTC's --maxrregcount: registers of a thread at most. Values that do not "
                       "fit go to local memory (spills).",
            .example = "168",
            .most = most_registers},
           {.key = "defines",
            .value = map(64, "^[A-Za-z][A-Za-z0-9_]{0,63}$",
                         any_of({integer(least_i64, most_i64),
                                 text(64, "^[A-Za-z][A-Za-z0-9_]{0,63}$", "identifier")}),
                         "object: integers or identifiers by name"),
            .meaning = "Macros. Neither name nor value may start with `_` or be `problem` or "
                       "`defined`.",
            .example = R"({"THREADS": 256, "TYPE": "float"})"}}};
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
            .value = integer(0, 255),
            .required = true,
            .meaning = "Every byte gets this value.",
            .example = "0"},
           {.key = "offset_bytes",
            .value = integer(0, static_cast<std::uint64_t>(max_workspace_bytes) - 1),
            .meaning = "The first byte that is set; 0 by default.",
            .example = "0",
            .most_words = "within the buffer"},
           {.key = "bytes",
            .value = integer(1, static_cast<std::uint64_t>(max_workspace_bytes)),
            .meaning = "How many; up to the end of the workspace by default.",
            .example = "4096",
            .most_words = "within the buffer"}}};
}

PlanValue extents(std::array<std::uint64_t, 3> most, std::string words) {
  return list(1, 3, {integer(1, most[0]), integer(1, most[1]), integer(1, most[2])},
              std::move(words));
}

PlanValue grid_extents() {
  PlanValue grid = extents({2147483647, 65535, 65535},
                           "list of 1 to 3 integers from 1 to 2147483647, 65535, 65535; the first "
                           "may be {\"per_sm\": n}");
  grid.of[0] = any_of({grid.of[0], object("per_sm", "")});
  return grid;
}

PlanValue cluster_extents() { return list(1, 3, {integer(1, most_of_any(most_cluster))}); }

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
        .value = integer(0, most_of_any(most_shared)),
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
       {.key = "args",
        .value = list(0, 64,
                      {any_of({buffer(), object("scalar", ""), object("tensor_map_argument", ""),
                               object("bytes_argument", "")})},
                      "list of at most 64 arguments"),
        .required = true,
        .meaning = "The kernel's arguments in order. A name passes the address of a tensor or "
                   "workspace.",
        .example = R"(["x", {"i32": 7}])"}}};
}

PlanObject per_sm() {
  return {"per_sm",
          "Blocks by multiprocessor",
          "The first extent of a grid that fits any device.",
          {{.key = "per_sm",
            .value = integer(1, 32),
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
      {one("i32", integer(std::numeric_limits<std::int32_t>::min(), 2147483647), "int", "-7"),
       one("u32", integer(0, 4294967295), "unsigned int", "7"),
       one("i64", integer(least_i64, most_i64), "long long", "-7"),
       one("u64", integer(0, std::numeric_limits<std::uint64_t>::max()), "unsigned long long", "7"),
       one("f32", real(), "float", "0.5"), one("f64", real(), "double", "0.5")},
      true};
}

std::vector<PlanObject> tensor_map() {
  const auto extents_of = [](std::int64_t least_rank, std::uint64_t most_rank, std::int64_t least,
                             std::uint64_t most) {
    return list(least_rank, most_rank, {integer(least, most)});
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
         .value = integer(0, most_i64),
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
         .in_replies = false}}},
      {"address",
       "An address in bytes",
       "",
       {{.key = "at",
         .value = integer(0, most_bytes),
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
         .value = integer(0, most_i64),
         .meaning = "Added to the address; 0 by default.",
         .example = "16",
         .in_replies = false,
         .most_words = "within the buffer"}}}};
}

}  // namespace plan_parts

const std::vector<PlanObject>& plan_objects() {
  using namespace plan_parts;  // NOLINT(google-build-using-namespace)
  static const std::vector<PlanObject> objects = [] {
    std::vector<PlanObject> all{plan()};
    const auto add = [&](std::vector<PlanObject> more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    add(origins());
    add({compile_options(), memset(), launch(), per_sm(), scalar()});
    add(tensor_map());
    add(bytes_argument());
    return all;
  }();
  return objects;
}

const PlanObject& plan_object(std::string_view name) {
  for (const PlanObject& object : plan_objects()) {
    if (object.name == name) return object;
  }
  throw std::logic_error("kernel.json has no object " + std::string(name));
}

std::vector<const PlanObject*> objects_in(const PlanValue& value) {
  if (value.kind == PlanValue::Kind::object) return {&plan_object(value.object)};
  std::vector<const PlanObject*> found;
  for (const PlanValue& one : value.of) {
    for (const PlanObject* object : objects_in(one)) found.push_back(object);
  }
  return found;
}

PlanValue value_for(const PlanKey& key, Arch arch) {
  PlanValue value = key.value;
  if (!key.most) return value;
  PlanValue& bounded = value.kind == PlanValue::Kind::list ? value.of.front() : value;
  bounded.most = static_cast<std::uint64_t>(key.most(arch));
  return value;
}

std::string plan_example(const PlanObject& object) {
  std::string text = "{";
  for (const PlanKey& key : object.keys) {
    text += (text.size() > 1 ? ", \"" : "\"") + key.key + "\": " + key.example;
  }
  return text + "}";
}

}  // namespace rekernel
