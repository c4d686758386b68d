#include "harness/gpu/exclusive.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/utf8.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

using Clock = GpuLock::Clock;
using std::chrono::milliseconds;

constexpr milliseconds pause_between_tries{20};
constexpr const char* contexts_of_the_unseen =
    "the GPU has contexts of processes that are not to be seen from here";

Error file_error(const fs::path& path, const std::string& problem) {
  return Error{path.string() + ": " + problem + ": " + std::strerror(errno)};
}

/// Makes an empty file that everybody may open, whatever the umask: complete under another name
/// first, so that nobody meets it with fewer rights. It is no error if it exists already.
Result<Ok> make_lock_file(const fs::path& path) {
  std::string temporary = path.string() + ".XXXXXX";
  const FileDescriptor file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file.is_open()) return file_error(path, "cannot be made");
  const bool made = ::fchmod(file.get(), 0666) == 0 &&
                    (::link(temporary.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int problem = errno;
  ::unlink(temporary.c_str());
  errno = problem;
  if (!made) return file_error(path, "cannot be made");
  return Ok{};
}

/// Reading is enough for flock, and all that another user's file need allow. Nothing is ever
/// written to it. O_CREAT is not asked for together with opening: in folders of everybody, kernels
/// refuse that for another user's file (fs.protected_regular).
Result<FileDescriptor> open_lock_file(const fs::path& path) {
  while (true) {
    FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file.is_open()) {
      struct stat status;
      if (::fstat(file.get(), &status) != 0) return file_error(path, "cannot be examined");
      if (!S_ISREG(status.st_mode)) {
        return Error{path.string() + ": expected a regular file, to lock the GPU with"};
      }
      return file;
    }
    if (errno == ELOOP) {
      return Error{path.string() + ": is a symbolic link; expected a regular file"};
    }
    if (errno != ENOENT) return file_error(path, "cannot be opened");
    if (const Result<Ok> made = make_lock_file(path); !made) return made.error();
  }
}

/// Whether the path still leads to the open file, which somebody may have removed.
bool is_at(const FileDescriptor& file, const fs::path& path) {
  struct stat opened;
  struct stat present;
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &present) == 0 &&
         opened.st_dev == present.st_dev && opened.st_ino == present.st_ino;
}

std::string first_line_of(const fs::path& path) {
  const Result<std::string> text = read_file(path);
  return text ? text->substr(0, text->find('\n')) : "";
}

/// Names come from strangers' processes and go to terminals.
std::string shown(const std::string& name) { return one_line(name, 60); }

/// The words of a command line: "rekernel bench …" is known by the first two.
std::vector<std::string> command_line(pid_t process) {
  const Result<std::string> bytes =
      read_file("/proc/" + std::to_string(process) + "/cmdline", 1 << 20);
  std::vector<std::string> words;
  if (!bytes) return words;
  std::istringstream stream(*bytes);
  for (std::string word; std::getline(stream, word, '\0');) words.push_back(word);
  return words;
}

std::string program_name(pid_t process) {
  const std::vector<std::string> words = command_line(process);
  if (!words.empty() && !words[0].empty()) return shown(fs::path(words[0]).filename());
  return shown(first_line_of("/proc/" + std::to_string(process) + "/comm"));
}

std::string describe_holder(const fs::path& lock) {
  struct stat status;
  const Result<std::string> locks = read_file("/proc/locks");
  if (!locks || ::lstat(lock.c_str(), &status) != 0) return "another process";
  const std::optional<pid_t> holder = lock_holder(*locks, status.st_dev, status.st_ino);
  if (!holder) return "another process";
  std::string name = program_name(*holder);
  // For our own program, the command too; other arguments may be anything.
  const std::vector<std::string> words = command_line(*holder);
  if (name == "rekernel" && words.size() > 1) name += " " + shown(words[1]);
  return "process " + std::to_string(*holder) + (name.empty() ? "" : " (" + name + ")");
}

/// The wait of one who wants a GPU's lock.
class Wait {
 public:
  Wait(fs::path lock, std::optional<Clock::time_point> deadline, const GpuLock::OnWait& on_wait)
      : lock_(std::move(lock)), deadline_(deadline), on_wait_(on_wait) {}

