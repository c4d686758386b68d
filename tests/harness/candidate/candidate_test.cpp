#include "harness/candidate/candidate.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include <fstream>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* where = "generated/softmax/online/kernel.json";
constexpr const char* source = "extern \"C\" __global__ void k(const float* x, float* y) {}\n";

/// The smallest plan there is.
json::object small_plan() {
  return json::parse(R"({"schema": 1, "problem": "softmax", "name": "online", "idea": "one pass",
    "arch": "sm_80", "origin": {"note": "written for a test"},
    "launches": [{"kernel": "k", "grid": [1], "block": [32], "args": ["x", "y"]}]})")
      .as_object();
}

/// A plan that uses every key.
json::object full_plan() {
  return json::parse(R"({"schema": 1, "problem": "softmax", "name": "online", "idea": "one pass",
    "arch": "sm_90a", "origin": {"trajectory": "trajectories/softmax.jsonl", "candidate": "r4.i2.b1"},
    "compile": {"fast_math": true, "max_registers": 168,
                "defines": {"STAGES": 3, "TYPE": "float", "LOW": -1}},
    "workspace": {"zcounters": 4, "partial": 82944},
    "launches": [
      {"memset": "zcounters", "value": 255},
      {"kernel": "k", "grid": [{"per_sm": 2}, 3, 4], "block": [32, 4, 2], "cluster": [2, 3],
       "dynamic_shared_bytes": 232448, "cooperative": true, "programmatic_launch": true,
       "shared_memory_carveout": 60,
       "args": ["x", "partial", {"i32": -2147483648}, {"u32": 4294967295},
                {"i64": -9223372036854775808}, {"u64": 18446744073709551615}, {"f32": 0.1},
                {"f64": 0.1}, {"f32": -3},
                {"tensor_map": {"of": "x", "dtype": "f32", "offset_bytes": 16, "dims": [65532, 4096],
                 "strides_bytes": [262144], "box": [32, 256], "element_strides": [1, 2],
                 "swizzle": "128B", "l2_promotion": "256B", "fill": "nan"}}]}]})")
      .as_object();
}

/// `plan` with the value at a pointer such as "/launches/0/grid" replaced (or added).
json::object changed(json::object plan, std::string_view pointer, std::string_view text) {
  json::value root = std::move(plan);
  json::value* place = &root;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string key(pointer.substr(0, pointer.find('/')));
    pointer.remove_prefix(key.size());
    place = place->is_array() ? &place->as_array().at(std::stoul(key)) : &place->as_object()[key];
  }
  *place = json::parse(json::string_view(text.data(), text.size()));
  return std::move(root.as_object());
}

std::string plan_error(const json::object& plan) {
  const auto candidate = parse_candidate(json::serialize(plan), source, where);
  return candidate.ok() ? "" : candidate.error().message;
}

std::string small_error(std::string_view pointer, std::string_view text) {
  return plan_error(changed(small_plan(), pointer, text));
}

std::string full_error(std::string_view pointer, std::string_view text) {
  return plan_error(changed(full_plan(), pointer, text));
}

Candidate valid(const json::object& plan) {
  auto candidate = parse_candidate(json::serialize(plan), source, where);
  EXPECT_TRUE(candidate.ok()) << (candidate.ok() ? "" : candidate.error().message);
  return candidate.ok() ? *std::move(candidate) : Candidate{};
}

const std::string place = std::string(where) + ": ";

TEST(Candidate, SmallestPlanTakesTheDefaults) {
  const Candidate candidate = valid(small_plan());
  EXPECT_EQ(candidate.problem, "softmax");
  EXPECT_EQ(candidate.arch, Arch("sm_80"));
  EXPECT_EQ(candidate.origin.note, "written for a test");
  EXPECT_EQ(candidate.program.source, source);
  EXPECT_FALSE(candidate.program.compile.fast_math);
  EXPECT_FALSE(candidate.program.compile.max_registers);
  ASSERT_EQ(candidate.program.steps.size(), 1u);
  const auto& launch = std::get<KernelLaunch>(candidate.program.steps[0]);
  EXPECT_EQ(launch.kernel, "k");
  EXPECT_EQ(launch.grid[2].count, 1);
  EXPECT_EQ(launch.block, (std::array<std::int64_t, 3>{32, 1, 1}));
  EXPECT_EQ(launch.cluster, (std::array<std::int64_t, 3>{1, 1, 1}));
  EXPECT_FALSE(launch.cooperative);
  EXPECT_EQ(std::get<BufferArgument>(launch.args[1]).buffer, "y");
}

