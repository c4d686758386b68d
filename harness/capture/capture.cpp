#include "harness/capture/capture.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/quantile.h"
#include "harness/candidate/code.h"
#include "harness/capture/gpu_turn.h"
#include "harness/capture/marks.h"
#include "harness/capture/plan_maker.h"
#include "harness/capture/recording.h"
#include "harness/gpu/identity.h"
#include "harness/gpu/library.h"
#include "harness/process/sandbox.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr char driver_source[] =
#include "capture_driver.inc"
    ;

constexpr std::size_t max_program_bytes = 16u << 20;
constexpr std::size_t max_answer_bytes = 1u << 20;
constexpr std::size_t max_module_bytes = 48u << 20;
/// Compilers of a program write their own files as well as the recorder its.
constexpr std::int64_t max_file_bytes = std::int64_t{1} << 30;
constexpr std::size_t max_log_files = 256;

/// A new folder that goes with everything in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string text = (fs::temp_directory_path() / "rekernel-capture-XXXXXX").string();
    if (::mkdtemp(text.data())) path_ = text;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string question(const CaptureRequest& request, const Problem& problem, const fs::path& program,
                     const fs::path& answer) {
  json::array tensors;
  for (const Tensor& tensor : problem.tensors) {
    const Distribution& distribution = tensor.distribution;
    tensors.push_back({{"name", tensor.name},
                       {"dtype", to_string(tensor.dtype)},
                       {"shape", json::value_from(tensor.shape)},
                       {"role", tensor.role == Role::input ? "input" : "output"},
                       {"distribution",
                        {{"kind", to_string(distribution.kind)},
                         {"a", distribution.a},
                         {"b", distribution.b},
                         {"choices", json::value_from(distribution.choices)}}}});
  }
  json::object object = {{"program", program.string()},   {"problem", problem.id},
                         {"device", request.device},      {"samples", request.samples},
                         {"tensors", std::move(tensors)}, {"answer", answer.string()}};
  object["function"] = request.function ? json::value(*request.function) : json::value();
  return json::serialize(object);
}

/// What a program may see and write beside what every child may.
SandboxAdditions additions(const CaptureRequest& request, const fs::path& scratch,
                           const fs::path& program) {
  const fs::path& recorder = request.recorder;
  SandboxAdditions result = python_additions();
  result.readable.push_back(program.parent_path().string());
  result.readable.push_back(recorder.parent_path().string());
  result.writable = {scratch.string()};
  const auto place = [&](const char* variable, const fs::path& folder) {
    result.variables.push_back(std::string(variable) + "=" + folder.string());
  };
  const auto in_scratch = [&](const char* variable, const char* folder) {
    if (sandbox_is_refused() && std::getenv(variable)) return;
    place(variable, scratch / folder);
  };
  const bool keeps = !request.compiled.empty();
  if (keeps) result.writable.push_back(request.compiled.string());
  for (const auto& [variable, folder] :
       {std::pair("TRITON_CACHE_DIR", "triton"), std::pair("TORCHINDUCTOR_CACHE_DIR", "inductor"),
        std::pair("TORCH_EXTENSIONS_DIR", "extensions")}) {
    keeps ? place(variable, request.compiled / folder) : in_scratch(variable, folder);
  }
  in_scratch("TMPDIR", "tmp");
  result.variables.push_back("HOME=" + (scratch / "tmp").string());
  result.variables.push_back("REKERNEL_CAPTURE_LOGS=" + (scratch / "logs").string());
  result.variables.push_back("CUDA_INJECTION64_PATH=" + recorder.string());
  return result;
}

/// What a program without Python needs beside that: how many calls are timed, its GPU, and CUPTI,
/// which PyTorch would bring.
void add_for_marks(const CaptureRequest& request, const GpuIdentity& gpu, SandboxAdditions& to) {
  to.variables.push_back("REKERNEL_CAPTURE_MARKS=" + std::to_string(request.samples));
  // It does not ask us which GPU to use: it sees the one.
  if (!gpu.visible.empty()) to.variables.push_back("CUDA_VISIBLE_DEVICES=" + gpu.visible);
  if (std::getenv("REKERNEL_CUPTI")) return;
  const Result<DynamicLibrary> cupti = DynamicLibrary::open({"libcupti.so.13", "libcupti.so.12"});
  if (!cupti) return;  // the recorder says that there is none
  to.variables.push_back("REKERNEL_CUPTI=" + cupti->path());
  to.readable.push_back(fs::path(cupti->path()).parent_path().string());
}

