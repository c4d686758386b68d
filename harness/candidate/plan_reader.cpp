// kernel.json: reading a plan from strangers.

#include "harness/candidate/plan_reader.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "harness/base/json.h"
#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/candidate/launch_reader.h"
#include "harness/candidate/plan_context.h"

namespace rekernel {
namespace {

namespace json = boost::json;

/// Whether every character is a lower-case letter, a digit or one of `others`.
bool is_plain(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  });
}

Arch read_arch(JsonReader reader) {
  const std::optional<Arch> arch = arch_from_string(reader.is_string() ? reader.string() : "");
  if (!arch) reader.expect("one of " + known_archs());
  return arch.value_or(Arch("sm_80"));
}

std::string read_text(JsonReader reader, std::size_t max_length) {
  const std::string text = reader.string(max_length);
  if (text.empty()) reader.expect("some text");
  return text;
}

/// Null where it is an error.
const Problem* read_problem(JsonReader reader, Candidate& candidate) {
  candidate.problem = reader.string(64);
  const Result<const Problem*> known = known_problem(candidate.problem);
  if (known) return *known;
  reader.fail(known.error().message);
  return nullptr;
}

std::string read_candidate_name(JsonReader reader) {
  const std::string name = reader.is_string() ? reader.string() : "";
  if (name.empty() || name.size() > 64 || !is_plain(name, "_")) {
    reader.expect("1 to 64 of a-z, 0-9 and _");
  }
  return name;
}

std::string read_trajectory_path(JsonReader reader) {
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

std::string read_candidate_id(JsonReader reader) {
  const std::string id = reader.is_string() ? reader.string() : "";
  if (id.empty() || id.size() > 64 || !is_plain(id, "._-")) {
    reader.expect("a candidate's id such as \"r4.i2.b1\"");
  }
  return id;
}

Origin read_origin(JsonReader reader) {
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

/// Words with a leading underscore belong to the compiler: __has_include, _Pragma.
void check_define_word(const std::string& word, JsonReader& reader) {
  if (!is_identifier(word)) reader.fail("a macro needs an identifier of at most 64 characters");
  if (word.starts_with('_')) reader.fail("identifiers of macros must not start with _");
  if (word == "problem" || word == "defined") {
    reader.fail("\"" + word + "\" cannot be a macro");
  }
}

void read_define(const std::string& name, JsonReader reader, CompileOptions& options) {
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
  options.defines[name] = text;
}

CompileOptions read_compile(JsonReader reader, Arch arch) {
  CompileOptions options;
  if (auto fast_math = reader.optional("fast_math")) options.fast_math = fast_math->boolean();
  if (auto registers = reader.optional("max_registers")) {
    options.max_registers =
        static_cast<int>(registers->integer(16, arch->max_registers_per_thread));
  }
  if (auto defines = reader.optional("defines")) {
    for (auto& [name, value] : defines->entries(64)) read_define(name, value, options);
  }
  reader.no_other_keys();
  return options;
}

void read_workspaces(JsonReader reader, PlanContext& context) {
  std::int64_t total = 0;
  for (auto& [name, value] : reader.entries(64)) {
    const std::int64_t bytes = context.integer(value, 1, max_workspace_bytes);
    total += bytes;  // 64 entries of at most 2^33
    if (total > max_workspace_bytes) {
      value.fail("all workspaces together may have at most " + std::to_string(max_workspace_bytes) +
                 " bytes");
    }
    if (!is_identifier(name)) value.fail("a workspace needs an identifier for its name");
    if (context.problem().find_tensor(name)) {
      value.fail("\"" + name + "\" is a tensor of the problem; choose another name");
    }
    context.add({name, bytes});
  }
}

/// Reads the part of a plan that depends on sizes; whether it does.
bool read_sized_part(JsonReader& root, const Problem& problem, Candidate& candidate) {
  PlanContext context(problem, candidate.arch, candidate.program.compile);
  if (auto workspace = root.optional("workspace")) read_workspaces(*workspace, context);
  candidate.program.steps = read_launches(root.required("launches"), context, candidate.program);
  candidate.program.workspaces = context.workspaces();
  return context.is_in_axes();
}

/// What read_plan_for() reads, as it was written.
std::string sized_part(const json::value& plan) {
  const json::object& all = plan.get_object();
  json::object part;
  for (const char* key : {"workspace", "launches"}) {
    if (const json::value* value = all.if_contains(key)) part[key] = *value;
  }
  return pretty_json(part);
}

}  // namespace

Result<Candidate> read_plan(const std::string& where, const json::value& plan,
                            std::vector<Code> modules) {
  Candidate candidate;
  set_code(candidate.program, std::move(modules));
  // Once the reader has an error, the rest is read for nothing.
  JsonReader root(where, plan);
  root.required("schema").integer(1, 1);
  const Problem* problem = read_problem(root.required("problem"), candidate);
  if (auto error = root.error()) return *error;
  candidate.name = read_candidate_name(root.required("name"));
  candidate.idea = read_text(root.required("idea"), 4000);
  candidate.arch = read_arch(root.required("arch"));
  candidate.origin = read_origin(root.required("origin"));
  if (auto compile = root.optional("compile")) {
    candidate.program.compile = read_compile(*compile, candidate.arch);
  }
  const bool is_in_axes = read_sized_part(root, *problem, candidate);
  root.no_other_keys();
  if (auto error = root.error()) return *error;
  if (is_in_axes) candidate.written = sized_part(plan);
  return candidate;
}

Result<Ok> read_plan_for(const Problem& problem, const std::string& where, const json::value& plan,
                         Candidate& candidate) {
  JsonReader root(where, plan);
  read_sized_part(root, problem, candidate);
  root.no_other_keys();
  if (auto error = root.error()) return *error;
  return Ok{};
}

}  // namespace rekernel