TEST(Candidate, EveryKeyIsRead) {
  const Candidate candidate = valid(full_plan());
  EXPECT_EQ(candidate.origin.candidate, "r4.i2.b1");
  EXPECT_EQ(candidate.program.compile.max_registers, 168);
  EXPECT_EQ(
      candidate.program.compile.defines,
      (std::map<std::string, std::string>{{"STAGES", "3"}, {"TYPE", "float"}, {"LOW", "-1"}}));
  ASSERT_EQ(candidate.program.workspaces.size(), 2u);
  EXPECT_EQ(candidate.program.workspaces[1].bytes, 82944);
  EXPECT_EQ(std::get<Memset>(candidate.program.steps[0]).value, 255);
  const auto& launch = std::get<KernelLaunch>(candidate.program.steps[1]);
  EXPECT_TRUE(launch.grid[0].per_sm);
  EXPECT_EQ(launch.grid[0].count, 2);
  EXPECT_EQ(launch.grid[2].count, 4);
  EXPECT_EQ(launch.cluster, (std::array<std::int64_t, 3>{2, 3, 1}));
  EXPECT_TRUE(launch.cooperative);
  EXPECT_TRUE(launch.programmatic_launch);
  EXPECT_EQ(launch.shared_memory_carveout, 60);
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[2]), ScalarArgument(INT32_MIN));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[3]), ScalarArgument(UINT32_MAX));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[4]), ScalarArgument(INT64_MIN));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[5]), ScalarArgument(UINT64_MAX));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[6]), ScalarArgument(0.1f));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[7]), ScalarArgument(0.1));
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[8]), ScalarArgument(-3.0f));
  const auto& map = std::get<TensorMapArgument>(launch.args[9]);
  EXPECT_EQ(map.buffer, "x");
  EXPECT_EQ(map.offset_bytes, 16);
  EXPECT_EQ(map.dims, (std::vector<std::int64_t>{65532, 4096}));
  EXPECT_EQ(map.element_strides, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(map.swizzle, TensorMapArgument::Swizzle::b128);
  EXPECT_EQ(map.l2_promotion, TensorMapArgument::L2Promotion::b256);
  EXPECT_TRUE(map.fill_nan);
}

TEST(Candidate, WritesWhatItRead) {
  for (const json::object& plan : {small_plan(), full_plan()}) {
    const Candidate candidate = valid(plan);
    const std::string text = candidate_json(candidate);
    const auto again = parse_candidate(text, source, where);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(candidate_json(*again), text);
    EXPECT_EQ(candidate_sha256(*again), candidate_sha256(candidate));
    EXPECT_EQ(again->idea, candidate.idea);
    EXPECT_EQ(again->origin.trajectory, candidate.origin.trajectory);
  }
  // Only what differs from the defaults, in the order of the contract.
  const auto small = parse_json(candidate_json(valid(small_plan())), "f");
  EXPECT_EQ(json::serialize(*small), json::serialize(small_plan()));
}

TEST(Candidate, EveryKeyIsChecked) {
  const json::object plan = small_plan();
  for (const auto& member : plan) {
    json::object without = plan;
    without.erase(member.key());
    EXPECT_EQ(plan_error(without),
              std::string(where) + ": the key \"" + std::string(member.key()) + "\" is missing");
  }
  for (const char* key : {"kernel", "grid", "block", "args"}) {
    json::object without = plan;
    without["launches"].as_array()[0].as_object().erase(key);
    EXPECT_EQ(plan_error(without),
              place + "launches[0]: the key \"" + std::string(key) + "\" is missing");
  }
}

