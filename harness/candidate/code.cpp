#include "harness/candidate/code.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

struct LanguageRow {
  Language language;
  const char* extension;
  std::size_t max_bytes;
};

/// PTX and machine code come out of compilers, which are not brief.
constexpr std::array<LanguageRow, 3> languages = {{{Language::cuda, ".cu", max_source_bytes},
                                                   {Language::ptx, ".ptx", 8u << 20},
                                                   {Language::cubin, ".cubin", 48u << 20}}};

const LanguageRow& row_of(Language language) {
  return *std::find_if(languages.begin(), languages.end(),
                       [&](const LanguageRow& row) { return row.language == language; });
}

/// A link could name any file of this machine.
Result<std::string> read_plain_file(const fs::path& path, std::size_t max_bytes) {
  std::error_code status;
  if (fs::is_symlink(fs::symlink_status(path, status))) {
    return Error{path.string() + ": a link; expected a regular file"};
  }
  return read_file(path, max_bytes);
}

/// Something of that name, a link that leads nowhere too.
bool is_there(const fs::path& path) {
  std::error_code status;
  return fs::exists(fs::symlink_status(path, status));
}

/// One module, or nothing if the folder has none of that number.
Result<std::optional<Code>> load_module(const fs::path& directory, std::size_t module) {
  std::optional<Code> code;
  std::string found;
  for (const LanguageRow& row : languages) {
    const std::string file = code_file(row.language, module);
    if (!is_there(directory / file)) continue;
    if (code) {
      return Error{directory.string() + ": has " + found + " and " + file +
                   "; expected one of them"};
    }
    Result<std::string> text = read_plain_file(directory / file, row.max_bytes);
    if (!text) return text.error();
    code = Code{row.language, *std::move(text)};
    found = file;
  }
  return code;
}

Result<Ok> check_ptx(const std::string& text, const std::string& where) {
  std::size_t line = 1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') ++line;
    if (byte > 0x7e || (byte < 0x20 && c != '\n' && c != '\t' && c != '\r')) {
      return Error{where + ": line " + std::to_string(line) + ": byte " + std::to_string(byte) +
                   "; expected ASCII text"};
    }
  }
  return Ok{};
}

}  // namespace

std::string code_file(Language language, std::size_t module) {
  return "kernel" + (module == 0 ? "" : "." + std::to_string(module)) + row_of(language).extension;
}

std::vector<Code> code_of(const Program& program) {
  std::vector<Code> modules = {{program.language, program.source}};
  modules.insert(modules.end(), program.modules.begin(), program.modules.end());
  return modules;
}

void set_code(Program& program, std::vector<Code> modules) {
  program.language = modules.front().language;
  program.source = std::move(modules.front().text);
  modules.erase(modules.begin());
  program.modules = std::move(modules);
}

Program module_program(const Program& program, std::size_t module) {
  Program one;
  one.language = module == 0 ? program.language : program.modules.at(module - 1).language;
  one.source = module == 0 ? program.source : program.modules.at(module - 1).text;
  one.compile = program.compile;
  return one;
}

Result<std::vector<Code>> load_code(const fs::path& directory) {
  std::vector<Code> modules;
  for (;;) {
    Result<std::optional<Code>> code = load_module(directory, modules.size());
    if (!code) return code.error();
    if (!*code) break;
    if (modules.size() == most_modules) {
      return Error{directory.string() + ": expected at most " + std::to_string(most_modules) +
                   " modules"};
    }
    modules.push_back(**std::move(code));
  }
  if (modules.empty()) {
    return Error{directory.string() + ": no code; expected " + code_file(Language::cuda) + ", " +
                 code_file(Language::ptx) + " or " + code_file(Language::cubin)};
  }
  return modules;
}

Result<Ok> check_size_and_text(const Code& code, const std::string& where) {
  const std::size_t max_bytes = row_of(code.language).max_bytes;
  if (code.text.size() > max_bytes) {
    return Error{where + ": larger than " + std::to_string(max_bytes) + " bytes"};
  }
  if (code.language == Language::cuda && !is_utf8(code.text)) {
    return Error{where + ": not UTF-8 text"};
  }
  // Machine code is read where it is compiled, in a process of its own.
  return code.language == Language::ptx ? check_ptx(code.text, where) : Ok{};
}

Result<Ok> check_words(const Code& code, const CompileOptions& options, const std::string& where) {
  if (code.language != Language::cuda) return Ok{};
  return check_includes(code.text, where, options.defines);
}

bool is_kernel_name(std::string_view name) {
  return !name.empty() && name.size() <= max_kernel_name &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '$' || c == '.';
         });
}

std::string code_fields(const Program& program) {
  Fields fields;
  for (const Code& code : code_of(program)) {
    fields.push_back(row_of(code.language).extension);
    fields.push_back(code.text);
  }
  return joined_fields(fields);
}

Result<std::vector<Code>> code_from_fields(std::string_view bytes) {
  const Error malformed{"the candidate's code did not arrive in whole"};
  std::optional<Fields> fields = split_fields(bytes);
  if (!fields || fields->empty() || fields->size() % 2 != 0) return malformed;
  std::vector<Code> modules;
  for (std::size_t i = 0; i < fields->size(); i += 2) {
    const auto row = std::find_if(languages.begin(), languages.end(), [&](const LanguageRow& one) {
      return one.extension == (*fields)[i];
    });
    if (row == languages.end()) return malformed;
    modules.push_back({row->language, std::move((*fields)[i + 1])});
  }
  return modules;
}

Result<Ok> check_can_be_made(const fs::path& folder) {
  std::error_code status;
  fs::path above = fs::absolute(folder, status).parent_path();
  while (above.has_relative_path() && !fs::exists(fs::symlink_status(above, status))) {
    above = above.parent_path();
  }
  if (fs::is_directory(above, status) && ::access(above.c_str(), W_OK | X_OK) == 0) return Ok{};
  return Error{above.string() + ": not a folder that can be written to"};
}

Result<Ok> write_candidate(const fs::path& folder, const Candidate& candidate) {
  std::error_code status;
  if (!fs::create_directories(folder, status) || status) {
    return Error{folder.string() + ": cannot be made" +
                 (status ? ": " + status.message() : "; it exists already")};
  }
  const std::vector<Code> modules = code_of(candidate.program);
  const auto write = [&]() -> Result<Ok> {
    for (std::size_t i = 0; i < modules.size(); ++i) {
      Result<Ok> written =
          write_file_atomically(folder / code_file(modules[i].language, i), modules[i].text);
      if (!written) return written;
    }
    return write_file_atomically(folder / "kernel.json", candidate_json(candidate));
  };
  Result<Ok> written = write();
  if (!written) fs::remove_all(folder, status);
  return written;
}

}  // namespace rekernel
