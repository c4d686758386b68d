#include "harness/profile/source_lines.h"

#include <charconv>
#include <map>
#include <sstream>

namespace rekernel {

namespace {

struct Instruction {
  std::string operation;  ///< "LDG.E.128"
  int line = 0;
};

/// The first word but a predicate ("@!P0"): "LDG.E.128".
std::string operation_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string word;
  while (words >> word) {
    if (!word.starts_with('@')) return word.substr(0, word.find(';'));
  }
  return "";
}

/// "	//## File "cuda_fp16.hpp", line 700 inlined at "kernel.cu", line 12": 12, that of the
/// outermost call; 0 where the source is not named.
int line_in(std::string_view text) {
  constexpr std::string_view before = "kernel.cu\", line ";
  const std::size_t at = text.rfind(before);
  int line = 0;
  if (at == std::string_view::npos) return 0;
  const char* first = text.data() + at + before.size();
  std::from_chars(first, text.data() + text.size(), line);
  return line;
}

/// Of "        /*0010*/                   MOV R1, R2 ;": the offset, and what follows it.
bool is_instruction(std::string_view text, std::uint64_t& offset, std::string_view& rest) {
  const std::size_t open = text.find_first_not_of(" \t");
  if (open == std::string_view::npos || !text.substr(open).starts_with("/*")) return false;
  const char* first = text.data() + open + 2;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), offset, 16);
  const std::string_view after = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || !after.starts_with("*/")) return false;
  rest = after.substr(2);
  return true;
}

/// A kernel's instructions by offset. Where code was inlined, the line is the last that is named
/// before the instruction and lies in the source: that of the call.
std::map<std::uint64_t, Instruction> instructions_of(std::string_view disassembly,
                                                     std::string_view kernel) {
  std::map<std::uint64_t, Instruction> found;
  const std::string label = ".text." + std::string(kernel) + ":";
  bool inside = false;
  int line = 0;
  std::istringstream lines{std::string(disassembly)};
  for (std::string text; std::getline(lines, text);) {
    if (text.starts_with(".text.")) {
      inside = text.starts_with(label);
      line = 0;
    }
    if (!inside) continue;
    if (text.find("//##") != std::string::npos) {
      if (const int named = line_in(text); named > 0) line = named;
      continue;
    }
    std::uint64_t offset = 0;
    std::string_view rest;
    if (is_instruction(text, offset, rest)) found[offset] = {operation_of(rest), line};
  }
  return found;
}

}  // namespace

void add_lines(std::vector<SampledInstruction>& instructions, std::string_view disassembly,
               std::string_view kernel) {
  const auto known = instructions_of(disassembly, kernel);
  for (SampledInstruction& one : instructions) {
    const auto same = known.find(one.offset);
    if (same == known.end() || same->second.operation != operation_of(one.text)) continue;
    one.line = same->second.line;
  }
}

void add_source(std::vector<HotInstruction>& hottest, std::string_view source) {
  std::vector<std::string> lines;
  std::istringstream texts{std::string(source)};
  for (std::string line; std::getline(texts, line);) lines.push_back(line);
  for (HotInstruction& hot : hottest) {
    if (hot.line < 1 || static_cast<std::size_t>(hot.line) > lines.size()) {
      hot.line = 0;
      continue;
    }
    const std::string& line = lines[static_cast<std::size_t>(hot.line) - 1];
    hot.source = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  }
}

}  // namespace rekernel
