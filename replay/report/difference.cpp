#include "replay/report/difference.h"

#include <sys/mman.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>

#include "harness/base/file_descriptor.h"
#include "harness/base/files.h"
#include "harness/process/isolate.h"

namespace rekernel {

namespace {

constexpr std::chrono::seconds deadline{60};
constexpr int exit_not_found = 127;  ///< of the shell and of env
constexpr int exit_trouble = 2;      ///< of diff: 0 is equal, 1 is different

/// Waits in memory for a child that wants to open it as a file.
Result<FileDescriptor> file_in_memory(std::string_view content) {
  FileDescriptor file(::memfd_create("rekernel-difference", MFD_CLOEXEC));
  if (!file.is_open()) return Error{std::string("diff: memfd: ") + std::strerror(errno)};
  if (!write_all(file.get(), content)) {
    return Error{std::string("diff: memfd: ") + std::strerror(errno)};
  }
  return file;
}

}  // namespace

Result<std::string> unified_difference(const LabelledText& before, const LabelledText& after) {
  Result<FileDescriptor> second = file_in_memory(after.text);
  if (!second) return second.error();
  ChildCommand command;
  // "0:" is the empty message with which a child reports its start. The locale keeps diff's own
  // words the same everywhere.
  command.arguments = {"/bin/sh",
                       "-c",
                       "exec env LC_ALL=C diff -u --text "
                       "--label \"$1\" --label \"$2\" - /dev/fd/4 >&3",
                       "sh",
                       before.label,
                       after.label};
  command.input = before.text;
  command.inherited = {second->release()};
  command.deadline = deadline;
  const Result<ChildOutcome> outcome = run_child(command);
  if (!outcome) return Error{"diff: " + outcome.error().message};
  const bool ended = outcome->end == ChildOutcome::End::exited;
  if (ended && outcome->code == exit_not_found) {
    return Error{"diff is not installed (Debian and Ubuntu: the package diffutils)"};
  }
  if (!ended || outcome->code >= exit_trouble) {
    return Error{"diff failed: " +
                 (outcome->last_words.empty() ? "it did not finish" : outcome->last_words)};
  }
  return outcome->result;
}

}  // namespace rekernel
