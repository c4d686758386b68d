// Runs targets over their saved corpus, without a fuzzer: corpus_main FOLDER [TARGET...]. The file
// that is being read is named first, so that the last name printed is the one that crashed.

#include <filesystem>
#include <iostream>
#include <vector>

#include "harness/base/files.h"
#include "targets.h"

namespace {

namespace fs = std::filesystem;
using rekernel::fuzz::Target;

/// The number of files, or −1 if the corpus cannot be read.
int run_corpus(const Target& target, const fs::path& folder) {
  int count = 0;
  std::error_code status;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, status)) {
    std::cout << entry.path().string() << std::endl;
    const rekernel::Result<std::string> bytes = rekernel::read_file(entry.path());
    if (!bytes) {
      std::cerr << bytes.error().message << "\n";
      return -1;
    }
    target.run(*bytes);
    ++count;
  }
  // A corpus that nobody finds would pass every test.
  if (count == 0) {
    std::cerr << folder.string() << ": no corpus; expected at least one file\n";
    return -1;
  }
  return count;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::cerr << "usage: " << arguments[0] << " CORPUS TARGET...\n";
    return 2;
  }
  for (int i = 2; i < count; ++i) {
    const Target* target = rekernel::fuzz::find_target(arguments[i]);
    if (!target) {
      std::cerr << "unknown target " << arguments[i] << "\n";
      return 2;
    }
    const int files = run_corpus(*target, fs::path(arguments[1]) / arguments[i]);
    if (files < 0) return 1;
    std::cout << target->name << ": " << files << " files" << std::endl;
  }
}
