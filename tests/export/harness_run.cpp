// harness_run CANDIDATE_DIR SEED FOLDER [PROBLEM_FILE]: the harness runs a candidate once on the
// inputs of a seed, and every tensor of the problem is written to FOLDER/NAME.bin: what an export
// must reproduce bit for bit. Then it prints its median time in milliseconds, measured as an
// export's test does it: in one context, with new inputs and a cold L2 cache, everything issued
// while the GPU is still busy with the cache.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/candidate/candidate.h"
#include "harness/device/buffers.h"
#include "harness/device/device_tools.h"
#include "harness/device/launch.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

template <class T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return *std::move(result);
}

void write_tensor(const std::filesystem::path& folder, const std::string& name,
                  const BufferView& view) {
  std::string bytes(static_cast<std::size_t>(view.bytes), '\0');
  REKERNEL_CUDA(cuMemcpyDtoH(bytes.data(), view.pointer, bytes.size()));
  value_or_throw(write_file_atomically(folder / (name + ".bin"), bytes));
}

std::int64_t median_ns(const InputBuffers& inputs, Runnable& runnable, const Stream& stream,
                       const DeviceProperties& device) {
  constexpr int warm_up = 5;
  constexpr int samples = 50;
  constexpr int flushes = 24;
  const DeviceBuffer cache_filler(2 * device.l2_bytes + (1 << 20));
  std::vector<std::int64_t> times;
  for (int i = 0; i < warm_up + samples; ++i) {
    inputs.fill(static_cast<std::uint64_t>(i), nullptr, stream);
    for (int flush = 0; flush < flushes; ++flush) {
      REKERNEL_CUDA(cuMemsetD8Async(cache_filler.get(), static_cast<unsigned char>(i),
                                    static_cast<std::size_t>(cache_filler.bytes()), stream.get()));
    }
    const Event begin;
    const Event end;
    begin.record(stream);
    runnable.enqueue(stream.get());
    end.record(stream);
    const std::int64_t time = elapsed_ns(begin, end);
    if (i >= warm_up) times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void run(const std::filesystem::path& directory, std::uint64_t seed,
         const std::filesystem::path& folder) {
  const Candidate candidate = value_or_throw(load_candidate(directory));
  const Problem& problem = *find_problem(candidate.problem);
  const Device device = value_or_throw(Device::open());
  const DeviceProperties& properties = device.properties();
  const std::string target = Compiler::target_for_device(properties.major, properties.minor);
  const Compiler compiler = value_or_throw(Compiler::load());
  const Stream stream;
  const DeviceTools tools(value_or_throw(compiler.compile(device_tools_program(), "", target)),
                          properties);
  InputBuffers inputs(problem, tools, Surroundings::nothing);
  const SubjectBuffers subject(problem, candidate.program.workspaces, Surroundings::nothing);
  inputs.fill(seed, nullptr, stream);
  subject.poison(poison_byte, stream);
  Bindings bindings = inputs.bindings();
  bindings.insert(subject.bindings().begin(), subject.bindings().end());
  const CompiledProgram compiled =
      value_or_throw(compiler.compile(candidate.program, problem_header(problem), target));
  const auto runnable =
      value_or_throw(make_runnable(candidate.program, compiled, bindings, properties));
  runnable->enqueue(stream.get());
  stream.synchronize();
  std::filesystem::create_directories(folder);
  for (const Tensor& tensor : problem.tensors) {
    write_tensor(folder, tensor.name, bindings.at(tensor.name));
  }
  std::cout << static_cast<double>(median_ns(inputs, *runnable, stream, properties)) / 1e6 << "\n";
}

}  // namespace
}  // namespace rekernel

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: harness_run CANDIDATE_DIR SEED FOLDER [PROBLEM_FILE]\n";
    return 2;
  }
  try {
    if (argc == 5) rekernel::value_or_throw(rekernel::add_problems(argv[4]));
    rekernel::run(argv[1], std::stoull(argv[2]), argv[3]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
