// Writes the digests of a checkout as the C++ initialiser that harness/base/harness_digest.cpp
// includes, and the files that they depend on as a depfile. A program of the build, since no other
// is there yet.
//
//   rekernel_digests CHECKOUT OUT DEPFILE

#include <iostream>
#include <string>

#include "harness/base/files.h"
#include "harness/base/judging_sources.h"

namespace rekernel {
namespace {

std::string initialiser(const std::map<std::string, std::string>& digests) {
  std::string text = "{";
  for (const auto& [id, digest] : digests) text += "{\"" + id + "\", \"" + digest + "\"},\n";
  return text + "}";
}

/// A path as a depfile has it.
std::string in_depfile(const std::string& path) {
  std::string escaped;
  for (const char character : path) escaped += character == ' ' ? "\\ " : std::string(1, character);
  return escaped;
}

Result<Ok> write_digests(const std::string& root, const std::string& out,
                         const std::string& depfile) {
  const Result<HarnessDigests> digests = harness_digests_of(root);
  if (!digests) return digests.error();
  const Result<std::vector<std::filesystem::path>> sources = judging_sources(root);
  if (!sources) return sources.error();
  const std::string text =
      "\"" + digests->judge + "\",\n" + initialiser(digests->references) + "\n";
  std::string dependencies = in_depfile(out) + ":";
  for (const std::filesystem::path& source : *sources) {
    dependencies += " " + in_depfile(source.string());
  }
  if (Result<Ok> written = write_file_atomically(depfile, dependencies + "\n"); !written) {
    return written;
  }
  // What is the same stays as old as it is, and nothing is built of it again.
  const Result<std::string> before = read_file(out);
  return before && *before == text ? Result<Ok>(Ok{}) : write_file_atomically(out, text);
}

}  // namespace
}  // namespace rekernel

int main(int argc, char** argv) {
  constexpr int words = 4;
  if (argc != words) {
    std::cerr << "usage: rekernel_digests CHECKOUT OUT DEPFILE\n";
    return 2;
  }
  const rekernel::Result<rekernel::Ok> written = rekernel::write_digests(argv[1], argv[2], argv[3]);
  if (written) return 0;
  std::cerr << written.error().message << "\n";
  return 1;
}