TEST(Candidate, MessagesNamePlaceAndExpectation) {
  EXPECT_EQ(small_error("/schema", "2"), place + "schema: expected an integer from 1 to 1, got 2");
  EXPECT_EQ(small_error("/problem", "\"sofmax\""),
            place +
                "problem: unknown problem 'sofmax' (did you mean 'softmax'?): `rekernel list` "
                "names them all");
  EXPECT_EQ(small_error("/name", "\"../up\""),
            place + "name: expected 1 to 64 of a-z, 0-9 and _, got \"../up\"");
  EXPECT_EQ(small_error("/idea", "\"\""), place + "idea: expected some text, got \"\"");
  EXPECT_EQ(small_error("/arch", "\"sm_90\""),
            place + "arch: expected one of " + known_archs() + ", got \"sm_90\"");
  EXPECT_EQ(small_error("/author", "1"),
            place.substr(0, place.size() - 2) +
                ": unknown key \"author\"; known: schema, problem, name, idea, arch, origin, "
                "compile, workspace, launches");
  EXPECT_EQ(
      small_error("/launches/0/gird", "1"),
      place +
          "launches[0]: unknown key \"gird\"; known: when, kernel, grid, block, cluster, "
          "dynamic_shared_bytes, cooperative, programmatic_launch, shared_memory_carveout, args");
  EXPECT_EQ(small_error("/launches/0/grid", "[1, -3]"),
            place + "launches[0].grid[1]: expected an integer from 1 to 65535, got -3");
  EXPECT_EQ(small_error("/launches/0/args/0", "\"z\""),
            place + "launches[0].args[0]: unknown buffer \"z\"; known: x, y");
  EXPECT_EQ(full_error("/launches/0/memset", "\"x\""),
            place + "launches[0].memset: \"x\" is a tensor; only a workspace can be set");
  EXPECT_EQ(full_error("/launches/0/memset", "\"z\""),
            place + "launches[0].memset: unknown buffer \"z\"; known: x, y, zcounters, partial");
  EXPECT_EQ(small_error("/launches", "[]"), place + "launches: expected 1 to 512 entries, got 0");
  EXPECT_EQ(full_error("/launches", R"([{"memset": "partial", "value": 0}])"),
            place + "launches: expected at least one kernel");
  EXPECT_EQ(small_error("/launches/0/block", "[1024, 2]"),
            place + "launches[0].block: expected at most 1024 threads, got 2048");
  EXPECT_EQ(small_error("/launches/0/cluster", "[2]"),
            place +
                "launches[0].cluster: needs arch \"sm_90a\", \"sm_100a\", \"sm_103a\", "
                "\"sm_120a\"; this plan is for \"sm_80\"");
  EXPECT_EQ(full_error("/launches/1/cluster", "[1, 2]"),
            place + "launches[1].cluster[1]: the grid's extent of 3 is not a multiple of 2");
  EXPECT_EQ(full_error("/workspace", R"({"x": 4})"),
            place + "workspace.x: \"x\" is a tensor of the problem; choose another name");
  EXPECT_EQ(small_error("/origin", R"({"note": "n", "candidate": "r1"})"),
            place + "origin: expected either \"trajectory\" and \"candidate\", or \"note\" alone");
  EXPECT_EQ(full_error("/compile/defines", R"({"__x": 1})"),
            place + "compile.defines.__x: identifiers of macros must not start with _");
  EXPECT_EQ(full_error("/launches/1/args/9/tensor_map/dims", "[65533, 4096]"),
            place +
                "launches[1].args[9].tensor_map: reaches 1073741828 bytes into \"x\", which has "
                "1073741824");
}

