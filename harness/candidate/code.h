#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/program.h"
#include "ops/result.h"

namespace rekernel {

/// The most modules that a candidate may have.
inline constexpr std::size_t most_modules = 32;
inline constexpr std::size_t max_code_bytes = std::size_t{192} << 20;  ///< of all of them

/// The file of a module in a candidate's folder: "kernel.cu", "kernel.ptx" or "kernel.cubin", of
/// the modules after the first "kernel.1.cubin" and so on. Here alone those names are spelled out.
std::string code_file(Language language, std::size_t module = 0);

/// Every module of a program, the first one first, and a program's code made of such a list.
std::vector<Code> code_of(const Program& program);
void set_code(Program& program, std::vector<Code> modules);
/// One module as a program of its own, without a plan: what is compiled.
Program module_program(const Program& program, std::size_t module);

/// Reads the modules of a candidate folder, none of which may be a link. Exactly one language may
/// stand for each module.
Result<std::vector<Code>> load_code(const std::filesystem::path& directory);

/// What is wrong with a module's text, before anything compiles it: its size and characters, and,
/// once the plan's macros are known, its words. `where` is its file.
Result<Ok> check_size_and_text(const Code& code, const std::string& where);
Result<Ok> check_words(const Code& code, const CompileOptions& options, const std::string& where);

/// Whether a compiler may have called a kernel so: letters, digits, _, $ and ., at most
/// `max_kernel_name` of them. Mangled names of templates are long.
bool is_kernel_name(std::string_view name);
inline constexpr std::size_t max_kernel_name = 4096;

/// A program's code between our processes.
std::string code_fields(const Program& program);
Result<std::vector<Code>> code_from_fields(std::string_view bytes);

/// Whether a folder can be made there, as far as rights tell.
Result<Ok> check_can_be_made(const std::filesystem::path& folder);

/// Writes plan and code into a new folder; nothing remains if that fails.
Result<Ok> write_candidate(const std::filesystem::path& folder, const Candidate& candidate);

}  // namespace rekernel