std::string words_of(const ChildOutcome& outcome) {
  return outcome.last_words.empty() ? "" : ": " + one_line(outcome.last_words, 200);
}

std::string failure_of(const ChildOutcome& outcome) {
  return how_it_ended(outcome) + words_of(outcome);
}

struct Answer {
  std::string entry;
  std::string torch;
  std::vector<std::int64_t> call_ns;
  std::vector<std::int64_t> device_ns;
};

std::vector<std::int64_t> read_times(JsonReader reader) {
  std::vector<std::int64_t> times;
  for (JsonReader& time : reader.array(1, 10000)) {
    times.push_back(time.integer(1, std::int64_t{1} << 50));
  }
  return times;
}

Result<Answer> read_answer(const std::string& text) {
  const Result<json::value> value = parse_json(text, "the program's answer");
  if (!value) return value.error();
  JsonReader reader("the program's answer", *value);
  if (reader.has("error")) {
    const std::string error = one_line(reader.required("error").string(), 500);
    if (auto malformed = reader.error()) return *malformed;
    return Error{error};
  }
  Answer answer;
  answer.entry = one_line(reader.required("entry").string(200), 200);
  answer.torch = one_line(reader.required("torch").string(200), 200);
  answer.call_ns = read_times(reader.required("call_ns"));
  answer.device_ns = read_times(reader.required("device_ns"));
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  return answer;
}

/// A regular file below the logs: a stranger chose what lies there.
Result<std::string> read_log_file(const fs::path& path, std::size_t max_bytes) {
  std::error_code status;
  if (!fs::is_regular_file(fs::symlink_status(path, status))) {
    return Error{path.filename().string() + ": not a regular file"};
  }
  return read_file(path, max_bytes);
}

/// Reads the one log of a process that has calls; the others are those of compilers.
Result<Recording> read_logs(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code status;
  for (fs::directory_iterator it(folder, status), end; !status && it != end; it.increment(status)) {
    if (it->path().extension() == ".log") paths.push_back(it->path());
    if (paths.size() > max_log_files) return Error{"starts too many processes"};
  }
  std::sort(paths.begin(), paths.end());
  std::optional<Recording> found;
  for (const fs::path& path : paths) {
    const Result<std::string> text = read_log_file(path, 64u << 20);
    if (!text) return text.error();
    Result<Recording> recording = read_recording(*text, path.filename().string());
    if (!recording) return recording.error();
    if (recording->calls.empty() && recording->problem.empty()) continue;
    if (found) return Error{"calls from several processes"};
    found = *std::move(recording);
  }
  return found.value_or(Recording{});
}

Result<Ok> check_sandbox() {
  if (sandbox_is_refused()) return Ok{};
  const Result<std::string> found = sandbox();
  if (found) return Ok{};
  return Error{"a program runs only in the sandbox, and there is none: " + found.error().message +
               "; REKERNEL_SANDBOX=off in the environment runs it with all of your rights"};
}

Result<Ok> check_recorder(const fs::path& recorder) {
#ifdef REKERNEL_HAS_RECORDER
  constexpr const char* reason = "it belongs beside the program, where the build puts it";
#else
  constexpr const char* reason = "this build found no CUPTI headers (cupti.h)";
#endif
  std::error_code status;
  if (fs::exists(recorder, status)) return Ok{};
  return Error{recorder.string() + " is missing: " + reason};
}

/// Whether the text has the name as a word, or takes names from elsewhere without saying which.
bool may_have_name(std::string_view text, std::string_view name) {
  const auto part_of_a_word = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_');
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !part_of_a_word(at - 1);
    if (begins && !part_of_a_word(at + name.size())) return true;
  }
  return text.find("import *") != std::string_view::npos;
}