TEST(Candidate, HostileSmallPlansAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"/schema", "1.0"},
      {"/schema", "\"1\""},
      {"/schema", "true"},
      {"/problem", "7"},
      {"/problem", "\"../softmax\""},
      {"/name", "\"\""},
      {"/name", "\"Online\""},
      {"/name", "\"a/b\""},
      {"/name", "\"a\\u0000\""},
      {"/name", "[]"},
      {"/name", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""},
      {"/idea", "null"},
      {"/arch", "80"},
      {"/arch", "\"sm_999a\""},
      {"/origin", "\"note\""},
      {"/origin", "{}"},
      {"/origin", "{\"note\": \"\"}"},
      {"/origin", "{\"trajectory\": \"trajectories/a.jsonl\"}"},
      {"/origin", "{\"trajectory\": \"/etc/passwd\", \"candidate\": \"r1\"}"},
      {"/origin", "{\"trajectory\": \"trajectories/../a.jsonl\", \"candidate\": \"r1\"}"},
      {"/origin", "{\"trajectory\": \"trajectories/.jsonl\", \"candidate\": \"r1\"}"},
      {"/origin", "{\"trajectory\": \"trajectories/a.jsonl\", \"candidate\": \"r 1\"}"},
      {"/compile", "null"},
      {"/compile", "{\"fast_math\": 1}"},
      {"/compile", "{\"max_registers\": 15}"},
      {"/compile", "{\"max_registers\": 256}"},
      {"/compile", "{\"max_registers\": 128.0}"},
      {"/compile", "{\"options\": \"-I/\"}"},
      {"/compile", "{\"defines\": {\"a-b\": 1}}"},
      {"/compile", "{\"defines\": {\"problem\": 1}}"},
      {"/compile", "{\"defines\": {\"A\": \"__has_include\"}}"},
      {"/compile", "{\"defines\": {\"A\": \"_Pragma\"}}"},
      {"/compile", "{\"defines\": {\"A\": \"1; int b\"}}"},
      {"/compile", "{\"defines\": {\"A\": 1.5}}"},
      {"/compile", "{\"defines\": {\"A\": true}}"},
      {"/compile", "{\"defines\": {\"\": 1}}"},
      {"/workspace", "[]"},
      {"/workspace", "{\"w\": 0}"},
      {"/workspace", "{\"w\": -1}"},
      {"/workspace", "{\"w\": 8589934593}"},
      {"/workspace", "{\"w\": 8589934592, \"v\": 1}"},
      {"/workspace", "{\"w\": 18446744073709551615}"},
      {"/workspace", "{\"w x\": 4}"},
      {"/workspace", "{\"../w\": 4}"},
      {"/workspace", "{\"y\": 4}"},
      {"/launches", "{}"},
      {"/launches/0", "\"k\""},
      {"/launches/0/kernel", "\"k()\""},
      {"/launches/0/kernel", "\"\""},
      {"/launches/0/grid", "[]"},
      {"/launches/0/grid", "[1, 1, 1, 1]"},
      {"/launches/0/grid", "[0]"},
      {"/launches/0/grid", "[2147483648]"},
      {"/launches/0/grid", "[1, 65536]"},
      {"/launches/0/grid", "[1, 1, 65536]"},
      {"/launches/0/grid", "[1.0]"},
      {"/launches/0/grid", "1"},
      {"/launches/0/grid", "[{\"per_sm\": 0}]"},
      {"/launches/0/grid", "[{\"per_sm\": 33}]"},
      {"/launches/0/grid", "[{\"per_sm\": 1, \"x\": 1}]"},
      {"/launches/0/grid", "[1, {\"per_sm\": 1}]"},
      {"/launches/0/block", "[1025]"},
      {"/launches/0/block", "[1, 1, 65]"},
      {"/launches/0/block", "[33, 32]"},
      {"/launches/0/block", "[0]"},
      {"/launches/0/dynamic_shared_bytes", "101377"},
      {"/launches/0/dynamic_shared_bytes", "-1"},
      {"/launches/0/cooperative", "1"},
      {"/launches/0/programmatic_launch", "true"},
      {"/launches/0/shared_memory_carveout", "101"},
      {"/launches/0/args", "\"x\""},
      {"/launches/0/args/0", "7"},
      {"/launches/0/args/0", "null"},
      {"/launches/0/args/0", "{}"},
      {"/launches/0/args/0", "{\"i32\": 1, \"u32\": 1}"},
      {"/launches/0/args/0", "{\"i16\": 1}"},
      {"/launches/0/args/0", "{\"i32\": 2147483648}"},
      {"/launches/0/args/0", "{\"i32\": 1.0}"},
      {"/launches/0/args/0", "{\"u32\": -1}"},
      {"/launches/0/args/0", "{\"i64\": 9223372036854775808}"},
      {"/launches/0/args/0", "{\"u64\": -1}"},
      {"/launches/0/args/0", "{\"u64\": 1.0}"},
      {"/launches/0/args/0", "{\"f32\": 1e39}"},
      {"/launches/0/args/0", "{\"f64\": \"nan\"}"},
      {"/launches/0/args/0", "{\"pointer\": 140737488355328}"},
      {"/launches/0/memset", "\"x\""},
  };
  for (const auto& [pointer, text] : cases) {
    const std::string error = small_error(pointer, text);
    EXPECT_EQ(error.rfind(std::string(where) + ": ", 0), 0u) << pointer << " = " << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Candidate, HostileFullPlansAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"/arch", "\"sm_80\""},
      {"/launches/0/value", "256"},
      {"/launches/0/value", "-1"},
      {"/launches/0/value", "null"},
      {"/launches/0/size", "4"},
      {"/launches/1/dynamic_shared_bytes", "232449"},
      {"/launches/1/cluster", "[17]"},
      {"/launches/1/cluster", "[2, 3, 4]"},
      {"/launches/1/cluster", "[0]"},
      {"/launches/1/args/9/extra", "1"},
      {"/launches/1/args/9/tensor_map", "\"x\""},
      {"/launches/1/args/9/tensor_map/of", "\"z\""},
      {"/launches/1/args/9/tensor_map/extra", "1"},
      {"/launches/1/args/9/tensor_map/dtype", "\"f8\""},
      {"/launches/1/args/9/tensor_map/offset_bytes", "8"},
      {"/launches/1/args/9/tensor_map/offset_bytes", "-16"},
      {"/launches/1/args/9/tensor_map/offset_bytes", "32"},
      {"/launches/1/args/9/tensor_map/offset_bytes", "9223372036854775792"},
      {"/launches/1/args/9/tensor_map/dims", "[]"},
      {"/launches/1/args/9/tensor_map/dims", "[65532]"},
      {"/launches/1/args/9/tensor_map/dims", "[65532, 0]"},
      {"/launches/1/args/9/tensor_map/dims", "[65532, 4097]"},
      {"/launches/1/args/9/tensor_map/dims", "[4294967297, 4096]"},
      {"/launches/1/args/9/tensor_map/dims", "[1, 1, 1, 1, 1, 1]"},
      {"/launches/1/args/9/tensor_map/strides_bytes", "[]"},
      {"/launches/1/args/9/tensor_map/strides_bytes", "[0]"},
      {"/launches/1/args/9/tensor_map/strides_bytes", "[24]"},
      {"/launches/1/args/9/tensor_map/strides_bytes", "[262160]"},
      {"/launches/1/args/9/tensor_map/strides_bytes", "[1099511627776]"},
      {"/launches/1/args/9/tensor_map/box", "[32]"},
      {"/launches/1/args/9/tensor_map/box", "[0, 1]"},
      {"/launches/1/args/9/tensor_map/box", "[32, 257]"},
      {"/launches/1/args/9/tensor_map/box", "[33, 1]"},
      {"/launches/1/args/9/tensor_map/box", "[36, 1]"},
      {"/launches/1/args/9/tensor_map/swizzle", "\"32B\""},
      {"/launches/1/args/9/tensor_map/swizzle", "\"96B\""},
      {"/launches/1/args/9/tensor_map/element_strides", "[1]"},
      {"/launches/1/args/9/tensor_map/element_strides", "[1, 9]"},
      {"/launches/1/args/9/tensor_map/l2_promotion", "\"32B\""},
      {"/launches/1/args/9/tensor_map/fill", "0"},
  };
  for (const auto& [pointer, text] : cases) {
    const std::string error = full_error(pointer, text);
    EXPECT_EQ(error.rfind(std::string(where) + ": ", 0), 0u) << pointer << " = " << text;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  }
}

