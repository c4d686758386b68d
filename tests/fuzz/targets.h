#pragma once

#include <span>
#include <string_view>

namespace rekernel::fuzz {

/// Readers of bytes that strangers hand in. Each takes any bytes at all, and ends the program where
/// a property does not hold.
void fuzz_bench(std::string_view bytes);            ///< results/<gpu>/bench.json
void fuzz_chat_completion(std::string_view bytes);  ///< what an endpoint answers
void fuzz_cubin(std::string_view bytes);            ///< what the compiler, or its cache, gives
void fuzz_definition(std::string_view bytes);       ///< a problem's file, and a statement alone
void fuzz_evaluation(std::string_view bytes);       ///< what an evaluating child process writes
void fuzz_json(std::string_view bytes);             ///< any JSON, any text
void fuzz_plan(std::string_view bytes);             ///< kernel.json
void fuzz_recording(std::string_view bytes);        ///< what the recorder wrote of a program
void fuzz_reply(std::string_view bytes);            ///< a model's reply, ideas or a kernel
void fuzz_search(std::string_view bytes);           ///< replies of a whole search
void fuzz_search_file(std::string_view bytes);      ///< search --settings
void fuzz_source(std::string_view bytes);           ///< kernel.cu
void fuzz_ncu(std::string_view bytes);              ///< what Nsight Compute prints
void fuzz_squeue(std::string_view bytes);           ///< what Slurm says of jobs
void fuzz_trajectory(std::string_view bytes);       ///< trajectories/<name>.jsonl

struct Target {
  std::string_view name;  ///< of its folder in corpus/
  void (*run)(std::string_view bytes);
};

std::span<const Target> targets();

/// The target with this name, or nullptr.
const Target* find_target(std::string_view name);

}  // namespace rekernel::fuzz