  /// Past the deadline an error.
  Result<Ok> pause() {
    if (!std::exchange(told_, true) && on_wait_) on_wait_(describe_holder(lock_));
    if (deadline_ && Clock::now() >= *deadline_) {
      return Error{"the GPU did not become free in time: " + describe_holder(lock_) +
                   " evaluates on it"};
    }
    std::this_thread::sleep_for(pause_between_tries);
    return Ok{};
  }

 private:
  fs::path lock_;
  std::optional<Clock::time_point> deadline_;
  const GpuLock::OnWait& on_wait_;
  bool told_ = false;
};

Result<FileDescriptor> locked_file(const fs::path& path, Wait& wait) {
  while (true) {
    Result<FileDescriptor> file = open_lock_file(path);
    if (!file) return file.error();
    const bool locked = ::flock(file->get(), LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno != EWOULDBLOCK && errno != EINTR) {
      return file_error(path, "cannot be locked");
    }
    if (locked && is_at(*file, path)) return file;
    if (locked) continue;
    if (const Result<Ok> paused = wait.pause(); !paused) return paused.error();
  }
}

}  // namespace

Result<fs::path> shared_lock_folder(std::span<const fs::path> choices) {
  std::string tried;
  for (const fs::path& choice : choices) {
    struct stat status;
    if (::lstat(choice.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
        (status.st_mode & S_ISVTX) != 0 && (status.st_mode & S_IWOTH) != 0) {
      return choice;
    }
    tried += (tried.empty() ? "" : " or ") + choice.string();
  }
  return Error{"no place for a lock on the GPU: expected " + tried +
               " to be a folder in which everybody may write (mode 1777)"};
}

std::optional<pid_t> lock_holder(const std::string& proc_locks, std::uint64_t device,
                                 std::uint64_t inode) {
  std::array<char, 64> wanted;
  std::snprintf(wanted.data(), wanted.size(), "%02x:%02x:%llu", major(device), minor(device),
                static_cast<unsigned long long>(inode));
  // "1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF"; who waits has "->" before FLOCK.
  std::istringstream lines(proc_locks);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, kind, strictness, access, place;
    pid_t process = 0;
    if (words >> number >> kind >> strictness >> access >> process >> place && kind == "FLOCK" &&
        place == wanted.data() && process > 0) {
      return process;
    }
  }
  return std::nullopt;
}

Result<GpuLock> GpuLock::acquire(const std::string& uuid, std::optional<Clock::time_point> deadline,
                                 const OnWait& on_wait) {
  const std::array<fs::path, 2> choices{"/run/lock", "/tmp"};
  const Result<fs::path> folder = shared_lock_folder(choices);
  if (!folder) return folder.error();
  return acquire(uuid, deadline, on_wait, *folder);
}

Result<GpuLock> GpuLock::acquire(const std::string& uuid, std::optional<Clock::time_point> deadline,
                                 const OnWait& on_wait, const fs::path& folder) {
  const bool plain = !uuid.empty() && std::all_of(uuid.begin(), uuid.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-';
  });
  if (!plain) return Error{"\"" + uuid + "\" is not the UUID of a GPU"};
  const fs::path path = folder / ("rekernel-gpu-" + uuid + ".lock");

  // Who has just released the lock and asks for it again would nearly always get it before those
  // who look at it from time to time. So whoever is next holds a lock for which all others wait.
  fs::path next = path;
  next += ".next";
  Wait wait(path, deadline, on_wait);
  const Result<FileDescriptor> turn = locked_file(next, wait);
  if (!turn) return turn.error();
  Result<FileDescriptor> file = locked_file(path, wait);
  if (!file) return file.error();
  return GpuLock(std::move(*file), next);
}

