#include "harness/explain/listing.h"

#include <fcntl.h>
#include <nvrtc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/candidate/known_problem.h"
#include "harness/compile/compile.h"
#include "harness/compile/compile_isolated.h"
#include "harness/gpu/library.h"
#include "harness/process/sandbox.h"
#include "harness/process/system_calls.h"
#include "harness/project/scratch_folder.h"

namespace rekernel {

namespace {

namespace fs = std::filesystem;

constexpr const char* good_word = "listing";
constexpr std::size_t longest_listing = 32u << 20;
constexpr std::int64_t memory_of_lister = std::int64_t{2} << 30;

/// What is called of NVRTC here.
struct ListingCalls {
  decltype(&::nvrtcCreateProgram) create = nullptr;
  decltype(&::nvrtcCompileProgram) compile = nullptr;
  decltype(&::nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&::nvrtcGetPTX) ptx = nullptr;
  decltype(&::nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&::nvrtcGetCUBIN) cubin = nullptr;

  bool load(const DynamicLibrary& library) {
    return library.load("nvrtcCreateProgram", create) &&
           library.load("nvrtcCompileProgram", compile) &&
           library.load("nvrtcGetPTXSize", ptx_size) && library.load("nvrtcGetPTX", ptx) &&
           library.load("nvrtcGetCUBINSize", cubin_size) && library.load("nvrtcGetCUBIN", cubin);
  }
};

std::string text_of(nvrtcProgram program, decltype(&::nvrtcGetPTXSize) size,
                    decltype(&::nvrtcGetPTX) get) {
  std::size_t bytes = 0;
  if (size(program, &bytes) != NVRTC_SUCCESS) return "";
  std::string text(bytes, '\0');
  if (get(program, text.data()) != NVRTC_SUCCESS) return "";
  return text;
}

/// Of fields: the header problem.h, the source, then NVRTC's options. In the child.
Result<Listing> listing_of(const Fields& request) {
  // It finds what NVRTC itself opens, and takes options out of the environment.
  const Result<Compiler> compiler = Compiler::load();
  if (!compiler) return compiler.error();
  const Result<DynamicLibrary> library = DynamicLibrary::open({"libnvrtc.so.13", "libnvrtc.so.12"});
  ListingCalls nvrtc;
  if (!library) return library.error();
  if (!nvrtc.load(*library)) return Error{library->path() + " is too old"};
  const char* header_text = request[0].c_str();
  const char* header_name = "problem.h";
  const std::string name = code_file(Language::cuda);
  std::vector<const char*> options;
  for (std::size_t i = 2; i < request.size(); ++i) options.push_back(request[i].c_str());
  // The child ends with this: nothing has to be given back.
  nvrtcProgram program = nullptr;
  if (nvrtc.create(&program, request[1].c_str(), name.c_str(), 1, &header_text, &header_name) !=
          NVRTC_SUCCESS ||
      nvrtc.compile(program, static_cast<int>(options.size()), options.data()) != NVRTC_SUCCESS) {
    return Error{"does not compile; `rekernel explain` without --ptx and --sass tells the error"};
  }
  Listing listing;
  listing.ptx = text_of(program, nvrtc.ptx_size, nvrtc.ptx);
  listing.ptx.resize(std::min(listing.ptx.find('\0'), listing.ptx.size()));
  listing.cubin = text_of(program, nvrtc.cubin_size, nvrtc.cubin);
  return listing;
}

Fields listing_request(const Candidate& candidate, const Problem& problem,
                       const std::string& target) {
  Fields request = {problem_header(problem), candidate.program.source,
                    "--gpu-architecture=" + target, "--generate-line-info"};
  for (std::string& option : source_options(candidate.program.compile)) {
    request.push_back(std::move(option));
  }
  for (const std::string& folder : cuda_include_directories()) {
    request.push_back("--include-path=" + folder);
  }
  return request;
}

/// The limits of a compile-worker.
ChildCommand isolated_command() {
  ChildCommand command;
  command.deadline = compile_deadline;
  command.limits.processor_time = compile_deadline / 3;
  command.limits.address_space_bytes = memory_of_lister;
  return command;
}

/// nvdisasm on PATH, or in the toolkit; empty where there is none.
std::string find_disassembler() {
  std::vector<std::string> folders;
  const char* path = std::getenv("PATH");
  std::istringstream words(path ? path : "");
  for (std::string folder; std::getline(words, folder, ':');) folders.push_back(folder);
  if (const char* home = std::getenv("CUDA_HOME")) folders.push_back(std::string(home) + "/bin");
  folders.emplace_back("/usr/local/cuda/bin");
  std::error_code ignored;
  for (const std::string& folder : folders) {
    const fs::path program = fs::path(folder) / "nvdisasm";
    if (!folder.empty() && fs::exists(program, ignored)) return program.string();
  }
  return "";
}

}  // namespace

Result<Listing> make_listing(const Candidate& candidate, const std::string& target) {
  if (candidate.program.language != Language::cuda) {
    return Error{"the code is " + code_file(candidate.program.language) +
                 ", which is not compiled; expected " + code_file(Language::cuda)};
  }
  const Result<const Problem*> problem = known_problem(candidate.problem);
  if (!problem) return problem.error();
  ChildCommand command = isolated_command();
  command.arguments = {own_executable(), "listing-worker"};
  command.input = joined_fields(listing_request(candidate, **problem, target));
  const Result<ChildOutcome> child = run_sandboxed(command, SandboxDevices::none);
  if (!child) return child.error();
  const std::optional<Fields> answer = split_fields(child->result);
  if (!answer || answer->size() < 2) {
    return Error{"the compiler ended without an answer" +
                 (child->last_words.empty() ? "" : ": " + child->last_words)};
  }
  if ((*answer)[0] != good_word || answer->size() != 3) {
    return Error{visible_lines((*answer)[1], 4096)};
  }
  return Listing{visible_lines((*answer)[1], longest_listing), (*answer)[2]};
}

std::string with_source_lines(const std::string& ptx, const std::string& source) {
  std::vector<std::string> lines;
  std::istringstream texts(source);
  for (std::string line; std::getline(texts, line);) lines.push_back(line);
  // `.file 1 "kernel.cu"` gives the source its number.
  std::string number;
  std::istringstream search(ptx);
  for (std::string line; std::getline(search, line);) {
    std::istringstream words(line);
    std::string directive, file, name;
    if (words >> directive >> file >> name && directive == ".file" &&
        name.find(code_file(Language::cuda)) != std::string::npos) {
      number = file;
    }
  }
  std::string listing;
  std::istringstream input(ptx);
  for (std::string line; std::getline(input, line);) {
    std::istringstream words(line);
    std::string directive, file;
    std::size_t at = 0;
    const bool places = words >> directive >> file >> at && directive == ".loc" && file == number;
    if (places && at >= 1 && at <= lines.size()) {
      listing += "// " + code_file(Language::cuda) + ":" + std::to_string(at) + ": " +
                 lines[at - 1] + "\n";
    } else {
      listing += line + "\n";
    }
  }
  return listing;
}

Result<std::string> disassembled(const Listing& listing) {
  const std::string program = find_disassembler();
  if (program.empty()) {
    return Error{
        "--sass: nvdisasm is not on PATH, in $CUDA_HOME/bin or in /usr/local/cuda/bin; it "
        "comes with the CUDA toolkit"};
  }
  Result<ScratchFolder> folder = ScratchFolder::make("listing");
  if (!folder) return folder.error();
  const fs::path cubin = folder->path() / "kernel.cubin";
  if (Result<Ok> written = write_file_atomically(cubin, listing.cubin); !written) {
    return written.error();
  }
  // It reads what was made of a stranger's source: as isolated as the compiler. A child answers on
  // its result pipe.
  ChildCommand command = isolated_command();
  const std::string result = std::to_string(result_descriptor);
  command.arguments = {"/bin/sh", "-c", "exec \"$0\" --print-line-info \"$1\" >&" + result, program,
                       cubin.string()};
  SandboxAdditions additions;
  additions.readable = {fs::path(program).parent_path().string()};
  // Seen wherever it lies; nothing can be written there, by the limit on files.
  additions.writable = {folder->path().string()};
  const Result<ChildOutcome> outcome = run_sandboxed(command, SandboxDevices::none, additions);
  if (!outcome) return outcome.error();
  if (outcome->end != ChildOutcome::End::exited || outcome->code != 0) {
    return Error{program + " failed" +
                 (outcome->last_words.empty() ? "" : ": " + outcome->last_words)};
  }
  return visible_lines(outcome->result, longest_listing);
}

int run_listing_worker() {
  constexpr int no_answer = 2;
  if (::fcntl(result_descriptor, F_SETFD, FD_CLOEXEC) != 0) return no_answer;  // started by hand
  if (!sandbox_is_refused()) (void)lock_down().ok();
  const std::optional<Fields> request = split_fields(read_all(STDIN_FILENO));
  if (!request || request->size() < 3) return no_answer;
  const Result<Listing> listing = listing_of(*request);
  const Fields answer = listing ? Fields{good_word, listing->ptx, listing->cubin}
                                : Fields{"failure", listing.error().message};
  // NVRTC's own destructors need not run.
  ::_exit(write_all(result_descriptor, joined_fields(answer)) ? 0 : no_answer);
}

}  // namespace rekernel