TEST(Candidate, OverflowingExtentsAreRefused) {
  json::object plan = changed(full_plan(), "/launches/1/args/9/tensor_map/dims",
                              "[4294967296, 4294967296, 4294967296]");
  plan = changed(plan, "/launches/1/args/9/tensor_map/strides_bytes",
                 "[1099511627760, 1099511627760]");
  plan = changed(plan, "/launches/1/args/9/tensor_map/box", "[32, 1, 1]");
  plan = changed(plan, "/launches/1/args/9/tensor_map/element_strides", "[1, 1, 1]");
  EXPECT_EQ(plan_error(plan),
            place +
                "launches[1].args[9].tensor_map: reaches more than 2^63 bytes into "
                "\"x\", which has 1073741824");
}

TEST(Candidate, SizesAndEncodingAreLimited) {
  const std::string plan = json::serialize(small_plan());
  EXPECT_EQ(parse_candidate(plan + std::string(max_plan_bytes, ' '), source, where).error().message,
            place + "larger than 1048576 bytes");
  EXPECT_EQ(parse_candidate(plan, std::string((1 << 20) + 1, ' '), where).error().message,
            "generated/softmax/online/kernel.cu: larger than 1048576 bytes");
  EXPECT_EQ(parse_candidate(plan, "// \xff", where).error().message,
            "generated/softmax/online/kernel.cu: not UTF-8 text");
  EXPECT_EQ(parse_candidate("{", source, where).error().message,
            place + "line 1: not valid JSON: incomplete JSON");
  EXPECT_EQ(parse_candidate(R"({"schema": 1, "schema": 1})", source, where).error().message,
            place + "line 1: not valid JSON: the key \"schema\" appears twice");
  EXPECT_EQ(parse_candidate(std::string(200000, '['), source, where).error().message,
            place + "line 1: not valid JSON: too deep");
  EXPECT_EQ(
      parse_candidate(plan, "#include <stdio.h>\n", where)
          .error()
          .message.rfind("generated/softmax/online/kernel.cu: line 1: the header \"stdio.h\"", 0),
      0u);
}