Result<Ok> check_program(const CaptureRequest& request) {
  std::error_code status;
  if (!fs::is_regular_file(request.program, status)) {
    return Error{request.program.string() + ": not a file"};
  }
  if (!is_python(request.program)) {
    if (request.function) return Error{"--function: expected a Python program (.py)"};
    if (::access(request.program.c_str(), X_OK) == 0) return Ok{};
    return Error{request.program.string() + ": expected a Python program (.py) or an executable"};
  }
  if (!request.arguments.empty()) {
    return Error{request.program.string() + ": a Python program gets no arguments"};
  }
  const Result<std::string> text = read_file(request.program, max_program_bytes);
  if (!text) return text.error();
  if (!request.function) return Ok{};
  if (!is_identifier(*request.function)) {
    return Error{"function '" + one_line(*request.function, 64) +
                 "': expected the name of a Python function"};
  }
  if (may_have_name(*text, *request.function)) return Ok{};
  return Error{request.program.string() + ": the program has no '" + *request.function + "'"};
}

/// The candidate's name, by the validation that its plan will meet.
Result<Ok> check_name(const std::string& name, const Problem& problem) {
  const Candidate named = scaffold_candidate(problem, name);
  const Result<Candidate> judged =
      parse_candidate(candidate_json(named), code_of(named.program), "the candidate");
  if (!judged) return judged.error();
  return Ok{};
}

/// Runs what records, until it ends; errors say how else it ended.
Result<ChildOutcome> run_recorded(const CaptureRequest& request, ChildCommand command,
                                  const SandboxAdditions& additions) {
  command.deadline = request.deadline;
  command.exit_deadline = request.deadline;
  command.limits.processor_time = 16 * request.deadline;
  command.limits.file_bytes = max_file_bytes;
  command.limits.open_files = 4096;
  const auto begin = std::chrono::steady_clock::now();
  Result<ChildOutcome> outcome = run_sandboxed(std::move(command), SandboxDevices::gpu, additions);
  if (!outcome) return outcome;
  if (std::chrono::steady_clock::now() - begin >= request.deadline) {
    return Error{"not done within " + std::to_string(request.deadline.count()) +
                 " s (--deadline gives more)"};
  }
  if (outcome->end != ChildOutcome::End::exited || outcome->code != 0) {
    return Error{failure_of(*outcome)};
  }
  return outcome;
}

/// The driver runs the program in its own process, and asks for the GPU once PyTorch is there. It
/// closes its result pipe at once, since what it starts may outlive it, and reports through files.
Result<Answer> run_python(const CaptureRequest& request, const Problem& problem,
                          const GpuIdentity& gpu, const fs::path& program,
                          const fs::path& scratch) {
  const fs::path answer_path = scratch / "answer.json";
  ChildCommand command;
  command.arguments = {"/usr/bin/env", "-C", (scratch / "tmp").string(),
                       "python3",      "-c", driver_source};
  command.input = question(request, problem, program, answer_path);
  const auto turn = GpuTurn::offer(
      request.take_gpu
          ? request.take_gpu
          : take_alone(gpu.uuid, GpuLock::Clock::now() + request.deadline, request.waiting));
  if (!turn) return turn.error();
  command.inherited = {(*turn)->take_their_end()};
  const Result<ChildOutcome> outcome =
      run_recorded(request, std::move(command), additions(request, scratch, program));
  if (!outcome) return outcome.error();
  const Result<std::string> text = read_log_file(answer_path, max_answer_bytes);
  if (!text) return Error{"ended early without an answer" + words_of(*outcome)};
  return read_answer(*text);
}

/// The program runs by itself, in an empty folder, with the GPU for itself, and its log tells the
/// times.
Result<Answer> run_marked(const CaptureRequest& request, const GpuIdentity& gpu,
                          const fs::path& program, const fs::path& scratch) {
  ChildCommand command;
  command.arguments = {"/usr/bin/env", "-C", (scratch / "tmp").string(), program.string()};
  command.arguments.insert(command.arguments.end(), request.arguments.begin(),
                           request.arguments.end());
  SandboxAdditions more = additions(request, scratch, program);
  add_for_marks(request, gpu, more);
  const Result<std::shared_ptr<void>> taken =
      request.take_gpu ? request.take_gpu() : take_alone(gpu.uuid, {}, request.waiting)();
  if (!taken) return taken.error();
  const Result<ChildOutcome> outcome = run_recorded(request, std::move(command), more);
  if (!outcome) return outcome.error();
  Answer answer;
  answer.entry = one_line(program.filename().string(), 100);
  return answer;
}

