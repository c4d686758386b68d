#include "harness/candidate/candidate.h"

#include <algorithm>
#include <bit>
#include <boost/json.hpp>
#include <type_traits>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/candidate/code.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// Below generated/, the folders say once more what the plan says.
Result<Ok> check_folder(const Candidate& candidate, const fs::path& directory) {
  const fs::path parent = directory.parent_path();
  const bool committed =
      std::find(parent.begin(), parent.end(), fs::path("generated")) != parent.end();
  const std::string where = (directory / "kernel.json").string();
  if (committed && candidate.name != directory.filename()) {
    return Error{where + ": name: expected the folder's name, \"" + directory.filename().string() +
                 "\", got \"" + candidate.name + "\""};
  }
  if (committed && candidate.problem != parent.filename()) {
    return Error{where + ": problem: expected the name of the folder above, \"" +
                 parent.filename().string() + "\", got \"" + candidate.problem + "\""};
  }
  const std::vector<Code> modules = code_of(candidate.program);
  if (committed && (modules.size() > 1 || modules.front().language != Language::cuda)) {
    return Error{directory.string() + ": what is committed is CUDA C++: expected " +
                 code_file(Language::cuda) + " alone"};
  }
  return Ok{};
}

/// The subfolders, sorted by name. An empty one is none: git leaves such where files went.
Result<std::vector<fs::path>> subfolders(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code status;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    if (it->is_directory(status) && !fs::is_empty(it->path(), status)) {
      result.push_back(it->path());
    }
  }
  if (status) return Error{folder.string() + ": cannot be listed: " + status.message()};
  std::sort(result.begin(), result.end());
  return result;
}

boost::json::value with_sorted_keys(const boost::json::value& value) {
  if (const boost::json::array* list = value.if_array()) {
    boost::json::array sorted;
    for (const boost::json::value& one : *list) sorted.push_back(with_sorted_keys(one));
    return sorted;
  }
  const boost::json::object* object = value.if_object();
  if (!object) return value;
  std::map<std::string, boost::json::value> members;
  for (const auto& member : *object) members[member.key()] = with_sorted_keys(member.value());
  boost::json::object sorted;
  for (auto& [key, member] : members) sorted[key] = std::move(member);
  return sorted;
}

