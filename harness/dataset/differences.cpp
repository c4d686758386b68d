#include "harness/dataset/differences.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string_view>

#include "harness/process/tool.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t pairs_at_a_time = 200;
constexpr std::chrono::minutes longest_comparison{10};
constexpr int exit_different = 1;  ///< of diff; 2 is trouble

Result<Ok> write_text(const fs::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return Error{path.string() + ": cannot be written"};
  return Ok{};
}

/// The number in "diff -r … a/17 b/17".
std::size_t number_in(std::string_view heading) {
  std::size_t number = 0;
  const std::size_t slash = heading.rfind('/');
  std::from_chars(heading.data() + slash + 1, heading.data() + heading.size(), number);
  return number;
}

/// What diff -r prints, pair by pair: a heading, two lines with names, then the difference. No line
/// of a difference begins as a heading does.
void split(std::string_view output, std::span<const TextPair> pairs,
           std::vector<std::string>& differences) {
  constexpr std::string_view heading = "diff -r";
  std::string* current = nullptr;
  std::size_t names_left = 0;
  while (!output.empty()) {
    const std::size_t end = std::min(output.find('\n'), output.size() - 1);
    const std::string_view line = output.substr(0, end + 1);
    output.remove_prefix(end + 1);
    if (line.starts_with(heading)) {
      const std::size_t number = number_in(line);
      if (number >= pairs.size()) continue;
      current = &differences[differences.size() - pairs.size() + number];
      *current = "--- " + pairs[number].before.label + "\n+++ " + pairs[number].after.label + "\n";
      names_left = 2;
    } else if (names_left > 0) {
      --names_left;
    } else if (current) {
      *current += line;
    }
  }
}

}  // namespace

/// a/0 and b/0 for the first pair, and so on; what an earlier call had more is gone.
Result<Ok> TextComparer::write(std::span<const TextPair> pairs) {
  std::error_code status;
  if (!scratch_) {
    Result<ScratchFolder> made = ScratchFolder::make("differences");
    if (!made) return made.error();
    scratch_.emplace(std::move(*made));
    for (const char* side : {"a", "b"}) fs::create_directory(scratch_->path() / side, status);
  }
  for (std::size_t i = 0; i < std::max(pairs.size(), files_); ++i) {
    for (const char* side : {"a", "b"}) {
      const fs::path path = scratch_->path() / side / std::to_string(i);
      if (i >= pairs.size()) {
        fs::remove(path, status);
        continue;
      }
      const std::string_view text = side[0] == 'a' ? pairs[i].before.text : pairs[i].after.text;
      if (Result<Ok> written = write_text(path, text); !written) return written;
    }
  }
  files_ = pairs.size();
  return Ok{};
}

Result<Ok> TextComparer::compare(std::span<const TextPair> pairs,
                                 std::vector<std::string>& differences) {
  if (Result<Ok> written = write(pairs); !written) return written;
  ToolCommand tool;
  tool.arguments = {"/bin/sh", "-c", "cd \"$1\" && LC_ALL=C exec diff -r -u --text a b", "sh",
                    scratch_->path().string()};
  tool.deadline = longest_comparison;
  const Result<ToolOutcome> outcome = run_tool(tool);
  if (!outcome) return Error{"diff: " + outcome.error().message};
  if (outcome->exit_status == no_such_program) {
    return Error{"diff is not there: install it (Debian and Ubuntu: the package diffutils)"};
  }
  if (!outcome->good() && outcome->exit_status != exit_different) {
    return Error{"diff failed: " + outcome->last_words};
  }
  differences.resize(differences.size() + pairs.size());
  split(outcome->output, pairs, differences);
  return Ok{};
}

Result<std::vector<std::string>> TextComparer::differences(std::span<const TextPair> pairs) {
  std::vector<std::string> found;
  while (!pairs.empty()) {
    const std::size_t count = std::min(pairs.size(), pairs_at_a_time);
    if (Result<Ok> compared = compare(pairs.first(count), found); !compared) {
      return compared.error();
    }
    pairs = pairs.subspan(count);
  }
  return found;
}

}  // namespace rekernel
