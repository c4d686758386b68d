#include "harness/dataset/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "harness/base/file_descriptor.h"
#include "harness/base/files.h"

namespace rekernel {

namespace fs = std::filesystem;

Result<Ok> append_line(const fs::path& path, std::string_view line) {
  std::error_code status;
  fs::create_directories(path.parent_path(), status);
  if (status) return Error{path.parent_path().string() + ": " + status.message()};
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.is_open()) return system_error(path, "cannot be opened");
  off_t end = ::lseek(file.get(), 0, SEEK_END);
  char last = '\n';
  while (end > 0 && ::pread(file.get(), &last, 1, end - 1) == 1 && last != '\n') --end;
  if (::ftruncate(file.get(), end) != 0 || ::lseek(file.get(), end, SEEK_SET) != end ||
      !write_all(file.get(), std::string(line) + "\n") || ::fsync(file.get()) != 0) {
    const Error error = system_error(path, "cannot be written");
    (void)::ftruncate(file.get(), end);
    return error;
  }
  return Ok{};
}

}  // namespace rekernel
