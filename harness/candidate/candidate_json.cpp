// kernel.json: reading a plan from strangers, and writing one.

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <limits>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::array<std::int64_t, 3> max_grid = {2147483647, 65535, 65535};
constexpr std::array<std::int64_t, 3> max_block = {1024, 1024, 64};
constexpr std::int64_t max_block_threads = 1024;
constexpr std::size_t max_parameter_bytes = 32764;  ///< of one kernel, from sm_70 on
/// All of a plan is issued before the device may begin it: what a stream takes without waiting.
constexpr std::size_t most_steps = 512;

/// A name in the file for each value of an enumeration.
template <class Value>
using Names = std::vector<std::pair<const char*, Value>>;

const Names<TensorMapArgument::Swizzle> swizzle_names = {
    {"none", TensorMapArgument::Swizzle::none},
    {"32B", TensorMapArgument::Swizzle::b32},
    {"64B", TensorMapArgument::Swizzle::b64},
    {"128B", TensorMapArgument::Swizzle::b128}};
const Names<TensorMapArgument::L2Promotion> l2_promotion_names = {
    {"none", TensorMapArgument::L2Promotion::none},
    {"64B", TensorMapArgument::L2Promotion::b64},
    {"128B", TensorMapArgument::L2Promotion::b128},
    {"256B", TensorMapArgument::L2Promotion::b256}};
