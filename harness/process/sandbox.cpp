#include "harness/process/sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "harness/base/environment.h"
#include "harness/base/files.h"

extern char** environ;

namespace rekernel {

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words split(const std::string& list) {
  Words parts;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ':');) {
    if (part.starts_with('/')) parts.push_back(part);
  }
  return parts;
}

std::string find_in_path(const std::string& name) {
  for (const std::string& folder : split(environment("PATH"))) {
    const std::string path = folder + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

void append(Words& to, const Words& words) { to.insert(to.end(), words.begin(), words.end()); }

/// Empty folders stand where people keep their files and programs their sockets.
Words hidden_folders() {
  Words folders;
  for (const std::string& folder :
       Words{"/home", "/root", "/run", "/tmp", "/var/tmp", environment("HOME")}) {
    std::error_code status;
    const fs::path real = fs::canonical(folder, status);
    if (status || real == "/" || !fs::is_directory(real)) continue;
    if (std::find(folders.begin(), folders.end(), real) == folders.end()) {
      folders.push_back(real.string());
    }
  }
  // A folder inside another comes after it, and would be gone if it came first.
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool lies_below(const std::string& path, const Words& folders) {
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return path == folder || path.starts_with(folder + "/");
  });
}

/// What a child reads, wherever it lies: the project with its libraries, this program, the cache.
Words needed_paths() {
  Words paths = {REKERNEL_SOURCE_DIR, fs::path(own_executable()).parent_path().string(),
                 cache_directory().string(),
                 fs::path(REKERNEL_CUDA_INCLUDE_DIR).parent_path().string()};
  append(paths, split(environment("LD_LIBRARY_PATH")));
  return paths;
}

Words mounts(SandboxDevices devices) {
  Words words = {"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"};
  if (devices == SandboxDevices::gpu) {
    std::error_code none;
    for (fs::directory_iterator it("/dev", none), end; !none && it != end; it.increment(none)) {
      const std::string path = it->path().string();
      if (path.starts_with("/dev/nvidia") || path == "/dev/dri") {
        append(words, {"--dev-bind-try", path, path});
      }
    }
    // Containers put their own view of the driver over the kernel's.
    append(words, {"--ro-bind-try", "/proc/driver/nvidia", "/proc/driver/nvidia"});
  }
  const Words hidden = hidden_folders();
  for (const std::string& folder : hidden) append(words, {"--tmpfs", folder});
  if (devices == SandboxDevices::gpu) {
    // The driver's own services listen there.
    for (const char* folder : {"/run/nvidia-persistenced", "/run/nvidia-fabricmanager"}) {
      append(words, {"--ro-bind-try", folder, folder});
    }
  }
  for (const std::string& path : needed_paths()) {
    if (lies_below(path, hidden)) append(words, {"--ro-bind-try", path, path});
  }
  return words;
}

/// Variables that decide which libraries and devices are used, and ours.
bool is_passed_on(std::string_view variable) {
  constexpr std::array names = {"PATH=", "LD_LIBRARY_PATH=", "LANG=", "LC_ALL="};
  constexpr std::array beginnings = {"CUDA_",     "NVIDIA_", "CUDNN_", "CUBLAS",
                                     "REKERNEL_", "ASAN_",   "UBSAN_"};
  const auto begins = [&](const char* text) { return variable.starts_with(text); };
  return std::any_of(names.begin(), names.end(), begins) ||
         std::any_of(beginnings.begin(), beginnings.end(), begins);
}

Words own_variables() {
  Words words;
  for (char** variable = environ; *variable; ++variable) words.emplace_back(*variable);
  return words;
}

/// What a child gets of this process's variables, which may hold keys to all sorts of things.
Words variables(bool inside_bubblewrap) {
  Words words;
  for (char** variable = environ; *variable; ++variable) {
    if (is_passed_on(*variable)) words.push_back(*variable);
  }
  words.push_back("HOME=" + (inside_bubblewrap ? "/tmp" : environment("HOME")));
  // The folder depends on variables that are not passed on.
  std::erase_if(words, [](const std::string& word) { return word.starts_with("REKERNEL_CACHE="); });
  words.push_back("REKERNEL_CACHE=" + cache_directory().string());
  return words;
}

/// The folders that hold the tools on PATH and what these need beside them: a virtual environment,
/// a user's own installation; never a home as a whole.
Words tool_folders() {
  Words folders;
  for (const std::string& entry : split(environment("PATH"))) {
    const fs::path folder(entry);
    const bool own_prefix = folder.filename() == "bin" || folder.filename() == "shims";
    const fs::path prefix = own_prefix ? folder.parent_path() : folder;
    const Words hidden = hidden_folders();
    const bool whole = std::find(hidden.begin(), hidden.end(), prefix.string()) != hidden.end();
    folders.push_back(whole ? folder.string() : prefix.string());
  }
  return folders;
}

Words mounts(const SandboxAdditions& additions) {
  Words words;
  const Words hidden = hidden_folders();
  Words readable = additions.readable;
  if (additions.tools) append(readable, tool_folders());
  for (const std::string& path : readable) {
    if (lies_below(path, hidden)) append(words, {"--ro-bind-try", path, path});
  }
  for (const std::string& path : additions.writable) append(words, {"--bind", path, path});
  return words;
}

/// The command line in front of a program's own. A sandbox has no network, sees no other process,
/// and ends with its parent.
Words wrapping(const std::string& bubblewrap, SandboxDevices devices,
               const SandboxAdditions& additions = {}) {
  Words words = {bubblewrap,      "--unshare-all", "--die-with-parent",
                 "--new-session", "--cap-drop",    "ALL"};
  append(words, mounts(devices));
  append(words, mounts(additions));
  append(words, {"--chdir", "/", "--"});
  return words;
}

/// With those of `words` that `additions` names again left out.
Words with_variables(const Words& words, const Words& additions) {
  Words result = additions;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('=') + 1);
    const bool anew = std::any_of(additions.begin(), additions.end(),
                                  [&](const std::string& one) { return one.starts_with(name); });
    if (!anew) result.push_back(word);
  }
  return result;
}