TEST(CandidateHash, CoversWhatRunsAndNothingElse) {
  const std::string hash = candidate_sha256(valid(full_plan()));
  EXPECT_EQ(hash.size(), 64u);
  for (const auto& [pointer, text] :
       {std::pair{"/idea", "\"other words\""}, std::pair{"/name", "\"other\""},
        std::pair{"/origin", "{\"note\": \"n\"}"}}) {
    EXPECT_EQ(candidate_sha256(valid(changed(full_plan(), pointer, text))), hash) << pointer;
  }
  std::set<std::string> hashes = {hash};
  const std::pair<const char*, const char*> changes[] = {
      {"/compile/fast_math", "false"},
      {"/compile/max_registers", "160"},
      {"/compile/defines/STAGES", "4"},
      {"/workspace/partial", "82945"},
      {"/launches/0/value", "0"},
      {"/launches/0/memset", "\"partial\""},
      {"/launches/1/kernel", "\"k2\""},
      {"/launches/1/grid/0", "2"},
      {"/launches/1/grid/1", "6"},
      {"/launches/1/block/0", "64"},
      {"/launches/1/cluster", "[1, 3]"},
      {"/launches/1/dynamic_shared_bytes", "0"},
      {"/launches/1/cooperative", "false"},
      {"/launches/1/programmatic_launch", "false"},
      {"/launches/1/shared_memory_carveout", "0"},
      {"/launches/1/args/0", "\"y\""},
      {"/launches/1/args/2", "{\"i32\": 5}"},
      {"/launches/1/args/2", "{\"u32\": 5}"},
      {"/launches/1/args/6", "{\"f32\": -0.0}"},
      {"/launches/1/args/6", "{\"f32\": 0.0}"},
      {"/launches/1/args/9/tensor_map/of", "\"y\""},
      {"/launches/1/args/9/tensor_map/offset_bytes", "0"},
      {"/launches/1/args/9/tensor_map/dims/1", "4095"},
      {"/launches/1/args/9/tensor_map/box/1", "255"},
      {"/launches/1/args/9/tensor_map/swizzle", "\"none\""},
      {"/launches/1/args/9/tensor_map/l2_promotion", "\"none\""},
      {"/launches/1/args/9/tensor_map/fill", "\"zeros\""},
      {"/launches/1/args/9/tensor_map/element_strides/1", "1"},
  };
  for (const auto& [pointer, text] : changes) {
    EXPECT_TRUE(hashes.insert(candidate_sha256(valid(changed(full_plan(), pointer, text)))).second)
        << pointer << " = " << text;
  }
  Candidate candidate = valid(full_plan());
  candidate.program.source += " ";
  EXPECT_TRUE(hashes.insert(candidate_sha256(candidate)).second);
  candidate.problem = "matmul_fp16";
  EXPECT_TRUE(hashes.insert(candidate_sha256(candidate)).second);
}

class CandidateFolder : public ::testing::Test {
 protected:
  CandidateFolder() { write(folder_, small_plan()); }

  static void write(const fs::path& folder, const json::object& plan) {
    fs::create_directories(folder);
    std::ofstream(folder / "kernel.json") << json::serialize(plan);
    std::ofstream(folder / "kernel.cu") << source;
  }

  static std::string load_error(const fs::path& folder) {
    const auto candidate = load_candidate(folder);
    return candidate.ok() ? "" : candidate.error().message;
  }

  TemporaryFolder root_;
  fs::path folder_ = root_ / "generated" / "softmax" / "online";
};