/// What a program that marks its work says through its log; nothing is asked of a Python program's.
Result<Ok> take_marks(const CaptureRequest& request, const Problem& problem, Recording& recording,
                      Answer& answer) {
  if (is_python(request.program)) {
    if (!recording.calls.empty() || !recording.problem.empty()) return Ok{};
    return Error{"no call was recorded: the recorder was not loaded into the process"};
  }
  answer.call_ns = recording.call_ns;
  answer.device_ns = recording.device_ns;
  return assign_marked(recording, problem);
}

std::int64_t median_of(const std::vector<std::int64_t>& times) {
  return times.empty() ? 0 : std::llround(quantile(times, 0.5));
}

}  // namespace

bool is_python(const fs::path& program) { return program.extension() == ".py"; }

Result<fs::path> find_recorder() {
  fs::path recorder = fs::path(own_executable()).parent_path() / "librekernel_recorder.so";
  if (Result<Ok> there = check_recorder(recorder); !there) return there.error();
  return recorder;
}

std::int64_t Capture::median_call_ns() const { return median_of(call_ns); }
std::int64_t Capture::median_device_ns() const { return median_of(device_ns); }

Result<Arch> newest_arch_on(int device) {
  const Result<GpuIdentity> gpu = identify_gpu(device);
  if (!gpu) return gpu.error();
  const std::vector<Arch> archs = archs_on(gpu->capability);
  if (archs.empty()) return Error{"this GPU is older than sm_80"};
  return archs.back();
}

Result<Ok> check_request(const CaptureRequest& request, const Problem& problem) {
  if (Result<Ok> sound = check_program(request); !sound) return sound;
  return check_name(request.name, problem);
}

Result<Capture> capture_program(const CaptureRequest& request, const Problem& problem) {
  if (Result<Ok> sound = check_request(request, problem); !sound) return sound.error();
  if (Result<Ok> sandboxed = check_sandbox(); !sandboxed) return sandboxed.error();
  if (Result<Ok> there = check_recorder(request.recorder); !there) return there.error();
  std::error_code status;
  const fs::path program = fs::canonical(request.program, status);
  if (status) return Error{request.program.string() + ": " + status.message()};
  const std::string where = request.program.string() + ": ";
  const ScratchFolder scratch;
  if (scratch.path().empty()) return Error{"cannot make a temporary folder"};
  for (const char* folder : {"logs", "tmp"}) fs::create_directory(scratch.path() / folder);
  // Where there is none, the program finds that out.
  GpuIdentity gpu;
  if (Result<GpuIdentity> found = identify_gpu(request.device)) gpu = std::move(*found);
  Result<Answer> answer = is_python(program)
                              ? run_python(request, problem, gpu, program, scratch.path())
                              : run_marked(request, gpu, program, scratch.path());
  if (!answer) return Error{where + answer.error().message};
  Result<Recording> recording = read_logs(scratch.path() / "logs");
  if (!recording) return Error{where + recording.error().message};
  if (Result<Ok> whole = take_marks(request, problem, *recording, *answer); !whole) {
    return Error{where + whole.error().message};
  }
  const ModuleBytes modules = [&](const std::string& file) {
    return read_log_file(scratch.path() / "logs" / file, max_module_bytes);
  };
  Result<Candidate> candidate =
      make_plan(*recording, modules, problem, request.arch, request.name,
                one_line(program.filename().string(), 100) + " (" + answer->entry + ")");
  if (!candidate) return Error{where + candidate.error().message};
  return Capture{*std::move(candidate), std::move(answer->entry), std::move(answer->torch),
                 std::move(answer->call_ns), std::move(answer->device_ns)};
}

}  // namespace rekernel