/// Runs something harmless inside: having the program says little, since systems and containers may
/// forbid what it needs, and it may not see the project there.
Result<std::string> find_sandbox() {
  if (sandbox_is_refused()) return Error{"REKERNEL_SANDBOX=off"};
  const std::string bubblewrap = find_in_path("bwrap");
  if (bubblewrap.empty()) return Error{"bwrap (bubblewrap) is not installed"};
  ChildCommand command;
  command.arguments = wrapping(bubblewrap, SandboxDevices::gpu);
  append(command.arguments, {"test", "-x", own_executable()});
  command.deadline = std::chrono::seconds(10);
  const Result<ChildOutcome> outcome = run_child(command);
  if (!outcome) return outcome.error();
  if (outcome->end != ChildOutcome::End::exited || outcome->code != 0) {
    return Error{bubblewrap + " does not work here" +
                 (outcome->last_words.empty() ? "" : ": " + outcome->last_words)};
  }
  return bubblewrap;
}

}  // namespace

bool sandbox_is_refused() { return environment("REKERNEL_SANDBOX") == "off"; }

Result<std::string> sandbox() {
  static const Result<std::string> found = find_sandbox();
  return found;
}

SandboxAdditions python_additions() {
  SandboxAdditions result;
  result.tools = true;
  result.variables = {"PYTHONDONTWRITEBYTECODE=1"};
  if (const char* modules = std::getenv("PYTHONPATH")) {
    result.variables.push_back(std::string("PYTHONPATH=") + modules);
    std::istringstream folders(modules);
    for (std::string folder; std::getline(folders, folder, ':');) {
      if (folder.starts_with('/')) result.readable.push_back(folder);
    }
  }
  return result;
}

Result<ChildOutcome> run_sandboxed(ChildCommand command, SandboxDevices devices,
                                   const SandboxAdditions& additions) {
  const Result<std::string> found = sandbox();
  command.tells_refused_calls = environment("REKERNEL_SANDBOX") == "report";
  if (!sandbox_is_refused()) command.environment = variables(found.ok());
  if (!additions.variables.empty()) {
    if (!command.environment) command.environment = own_variables();
    command.environment = with_variables(*command.environment, additions.variables);
  }
  if (!found) return run_child(command);
  Words words = wrapping(*found, devices, additions);
  append(words, command.arguments);
  command.arguments = std::move(words);
  Result<ChildOutcome> outcome = run_child(command);
  // Bubblewrap tells of a signal as shells do.
  constexpr int signal_base = 128;
  if (outcome && outcome->end == ChildOutcome::End::exited && outcome->code > signal_base) {
    outcome->end = ChildOutcome::End::signalled;
    outcome->code -= signal_base;
  }
  return outcome;
}

}  // namespace rekernel