const Names<bool> fill_names = {{"zeros", false}, {"nan", true}};
const Names<DType> dtype_names = {
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

/// For messages.
std::string json_quoted(std::string_view text) {
  return one_line(json::serialize(json::string(text)), 100);
}

/// Whether every character is a lower-case letter, a digit or one of `others`.
bool is_plain(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

/// What the names in a plan stand for.
struct Buffers {
  const Problem* problem = nullptr;
  std::vector<Workspace> workspaces;

  std::optional<std::int64_t> bytes(const std::string& name) const {
    if (const Tensor* tensor = problem->find_tensor(name)) return tensor->bytes();
    for (const Workspace& workspace : workspaces) {
      if (workspace.name == name) return workspace.bytes;
    }
    return std::nullopt;
  }

  std::string known() const {
    std::string names;
    const auto append = [&](const std::string& name) {
      names += (names.empty() ? "" : ", ") + name;
    };
    for (const Tensor& tensor : problem->tensors) append(tensor.name);
    for (const Workspace& workspace : workspaces) append(workspace.name);
    return names;
  }
};

/// Reads one kernel.json. Once the reader has an error, the rest is read for nothing.
class PlanReader {
 public:
  explicit PlanReader(JsonReader root) : root_(std::move(root)) {}

  Result<Candidate> read(std::vector<Code> modules) {
    set_code(candidate_.program, std::move(modules));
    root_.required("schema").integer(1, 1);
    read_problem(root_.required("problem"));
    if (auto error = root_.error()) return *error;
    candidate_.name = read_candidate_name(root_.required("name"));
    candidate_.idea = read_text(root_.required("idea"), 4000);
    candidate_.arch = read_arch(root_.required("arch"));
    candidate_.origin = read_origin(root_.required("origin"));
    if (auto compile = root_.optional("compile")) read_compile(*compile);
    if (auto workspace = root_.optional("workspace")) read_workspaces(*workspace);
    read_launches(root_.required("launches"));
    root_.no_other_keys();
    if (auto error = root_.error()) return *error;
    candidate_.program.workspaces = buffers_.workspaces;
    return std::move(candidate_);
  }

 private:
  static Arch read_arch(JsonReader reader) {
    const std::optional<Arch> arch = arch_from_string(reader.is_string() ? reader.string() : "");
    if (!arch) reader.expect("one of " + known_archs());
    return arch.value_or(Arch("sm_80"));
  }

  static std::string read_text(JsonReader reader, std::size_t max_length) {
    const std::string text = reader.string(max_length);
    if (text.empty()) reader.expect("some text");
    return text;
  }

  void read_problem(JsonReader reader) {
    candidate_.problem = reader.string(64);
    const Result<const Problem*> known = known_problem(candidate_.problem);
    if (known) {
      buffers_.problem = *known;
    } else {
      reader.fail(known.error().message);
    }
  }

  static std::string read_candidate_name(JsonReader reader) {
    const std::string name = reader.is_string() ? reader.string() : "";
    if (name.empty() || name.size() > 64 || !is_plain(name, "_")) {
      reader.expect("1 to 64 of a-z, 0-9 and _");
    }
    return name;
  }

  static Origin read_origin(JsonReader reader) {
    Origin origin;
    if (reader.has("note")) {
      origin.note = read_text(reader.required("note"), 4000);
      if (reader.has("trajectory") || reader.has("candidate")) {
        reader.fail("expected either \"trajectory\" and \"candidate\", or \"note\" alone");
      }
    } else {
      origin.trajectory = read_trajectory_path(reader.required("trajectory"));
      origin.candidate = read_candidate_id(reader.required("candidate"));
    }
    reader.no_other_keys();
    return origin;
  }

  static std::string read_trajectory_path(JsonReader reader) {
    constexpr std::string_view folder = "trajectories/";
    constexpr std::string_view ending = ".jsonl";
    const std::string path = reader.is_string() ? reader.string() : "";
    const std::string_view view = path;
    if (!view.starts_with(folder) || !view.ends_with(ending) || path.size() > 128 ||
        path.size() <= folder.size() + ending.size() ||
        !is_plain(view.substr(folder.size(), path.size() - folder.size() - ending.size()), "_-")) {
      reader.expect("trajectories/<name>.jsonl with a name of a-z, 0-9, _ and -");
    }
    return path;
  }

  static std::string read_candidate_id(JsonReader reader) {
    const std::string id = reader.is_string() ? reader.string() : "";
    if (id.empty() || id.size() > 64 || !is_plain(id, "._-")) {
      reader.expect("a candidate's id such as \"r4.i2.b1\"");
    }
    return id;
  }

  void read_compile(JsonReader reader) {
    CompileOptions& options = candidate_.program.compile;
    if (auto fast_math = reader.optional("fast_math")) options.fast_math = fast_math->boolean();
    if (auto registers = reader.optional("max_registers")) {
      options.max_registers =
          static_cast<int>(registers->integer(16, candidate_.arch->max_registers_per_thread));
    }
    if (auto defines = reader.optional("defines")) {
      for (auto& [name, value] : defines->entries(64)) read_define(name, value);
    }
    reader.no_other_keys();
  }

  void read_define(const std::string& name, JsonReader reader) {
    check_define_word(name, reader);
    std::string text;
    if (reader.is_string()) {
      text = reader.identifier();
      check_define_word(text, reader);
    } else if (reader.is_integer()) {
      text = std::to_string(reader.integer(std::numeric_limits<std::int64_t>::min(),
                                           std::numeric_limits<std::int64_t>::max()));
    } else {
      reader.expect("an integer or an identifier");
    }
    candidate_.program.compile.defines[name] = text;
  }

  /// Words with a leading underscore belong to the compiler: __has_include, _Pragma.
  static void check_define_word(const std::string& word, JsonReader& reader) {
    if (!is_identifier(word)) {
      reader.fail("a macro needs an identifier of at most 64 characters");
    }
    if (word.starts_with('_')) reader.fail("identifiers of macros must not start with _");
    if (word == "problem" || word == "defined") {
      reader.fail("\"" + word + "\" cannot be a macro");
    }
  }

  void read_workspaces(JsonReader reader) {
    std::int64_t total = 0;
    for (auto& [name, value] : reader.entries(64)) {
      const std::int64_t bytes = value.integer(1, max_workspace_bytes);
      total += bytes;  // 64 entries of at most 2^33
      if (total > max_workspace_bytes) {
        value.fail("all workspaces together may have at most " +
                   std::to_string(max_workspace_bytes) + " bytes");
      }
      if (!is_identifier(name)) value.fail("a workspace needs an identifier for its name");
      if (buffers_.problem->find_tensor(name)) {
        value.fail("\"" + name + "\" is a tensor of the problem; choose another name");
      }
      buffers_.workspaces.push_back({name, bytes});
    }
  }

  std::string read_buffer(JsonReader reader) {
    const std::string name = reader.string(1u << 16);
    if (!reader.error() && !buffers_.bytes(name)) {
      reader.fail("unknown buffer " + json_quoted(name) + "; known: " + buffers_.known());
    }
    return name;
  }

  void read_launches(JsonReader reader) {
    bool any_kernel = false;
    for (JsonReader& step : reader.array(1, most_steps)) {
      if (step.has("memset")) {
        candidate_.program.steps.push_back(read_memset(step));
      } else {
        candidate_.program.steps.push_back(read_kernel(step));
        any_kernel = true;
      }
    }
    if (!any_kernel) reader.fail("expected at least one kernel");
  }

  Memset read_memset(JsonReader reader) {
    Memset memset;
    JsonReader name = reader.required("memset");
    memset.buffer = read_buffer(name);
    if (buffers_.problem->find_tensor(memset.buffer)) {
      name.fail("\"" + memset.buffer + "\" is a tensor; only a workspace can be set");
    }
    memset.value = static_cast<std::uint8_t>(reader.required("value").integer(0, 255));
    if (reader.error()) return memset;
    const std::int64_t available = *buffers_.bytes(memset.buffer);
    if (reader.has("offset_bytes")) {
      memset.offset_bytes = reader.required("offset_bytes").integer(0, available - 1);
    }
    if (reader.has("bytes")) {
      memset.bytes = reader.required("bytes").integer(1, available - memset.offset_bytes);
    }
    reader.no_other_keys();
    return memset;
  }

  KernelLaunch read_kernel(JsonReader reader) {
    KernelLaunch launch;
    if (reader.has("module")) {
      launch.module = static_cast<int>(reader.required("module").integer(
          0, static_cast<std::int64_t>(candidate_.program.modules.size())));
    }
    launch.kernel = read_kernel_name(reader.required("kernel"), launch.module);
    read_grid(reader.required("grid"), launch);
    read_block(reader.required("block"), launch);
    if (auto cluster = reader.optional("cluster")) read_cluster(*cluster, launch);
    if (auto shared = reader.optional("dynamic_shared_bytes")) {
      launch.dynamic_shared_bytes = shared->integer(0, candidate_.arch->max_shared_bytes_per_block);
    }
    if (auto flag = reader.optional("cooperative")) launch.cooperative = flag->boolean();
    if (auto flag = reader.optional("programmatic_launch")) {
      launch.programmatic_launch = flag->boolean();
      if (launch.programmatic_launch) require(has_clusters, *flag);
    }
    for (JsonReader& argument : reader.required("args").array(0, 64)) {
      launch.args.push_back(read_argument(argument));
    }
    reader.no_other_keys();
    return launch;
  }

  /// What a person wrote has a plain name; what a compiler made has any that its assembler takes.
  std::string read_kernel_name(JsonReader reader, int module) const {
    const Program& program = candidate_.program;
    const bool written =
        module == 0
            ? program.language == Language::cuda
            : program.modules[static_cast<std::size_t>(module) - 1].language == Language::cuda;
    if (written || reader.error()) return reader.identifier();
    const std::string name = reader.string(max_kernel_name);
    if (!is_kernel_name(name)) {
      reader.expect("a kernel's name of letters, digits, _, $ and .");
    }
    return name;
  }

  void require(bool (*has_feature)(Arch), JsonReader& reader) const {
    if (has_feature(candidate_.arch)) return;
    std::string able;
    for (const Arch arch : Arch::all()) {
      if (has_feature(arch)) able += (able.empty() ? "" : ", ") + json_quoted(to_string(arch));
    }
    reader.fail("needs arch " + able + "; this plan is for " +
                json_quoted(to_string(candidate_.arch)));
  }

  static void read_grid(JsonReader reader, KernelLaunch& launch) {
    std::vector<JsonReader> extents = reader.array(1, 3);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (i == 0 && extents[i].is_object()) {
        launch.grid[i] = {extents[i].required("per_sm").integer(1, 32), true};
        extents[i].no_other_keys();
      } else {
        launch.grid[i] = {extents[i].integer(1, max_grid[i]), false};
      }
    }
  }

  static void read_block(JsonReader reader, KernelLaunch& launch) {
    std::vector<JsonReader> extents = reader.array(1, 3);
    std::int64_t threads = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      launch.block[i] = extents[i].integer(1, max_block[i]);
      threads *= launch.block[i];
    }
    if (threads > max_block_threads) {
      reader.fail("expected at most " + std::to_string(max_block_threads) + " threads, got " +
                  std::to_string(threads));
    }
  }

  void read_cluster(JsonReader reader, KernelLaunch& launch) const {
    require(has_clusters, reader);
    const std::int64_t max_cluster_blocks = candidate_.arch->max_cluster_blocks;
    std::vector<JsonReader> extents = reader.array(1, 3);
    std::int64_t blocks = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      launch.cluster[i] = extents[i].integer(1, max_cluster_blocks);
      blocks *= launch.cluster[i];
      const GridExtent& grid = launch.grid[i];
      if (!grid.per_sm && grid.count % launch.cluster[i] != 0) {
        extents[i].fail("the grid's extent of " + std::to_string(grid.count) +
                        " is not a multiple of " + std::to_string(launch.cluster[i]));
      }
    }
    if (blocks > max_cluster_blocks) {
      reader.fail("expected at most " + std::to_string(max_cluster_blocks) + " blocks, got " +
                  std::to_string(blocks));
    }
  }

  Argument read_argument(JsonReader reader) {
    if (reader.is_string()) return BufferArgument{read_buffer(reader)};
    if (reader.has("tensor_map")) {
      const TensorMapArgument map = read_tensor_map(reader.required("tensor_map"));
      reader.no_other_keys();
      return map;
    }
    if (reader.has("bytes")) return read_bytes(reader);
    return read_scalar(reader);
  }

  static std::string read_hexadecimal(JsonReader reader) {
    const auto bytes = from_hexadecimal(reader.string(2 * max_parameter_bytes));
    if (!bytes || bytes->empty()) reader.expect("1 or more bytes as pairs of hexadecimal digits");
    return bytes.value_or("");
  }

  BytesArgument read_bytes(JsonReader reader) {
    BytesArgument argument;
    argument.bytes = read_hexadecimal(reader.required("bytes"));
    const auto size = static_cast<std::int64_t>(argument.bytes.size());
    std::int64_t free = 0;
    if (auto addresses = reader.optional("addresses")) {
      for (JsonReader& entry : addresses->array(0, max_parameter_bytes / 8)) {
        BytesArgument::Address address;
        JsonReader at = entry.required("at");
        address.at = at.integer(0, max_parameter_bytes);
        if (address.at % 8 != 0 || address.at < free || address.at + 8 > size) {
          at.fail("expected multiples of 8, rising, with 8 bytes behind each");
        }
        free = address.at + 8;
        address.buffer = read_buffer(entry.required("of"));
        if (reader.error()) return argument;
        if (auto offset = entry.optional("offset_bytes")) {
          address.offset_bytes = offset->integer(0, *buffers_.bytes(address.buffer));
        }
        entry.no_other_keys();
        argument.addresses.push_back(std::move(address));
      }
    }
    if (auto maps = reader.optional("tensor_maps")) read_placed_maps(*maps, argument);
    reader.no_other_keys();
    return argument;
  }

  void read_placed_maps(JsonReader& reader, BytesArgument& argument) {
    const auto size = static_cast<std::int64_t>(argument.bytes.size());
    std::int64_t free = 0;
    for (JsonReader& entry : reader.array(0, max_parameter_bytes / tensor_map_bytes)) {
      JsonReader at = entry.required("at");
      const std::int64_t begin = at.integer(0, max_parameter_bytes);
      if (begin % tensor_map_alignment != 0 || begin < free || begin + tensor_map_bytes > size) {
        at.fail("expected multiples of 64, rising, with 128 bytes from each on");
      }
      free = begin + tensor_map_bytes;
      for (const BytesArgument::Address& address : argument.addresses) {
        if (address.at < free && address.at + 8 > begin) {
          at.fail("the address at " + std::to_string(address.at) + " lies in the tensor map");
        }
      }
      argument.tensor_maps.push_back({begin, read_tensor_map(entry.required("tensor_map"))});
      entry.no_other_keys();
      if (reader.error()) return;
    }
  }

  template <class Integer>
  static ScalarArgument read_integer(JsonReader reader) {
    return static_cast<Integer>(
        reader.integer(std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()));
  }

  static ScalarArgument read_u64(JsonReader reader) {
    const json::value& value = reader.raw();
    if (value.is_uint64()) return value.get_uint64();
    if (value.is_int64() && value.get_int64() >= 0) {
      return static_cast<std::uint64_t>(value.get_int64());
    }
    reader.expect("an integer from 0 to 18446744073709551615");
    return std::uint64_t{0};
  }

  static ScalarArgument read_f32(JsonReader reader) {
    const double value = reader.real();
    // Beyond the largest float, the conversion is undefined.
    if (!(std::abs(value) <= std::numeric_limits<float>::max())) {
      reader.expect("a number in the range of f32");
      return 0.0f;
    }
    return static_cast<float>(value);
  }

  static ScalarArgument read_scalar(JsonReader reader) {
    std::vector<std::pair<std::string, JsonReader>> members;
    if (reader.is_object()) members = reader.entries();
    if (members.size() == 1) {
      const auto& [type, value] = members.front();
      if (type == "i32") return read_integer<std::int32_t>(value);
      if (type == "u32") return read_integer<std::uint32_t>(value);
      if (type == "i64") return read_integer<std::int64_t>(value);
      if (type == "u64") return read_u64(value);
      if (type == "f32") return read_f32(value);
      if (type == "f64") return JsonReader(value).real();
    }
    reader.expect(
        "the name of a buffer, {\"i32\", \"u32\", \"i64\", \"u64\", \"f32\" or \"f64\": value} or "
        "{\"tensor_map\": {…}}");
    return std::int32_t{0};
  }

  static std::vector<std::int64_t> read_integers(JsonReader reader, std::size_t count,
                                                 std::int64_t min, std::int64_t max) {
    std::vector<std::int64_t> result;
    for (JsonReader& entry : reader.array(count, count)) result.push_back(entry.integer(min, max));
    return result;
  }

  TensorMapArgument read_tensor_map(JsonReader reader) {
    require(has_tensor_maps, reader);
    TensorMapArgument map;
    map.buffer = read_buffer(reader.required("of"));
    map.dtype = read_name(reader.required("dtype"), dtype_names);
    for (JsonReader& extent : reader.required("dims").array(1, 5)) {
      map.dims.push_back(extent.integer(1, std::int64_t{1} << 32));
    }
    if (reader.error()) return map;
    const std::size_t rank = map.dims.size();
    JsonReader strides = reader.required("strides_bytes");
    map.strides_bytes = read_integers(strides, rank - 1, 16, (std::int64_t{1} << 40) - 1);
    JsonReader box = reader.required("box");
    map.box = read_integers(box, rank, 1, 256);
    if (auto offset = reader.optional("offset_bytes")) {
      map.offset_bytes = offset->integer(0, std::numeric_limits<std::int64_t>::max());
      check_alignment(map.offset_bytes, *offset);
    }
    if (auto steps = reader.optional("element_strides")) {
      map.element_strides = read_integers(*steps, rank, 1, 8);
    }
    if (auto swizzle = reader.optional("swizzle")) {
      map.swizzle = read_name(*swizzle, swizzle_names);
    }
    if (auto promotion = reader.optional("l2_promotion")) {
      map.l2_promotion = read_name(*promotion, l2_promotion_names);
    }
    if (auto fill = reader.optional("fill")) map.fill_nan = read_name(*fill, fill_names);
    reader.no_other_keys();
    if (reader.error()) return map;
    for (const std::int64_t stride : map.strides_bytes) check_alignment(stride, strides);
    check_inner_box(map, box);
    check_extent(map, reader);
    return map;
  }

  static void check_alignment(std::int64_t bytes, JsonReader& reader) {
    if (bytes % 16 != 0) {
      reader.fail("expected multiples of 16 bytes, got " + std::to_string(bytes));
    }
  }

  static void check_inner_box(const TensorMapArgument& map, JsonReader& reader) {
    const std::int64_t bytes = map.box.front() * size_in_bytes(map.dtype);
    if (bytes % 16 != 0) {
      reader.fail("the innermost extent has " + std::to_string(bytes) +
                  " bytes; expected a multiple of 16");
    }
    std::int64_t limit = std::numeric_limits<std::int64_t>::max();
    if (map.swizzle == TensorMapArgument::Swizzle::b32) limit = 32;
    if (map.swizzle == TensorMapArgument::Swizzle::b64) limit = 64;
    if (map.swizzle == TensorMapArgument::Swizzle::b128) limit = 128;
    if (bytes > limit) {
      reader.fail("the innermost extent has " + std::to_string(bytes) +
                  " bytes; this swizzle takes at most " + std::to_string(limit));
    }
  }

  /// The copy engine may touch nothing past the buffer.
  void check_extent(const TensorMapArgument& map, JsonReader& reader) const {
    const std::int64_t available = *buffers_.bytes(map.buffer);
    std::int64_t end = map.dims[0] * size_in_bytes(map.dtype);  // at most 2^35
    bool overflow = __builtin_add_overflow(end, map.offset_bytes, &end);
    for (std::size_t i = 1; i < map.dims.size(); ++i) {
      std::int64_t span = 0;
      overflow |= __builtin_mul_overflow(map.dims[i] - 1, map.strides_bytes[i - 1], &span);
      overflow |= __builtin_add_overflow(end, span, &end);
    }
    if (overflow || end > available) {
      reader.fail("reaches " + (overflow ? "more than 2^63" : std::to_string(end)) +
                  " bytes into \"" + map.buffer + "\", which has " + std::to_string(available));
    }
  }

  JsonReader root_;
  Candidate candidate_;
  Buffers buffers_;
};

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

}  // namespace