bool GpuLock::is_wanted() const {
  const Result<FileDescriptor> turn = open_lock_file(next_);
  return turn && ::flock(turn->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::optional<ProcessFacts> process_facts(pid_t process) {
  // "1234 (name, which may hold spaces and brackets) S 1200 …"
  const std::string stat = first_line_of("/proc/" + std::to_string(process) + "/stat");
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) {
    // Where /proc hides other users' processes, they exist all the same.
    if (process > 0 && ::kill(process, 0) != 0 && errno == EPERM) return ProcessFacts{};
    return std::nullopt;
  }
  ProcessFacts facts;
  std::string state;
  std::istringstream(stat.substr(bracket + 1)) >> state >> facts.parent;
  facts.name = program_name(process);
  return facts;
}

bool sees_all_processes() {
  // The number of the initial PID namespace (PROC_PID_INIT_INO) is part of Linux' interface. A
  // /proc of another namespace shows others' numbers, or none of us.
  constexpr ino_t initial = 0xEFFFFFFC;
  struct stat status;
  std::error_code unreadable;
  const fs::path self = fs::read_symlink("/proc/self", unreadable);
  return !unreadable && self == std::to_string(::getpid()) &&
         ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == initial;
}

std::string to_text(const GpuProcess& process) {
  return "process " + std::to_string(process.pid) +
         (process.name.empty() ? "" : " (" + process.name + ")");
}

namespace {

std::vector<pid_t> ancestors_of(pid_t parent, const ProcessTable& processes) {
  constexpr std::size_t deepest = 256;
  std::vector<pid_t> result;
  while (parent > 0 && result.size() < deepest) {
    result.push_back(parent);
    const std::optional<ProcessFacts> facts = processes(parent);
    parent = facts ? facts->parent : 0;
  }
  return result;
}

/// Adds a context to its process, which computes if any of its contexts does.
void add(std::vector<GpuProcess>& processes, const GpuContext& context) {
  auto known = std::find_if(processes.begin(), processes.end(), [&](const GpuProcess& process) {
    return process.pid == context.process;
  });
  if (known == processes.end()) {
    processes.push_back({context.process, "", context.kind, context.memory_bytes, {}});
    return;
  }
  if (known->kind == GpuContext::Kind::graphics) known->kind = context.kind;
  if (!known->memory_bytes) known->memory_bytes = context.memory_bytes;
}

}  // namespace

GpuOccupants occupants(const Result<std::vector<GpuContext>>& contexts,
                       const ProcessTable& processes, bool sees_all) {
  GpuOccupants result;
  if (!contexts) {
    result.incomplete = contexts.error().message;
    return result;
  }
  for (const GpuContext& context : *contexts) add(result.processes, context);
  const std::size_t unseen = std::erase_if(result.processes, [&](GpuProcess& process) {
    const std::optional<ProcessFacts> facts = processes(process.pid);
    if (!facts) return true;
    process.name = facts->name;
    process.ancestors = ancestors_of(facts->parent, processes);
    return false;
  });
  if (unseen > 0) {
    result.incomplete = contexts_of_the_unseen;
    // Where one number is not of our namespace, those that are may be so by chance.
    if (!sees_all) result.processes.clear();
  } else if (!sees_all) {
    result.incomplete = "processes outside of this container are not to be seen";
  }
  return result;
}

GpuOccupants occupants(const GpuMonitor& monitor) {
  constexpr int most_tries = 10;
  const bool sees_all = sees_all_processes();
  for (int tries = 1;; ++tries) {
    GpuOccupants result = occupants(monitor.contexts(), process_facts, sees_all);
    const bool ending = sees_all && result.incomplete == contexts_of_the_unseen;
    if (!ending || tries == most_tries) return result;
    std::this_thread::sleep_for(pause_between_tries);
  }
}

std::vector<GpuProcess> foreign_compute(const GpuOccupants& occupants,
                                        std::span<const pid_t> own_roots) {
  const auto is_root = [&](pid_t process) {
    return std::find(own_roots.begin(), own_roots.end(), process) != own_roots.end();
  };
  std::vector<GpuProcess> foreign;
  for (const GpuProcess& process : occupants.processes) {
    if (process.kind == GpuContext::Kind::graphics) continue;
    if (is_root(process.pid) ||
        std::any_of(process.ancestors.begin(), process.ancestors.end(), is_root)) {
      continue;
    }
    foreign.push_back(process);
  }
  return foreign;
}

std::vector<GpuProcess> graphics_only(const GpuOccupants& occupants) {
  std::vector<GpuProcess> result;
  for (const GpuProcess& process : occupants.processes) {
    if (process.kind == GpuContext::Kind::graphics) result.push_back(process);
  }
  return result;
}

}  // namespace rekernel
