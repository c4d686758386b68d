#include "harness/evaluation/served_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "harness/base/cache.h"
#include "harness/evaluation/report.h"
#include "harness/process/hidden_files.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_calls.h"

namespace rekernel {

namespace {

namespace fs = std::filesystem;

/// The largest file that the driver or a library may write: the driver keeps code that it compiles
/// itself, and shares memory through files.
constexpr std::int64_t largest_file = std::int64_t{1} << 30;
constexpr int most_open_files = 4096;  // CUDA opens dozens for each GPU of the machine
/// Threads that may be busy all the time: CUDA's waits spin, and our own programs compile.
constexpr int busy_threads = 16;
/// One that nobody tells anything any more has little left to do.
constexpr std::chrono::seconds longest_ending{2};

/// Where a served process finds the file whose lock it holds while it opens its GPU.
constexpr int turn_descriptor = first_inherited_descriptor;

/// Whether processes were started on another GPU as well.
bool is_one_of_several(const GpuIdentity& gpu) {
  static std::mutex mutex;
  static std::set<std::string> uuids;
  const std::lock_guard lock(mutex);
  uuids.insert(gpu.uuid);
  return uuids.size() > 1;
}

/// Shared by this process and those that it starts. Locked by fcntl(), whose locks are a process's.
int turn_file() {
  static const FileDescriptor file(::memfd_create("rekernel-turn", MFD_CLOEXEC));
  return file.get();
}

constexpr const char* file_variable = "REKERNEL_GPU_FILE";
constexpr const char* turns_variable = "REKERNEL_TAKE_TURNS";
constexpr const char* device_folder = "/dev/";
constexpr std::string_view gpu_file = "nvidia";  ///< and a number

/// The limits of a child that uses CUDA. Its address space is not one of them: CUDA reserves
/// terabytes of addresses. Nor are its private pages (RLIMIT_DATA): nothing says how many the
/// driver may need.
ChildLimits device_limits(std::chrono::seconds lifetime) {
  ChildLimits limits;
  limits.processor_time = busy_threads * lifetime;
  limits.file_bytes = largest_file;
  limits.open_files = most_open_files;
  return limits;
}

/// With what lets CUDA start and end fast. Each process spends time on every GPU that it sees, and
/// waits meanwhile for processes that begin on another. Each hardware queue takes time as well, and
/// ours issue to one stream: on an H200 three contexts at a time take 0.11 s with one queue, 0.29 s
/// with the usual eight, and end in half of the time.
Result<ChildOutcome> run_on_gpu(ChildCommand command, const GpuIdentity& gpu,
                                SandboxAdditions additions) {
  for (const std::string& variable :
       {"CUDA_VISIBLE_DEVICES=" + gpu.visible, std::string("CUDA_DEVICE_MAX_CONNECTIONS=1"),
        std::string("CUDA_DEVICE_MAX_COPY_CONNECTIONS=1"),
        std::string(file_variable) + "=" + gpu.file}) {
    additions.variables.push_back(variable);
  }
  if (is_one_of_several(gpu)) additions.variables.push_back(std::string(turns_variable) + "=1");
  return run_sandboxed(std::move(command), SandboxDevices::gpu, additions);
}

bool is_gpu_file(std::string_view name) {
  if (!name.starts_with(gpu_file)) return false;
  const std::string_view number = name.substr(gpu_file.size());
  return !number.empty() && std::all_of(number.begin(), number.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// All but one's own.
std::vector<std::string> files_of_other_gpus(const std::string& own) {
  std::vector<std::string> files;
  std::error_code none;
  for (fs::directory_iterator it(device_folder, none), end; !none && it != end;
       it.increment(none)) {
    if (is_gpu_file(it->path().filename().string()) && it->path() != own) {
      files.push_back(it->path().string());
    }
  }
  return files;
}

}  // namespace

Result<std::unique_ptr<ServedProcess>> ServedProcess::start(const std::string& name,
                                                            const GpuIdentity& gpu,
                                                            std::vector<int> inherited,
                                                            std::chrono::seconds lifetime,
                                                            SandboxAdditions additions) {
  int stop[2];
  if (::pipe2(stop, O_CLOEXEC) != 0) {
    for (const int descriptor : inherited) ::close(descriptor);
    return Error{std::string("cannot make a pipe: ") + std::strerror(errno)};
  }
  ChildCommand command;
  command.arguments = {own_executable(), name};
  command.limits = device_limits(lifetime);
  // Who tells it what to do has deadlines for that; this one is for a process that nobody ends.
  command.deadline = lifetime;
  command.stop = stop[0];
  command.inherited = std::move(inherited);
  command.inherited.insert(command.inherited.begin(), ::fcntl(turn_file(), F_DUPFD_CLOEXEC, 0));
  return std::unique_ptr<ServedProcess>(
      new ServedProcess(std::move(command), gpu, std::move(additions), FileDescriptor(stop[0]),
                        FileDescriptor(stop[1])));
}

ServedProcess::ServedProcess(ChildCommand command, const GpuIdentity& gpu,
                             SandboxAdditions additions, FileDescriptor watched,
                             FileDescriptor stop)
    : watched_(std::move(watched)),
      stop_(std::move(stop)),
      outcome_(std::async(std::launch::async, [command = std::move(command), gpu,
                                               additions = std::move(additions)]() mutable {
                 return run_on_gpu(std::move(command), gpu, std::move(additions));
               }).share()) {}

const Result<ChildOutcome>& ServedProcess::end() {
  if (outcome_.wait_for(longest_ending) != std::future_status::ready) stop_.close();
  return outcome_.get();
}

const Result<ChildOutcome>& ServedProcess::kill() {
  stop_.close();
  return outcome_.get();
}

void see_own_gpu_alone() {
  if (sandbox_is_refused()) return;
  const char* own = std::getenv(file_variable);
  // What CUDA cannot open, it does not spend time on.
  if (own && *own) (void)hide_files(files_of_other_gpus(own)).ok();
}

void settle_as_served_process() {
  see_own_gpu_alone();
  if (!sandbox_is_refused()) (void)lock_down().ok();
  keep_cache_entries_for_parent();
}

Result<Device> open_in_turn() {
  if (!std::getenv(turns_variable)) return Device::open(evaluated_gpu);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  // Without a lock it works as well, only slower.
  ::fcntl(turn_descriptor, F_SETLKW, &whole);
  Result<Device> device = Device::open(evaluated_gpu);
  whole.l_type = F_UNLCK;
  ::fcntl(turn_descriptor, F_SETLK, &whole);
  return device;
}

}  // namespace rekernel