TEST_F(CandidateFolder, IsLoaded) {
  EXPECT_EQ(load_error(folder_), "");
  EXPECT_EQ(load_error(folder_ / ""), "");
  EXPECT_EQ(load_error(folder_ / "."), "");
}

TEST_F(CandidateFolder, NamesMustAgreeBelowGenerated) {
  const fs::path renamed = folder_.parent_path() / "other";
  write(renamed, small_plan());
  EXPECT_EQ(load_error(renamed),
            (renamed / "kernel.json").string() +
                ": name: expected the folder's name, \"other\", got \"online\"");
  const fs::path moved = root_ / "generated" / "layernorm" / "online";
  write(moved, small_plan());
  EXPECT_EQ(load_error(moved),
            (moved / "kernel.json").string() +
                ": problem: expected the name of the folder above, \"layernorm\", got \"softmax\"");
  const fs::path elsewhere = root_ / "scratch";
  write(elsewhere, small_plan());
  EXPECT_EQ(load_error(elsewhere), "");
}

TEST_F(CandidateFolder, LinksAndOddFilesAreRefused) {
  for (const char* name : {"kernel.json", "kernel.cu"}) {
    const fs::path file = folder_ / name;
    const fs::path kept = root_ / "kept";
    fs::rename(file, kept);
    EXPECT_EQ(load_error(folder_),
              name == std::string("kernel.cu")
                  ? folder_.string() + ": no code; expected kernel.cu, kernel.ptx or kernel.cubin"
                  : file.string() + ": cannot be opened: No such file or directory");
    fs::create_symlink(kept, file);
    EXPECT_EQ(load_error(folder_), file.string() + ": a link; expected a regular file");
    fs::remove(file);
    fs::create_directory(file);
    EXPECT_EQ(load_error(folder_), file.string() + ": not a regular file");
    fs::remove(file);
    fs::rename(kept, file);
  }
  const fs::path link = root_ / "link";
  fs::create_directory_symlink(folder_, link);
  EXPECT_EQ(load_error(link), link.string() + ": not a folder");
  EXPECT_EQ(load_error(link / ""), (link / "").string() + ": not a folder");
  EXPECT_EQ(load_error(root_ / "absent"), (root_ / "absent").string() + ": not a folder");
  EXPECT_EQ(load_error(folder_), "");
}

TEST_F(CandidateFolder, AllAreListedInOrder) {
  fs::create_directories(root_ / "generated" / "conv2d" / "b");
  fs::create_directories(root_ / "generated" / "conv2d" / "a");
  fs::create_directories(root_ / "generated" / "softmax" / "moved_away");  // git leaves such
  for (const char* file : {"README.md", "conv2d/a/kernel.json", "conv2d/b/kernel.json"}) {
    std::ofstream(root_ / "generated" / file) << "x";
  }
  const auto folders = candidate_directories(root_.path());
  ASSERT_TRUE(folders.ok());
  const fs::path generated = root_ / "generated";
  EXPECT_EQ(*folders, (std::vector<fs::path>{generated / "conv2d" / "a", generated / "conv2d" / "b",
                                             generated / "softmax" / "online"}));
  EXPECT_FALSE(candidate_directories(root_ / "absent").ok());
}

/// Attention with and without a mask is one problem twice: a kernel that both have under one name
/// is one source, told apart by its plan.
TEST(CommittedKernels, TwinsOfTheAttentionProblemsHaveOneSource) {
  const fs::path generated = fs::path(REKERNEL_SOURCE_DIR) / "generated";
  int twins = 0;
  for (const auto& entry : fs::directory_iterator(generated / "attention_fp16")) {
    const fs::path twin = generated / "attention_fp16_causal" / entry.path().filename();
    if (!entry.is_directory() || !fs::exists(twin)) continue;
    ++twins;
    EXPECT_EQ(read_file(entry.path() / "kernel.cu").value(), read_file(twin / "kernel.cu").value())
        << entry.path().filename();
  }
  EXPECT_GT(twins, 0);
}

TEST(Candidate, MessagesAreTextWhateverThePlanSays) {
  EXPECT_EQ(small_error("/problem", "\"\\u007f\\u009b\"").substr(place.size(), 33),
            "problem: unknown problem '?\?': `r");
  const std::string cut = small_error("/launches/0/args", "[\"" + std::string(63, 'x') + "éé\"]");
  EXPECT_TRUE(is_utf8(cut)) << cut;
}

}  // namespace
}  // namespace rekernel