Result<Candidate> parse_candidate(std::string_view plan_json, std::vector<Code> modules,
                                  const std::string& where) {
  if (plan_json.size() > max_plan_bytes) {
    return Error{where + ": larger than " + std::to_string(max_plan_bytes) + " bytes"};
  }
  if (modules.empty() || modules.size() > most_modules) {
    return Error{where + ": expected 1 to " + std::to_string(most_modules) + " modules of code"};
  }
  // The plan's macros matter to the code's words, but nothing of the plan is read where the code
  // alone is no good.
  const auto file_of_module = [&](std::size_t module) {
    return std::filesystem::path(where)
        .replace_filename(code_file(modules[module].language, module))
        .string();
  };
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (auto sound = check_size_and_text(modules[i], file_of_module(i)); !sound) {
      return sound.error();
    }
  }
  const auto value = parse_json(plan_json, where);
  if (!value) return value.error();
  auto candidate = PlanReader(JsonReader(where, *value)).read(modules);
  if (!candidate) return candidate;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    auto sound = check_words(modules[i], candidate->program.compile, file_of_module(i));
    if (!sound) return sound.error();
  }
  return candidate;
}

Result<Candidate> parse_candidate(std::string_view plan_json, std::string source,
                                  const std::string& where) {
  return parse_candidate(plan_json, std::vector<Code>{{Language::cuda, std::move(source)}}, where);
}

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
  return pretty_json(result);
}

}  // namespace rekernel