/// Collects fields in a form in which no two different candidates look alike.
class FieldCollector {
 public:
  void add(std::string_view text) { append_field(bytes_, text); }
  void add(const char* text) { add(std::string_view(text)); }
  void add(const std::string& text) { add(std::string_view(text)); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void add(Number number) {
    if constexpr (std::is_same_v<Number, float>) {
      add(std::bit_cast<std::uint32_t>(number));
    } else if constexpr (std::is_same_v<Number, double>) {
      add(std::bit_cast<std::uint64_t>(number));
    } else {
      add(std::to_string(number));
    }
  }
  template <class Number>
  void add(const std::vector<Number>& numbers) {
    add(numbers.size());
    for (const Number number : numbers) add(number);
  }

  void add(const CompileOptions& options) {
    add(options.fast_math);
    add(options.max_registers.value_or(0));
    add(options.defines.size());
    for (const auto& [name, value] : options.defines) add(name), add(value);
  }
  void add(const BufferArgument& argument) {
    add("buffer");
    add(argument.buffer);
  }
  void add(const ScalarArgument& argument) {
    add("scalar");
    add(argument.index());
    std::visit([&](auto value) { add(value); }, argument);
  }
  void add(const TensorMapArgument& map) {
    add("tensor_map");
    add(map.buffer);
    add(to_string(map.dtype));
    add(map.offset_bytes);
    add(map.dims);
    add(map.strides_bytes);
    add(map.box);
    add(map.element_strides);
    add(static_cast<int>(map.swizzle));
    add(static_cast<int>(map.l2_promotion));
    add(map.fill_nan);
  }
  void add(const BytesArgument& argument) {
    add("bytes");
    add(argument.bytes);
    add(argument.addresses.size());
    for (const BytesArgument::Address& address : argument.addresses) {
      add(address.at), add(address.buffer), add(address.offset_bytes);
    }
    for (const BytesArgument::PlacedMap& placed : argument.tensor_maps) {
      add(placed.at), add(placed.map);
    }
  }
  void add(const KernelLaunch& launch) {
    add("kernel");
    add(launch.kernel);
    // The first module goes without saying, as it did when there was no other.
    if (launch.module != 0) add("module"), add(launch.module);
    for (const GridExtent& extent : launch.grid) add(extent.count), add(extent.per_sm);
    for (const std::int64_t extent : launch.block) add(extent);
    for (const std::int64_t extent : launch.cluster) add(extent);
    add(launch.dynamic_shared_bytes);
    add(launch.cooperative);
    add(launch.programmatic_launch);
    // Without one, the digest is what it was before there could be one.
    if (launch.shared_memory_carveout) add("carveout"), add(*launch.shared_memory_carveout);
    add(launch.args.size());
    for (const Argument& argument : launch.args) {
      std::visit([&](const auto& value) { add(value); }, argument);
    }
  }
  void add(const Memset& memset) {
    add("memset");
    add(memset.buffer);
    add(static_cast<int>(memset.value));
    // All of it goes without saying, as it did when there was nothing else.
    if (memset.offset_bytes != 0 || memset.bytes != 0) add(memset.offset_bytes), add(memset.bytes);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace

Result<Candidate> load_candidate(const fs::path& directory) {
  // "." and "folder/" have no name of their own.
  fs::path folder = fs::absolute(directory).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  std::error_code status;
  const fs::file_status kind = fs::symlink_status(folder, status);
  if (!fs::is_directory(kind)) return Error{directory.string() + ": not a folder"};

  const fs::path path = directory / "kernel.json";
  if (fs::is_symlink(fs::symlink_status(path, status))) {
    return Error{path.string() + ": a link; expected a regular file"};
  }
  const auto plan = read_file(path, max_plan_bytes);
  if (!plan) return plan.error();
  auto modules = load_code(directory);
  if (!modules) return modules.error();
  auto candidate = parse_candidate(*plan, *std::move(modules), path.string());
  if (!candidate) return candidate;
  if (auto named = check_folder(*candidate, folder); !named) return named.error();
  return candidate;
}

Result<std::vector<fs::path>> candidate_directories(const fs::path& root) {
  std::vector<fs::path> result;
  const auto problems = subfolders(root / "generated");
  if (!problems) return problems.error();
  for (const fs::path& problem : *problems) {
    const auto names = subfolders(problem);
    if (!names) return names.error();
    result.insert(result.end(), names->begin(), names->end());
  }
  return result;
}

std::string candidate_sha256(const Candidate& candidate) {
  FieldCollector fields;
  fields.add("rekernel candidate 1");
  fields.add(candidate.problem);
  fields.add(to_string(candidate.arch));
  fields.add(candidate.program.source);
  if (candidate.program.language != Language::cuda || !candidate.program.modules.empty()) {
    fields.add("code");
    fields.add(code_fields(candidate.program));
  }
  fields.add(candidate.program.compile);
  if (candidate.is_in_axes()) {
    // At whatever sizes: the expressions decide, not the order of their keys.
    fields.add("in axes");
    fields.add(boost::json::serialize(with_sorted_keys(boost::json::parse(candidate.written))));
    return sha256_hex(fields.bytes());
  }
  fields.add(candidate.program.workspaces.size());
  for (const Workspace& workspace : candidate.program.workspaces) {
    fields.add(workspace.name);
    fields.add(workspace.bytes);
  }
  fields.add(candidate.program.steps.size());
  for (const Step& step : candidate.program.steps) {
    std::visit([&](const auto& value) { fields.add(value); }, step);
  }
  return sha256_hex(fields.bytes());
}

Candidate scaffold_candidate(const Problem& problem, const std::string& name) {
  Candidate candidate;
  candidate.problem = problem.id;
  candidate.name = name;
  candidate.idea =
      problem.program
          ? "Nothing is computed yet. Say here in plain language what makes your kernel fast."
          : "The definition and nothing that makes it fast: correct and slow. Say here in plain "
            "language what makes your kernel fast.";
  candidate.arch = "sm_80";
  candidate.origin.note = "scaffold";
  candidate.program = problem.scaffold;
  return candidate;
}

}  // namespace rekernel
