#include <boost/json.hpp>

#include "harness/candidate/candidate.h"
#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"
#include "harness/problems/other_sizes.h"
#include "property.h"
#include "targets.h"
#include "tests/replay/fakes.h"

namespace rekernel::fuzz {
namespace {

constexpr const char* where = "somebody/kernel.json";
constexpr const char* source = "extern \"C\" __global__ void k(const float* x, float* y) {}\n";
constexpr std::size_t max_plan_bytes = 256u << 10;

std::int64_t size_of(const Argument& argument) {
  if (std::holds_alternative<BufferArgument>(argument)) return 8;
  if (std::holds_alternative<TensorMapArgument>(argument)) return 128;
  return std::visit([](auto value) { return static_cast<std::int64_t>(sizeof value); },
                    std::get<ScalarArgument>(argument));
}

/// What the compiler would say of a kernel that takes just what the launch gives.
KernelResources resources_of(const KernelLaunch& launch) {
  KernelResources resources;
  resources.name = launch.kernel;
  for (const Argument& argument : launch.args)
    resources.parameters.push_back({0, size_of(argument)});
  return resources;
}

void check_launches_of(const Candidate& candidate) {
  for (const Step& step : candidate.program.steps) {
    const auto* launch = std::get_if<KernelLaunch>(&step);
    if (!launch) continue;
    Program program = candidate.program;
    program.steps = {*launch};
    CompiledProgram compiled;
    compiled.kernels = {resources_of(*launch)};
    require(check_launches(program, compiled, where).ok(), "a launch fits its kernel");
    compiled.kernels[0].parameters.push_back({0, 4});
    const Result<Ok> longer = check_launches(program, compiled, where);
    require(!longer, "a missing argument is noticed");
    require_error(longer.error(), where);
    compiled.kernels.clear();
    const Result<Ok> missing = check_launches(program, compiled, where);
    require(!missing, "a missing kernel is noticed");
    require_error(missing.error(), where);
  }
}

/// At other sizes a plan in axes is an error that names them, or the same candidate.
void check_other_sizes_of(const Candidate& candidate) {
  static std::map<std::string, std::vector<Problem>> instances;
  const auto [place, is_new] = instances.try_emplace(candidate.problem);
  if (is_new) place->second = drawn_instances(*find_problem(candidate.problem), 1, 2);
  for (const Problem& one : place->second) {
    const Result<Candidate> sized = at_sizes(candidate, one);
    if (!sized) {
      require_error(sized.error(), candidate.problem + "/" + candidate.name + "/kernel.json at ");
      continue;
    }
    require(candidate_sha256(*sized) == candidate_sha256(candidate), "one hash for all sizes");
    require(candidate_json(*sized) == candidate_json(candidate), "one plan for all sizes");
  }
}

/// The folder's reader takes what the parser takes.
void check_folder(std::string_view bytes, bool good) {
  static const TemporaryFolder folder;
  static const bool written = [] {
    std::filesystem::create_directory(folder / "k");
    testing::write_text(folder / "k/kernel.cu", source);
    return true;
  }();
  require(written, "the source is there");
  testing::write_text(folder / "k/kernel.json", std::string(bytes));
  const Result<Candidate> loaded = load_candidate(folder / "k");
  require(loaded.ok() == good, "a folder is read as its files are");
  if (!loaded) require_error(loaded.error(), (folder / "k").string());
}

}  // namespace

void fuzz_plan(std::string_view bytes) {
  const Result<Candidate> candidate = parse_candidate(bytes, source, where);
  check_folder(bytes, candidate.ok());
  if (!candidate) return require_error(candidate.error(), where);
  check_launches_of(*candidate);
  if (candidate->is_in_axes()) check_other_sizes_of(*candidate);

  const std::string text = candidate_json(*candidate);
  if (text.size() > max_plan_bytes) return;  // grew by its indentation
  const Result<Candidate> again = parse_candidate(text, source, where);
  require(again.ok(), "what is written is accepted", again.ok() ? "" : again.error().message);
  require(candidate_json(*again) == text, "a plan is written the same again", text);
  require(candidate_sha256(*again) == candidate_sha256(*candidate), "the hash stays", text);
}

}  // namespace rekernel::fuzz
