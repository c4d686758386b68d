#include "reference/agreement.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"

namespace rekernel {

namespace json = boost::json;

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* shared_script =
#include "expression_source.inc"
    ;
constexpr const char* own_script =
#include "agreement_source.inc"
    ;

constexpr std::int64_t alignment = 256;
constexpr std::size_t longest_answer = 1 << 20;
constexpr std::int64_t elements_a_tie = 1000;
constexpr std::chrono::hours lifetime{4};

const char* to_string(Comparison comparison) {
  switch (comparison) {
    case Comparison::close:
      return "close";
    case Comparison::equal:
      return "equal";
    case Comparison::extreme:
      return "extreme";
  }
  return "";
}

json::object question(const Problem& problem, const ValuesInMemory& values) {
  json::array tensors;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const Tensor& tensor = problem.tensors[i];
    tensors.push_back({{"name", tensor.name},
                       {"shape", json::value_from(tensor.shape)},
                       {"dtype", to_string(tensor.dtype)},
                       {"role", tensor.role == Role::input ? "input" : "output"},
                       {"comparison", to_string(tensor.comparison)},
                       {"stored", to_string(values.tensors[i].stored)},
                       {"at", values.tensors[i].at}});
  }
  json::object attributes;
  for (const Attribute& attribute : problem.attributes) {
    std::visit([&](auto value) { attributes[attribute.name] = value; }, attribute.value);
  }
  return {{"function", problem.pytorch},
          {"attributes", std::move(attributes)},
          {"bytes", values.bytes},
          {"tensors", std::move(tensors)}};
}

/// A number as Python writes it, "inf" and "nan" too. What is no number is as bad as none.
double python_number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? std::nan("") : value;
}

Result<std::vector<Agreement>> read_answer(const Problem& problem, const std::string& line) {
  const Result<json::value> answer = parse_json(line, "PyTorch's answer");
  if (!answer) return answer.error();
  JsonReader reader("PyTorch's answer", *answer);
  if (auto error = reader.optional("error")) {
    const std::string why = error->string();
    return reader.error() ? *reader.error() : Error{why};
  }
  const std::vector<const Tensor*> outputs = problem.outputs();
  std::vector<Agreement> agreements;
  for (JsonReader& one : reader.required("outputs").array(outputs.size(), outputs.size())) {
    const Tensor& output = *outputs[agreements.size()];
    Agreement agreement;
    agreement.output = output.name;
    agreement.comparison = output.comparison;
    agreement.largest = python_number(one.required("largest").string());
    agreement.unequal = one.required("unequal").integer(0, output.elements());
    agreement.elements = output.elements();
    agreements.push_back(std::move(agreement));
  }
  if (auto error = reader.error()) return *error;
  return agreements;
}

/// What PyTorch's process sees and writes: a GPU or none, its libraries, no file of its own.
SandboxAdditions additions(AgreementProcess::Place place, int device) {
  SandboxAdditions result = python_additions();
  if (place == AgreementProcess::Place::cpu) {
    result.variables.push_back("CUDA_VISIBLE_DEVICES=");
  } else if (!std::getenv("CUDA_VISIBLE_DEVICES")) {
    result.variables.push_back("CUDA_VISIBLE_DEVICES=" + std::to_string(device));
  }
  return result;
}

Error system_failure(const char* what) {
  return {std::string("PyTorch: ") + what + ": " + std::strerror(errno)};
}

}  // namespace

bool Agreement::agrees() const {
  if (comparison == Comparison::close) return largest <= most;
  return unequal <= (comparison == Comparison::extreme ? elements / elements_a_tie : 0);
}

std::string to_text(const Agreement& agreement) {
  if (agreement.comparison == Comparison::close) {
    return agreement.output + ": " + printed("%.2g", agreement.largest) + " of the rms";
  }
  return agreement.output + ": " + std::to_string(agreement.unequal) + " of " +
         std::to_string(agreement.elements) + " differ";
}

json::object to_json(const Agreement& agreement) {
  if (agreement.comparison != Comparison::close) {
    return {{"output", agreement.output},
            {"unequal", agreement.unequal},
            {"elements", agreement.elements}};
  }
  return {{"output", agreement.output}, {"largest", printed("%.2g", agreement.largest)}};
}

ValuesInMemory values_in_memory(const Problem& problem, StoredInputs inputs) {
  ValuesInMemory values;
  for (const Tensor& tensor : problem.tensors) {
    const bool own = tensor.role == Role::input && inputs == StoredInputs::own_types;
    const DType stored = own ? tensor.dtype : DType::f64;
    const std::int64_t bytes = tensor.elements() * size_in_bytes(stored);
    values.tensors.push_back({stored, values.bytes, bytes});
    values.bytes += (bytes + alignment - 1) / alignment * alignment;
  }
  return values;
}

Result<std::unique_ptr<AgreementProcess>> AgreementProcess::start(Place place, int device) {
  FileDescriptor memory(::memfd_create("rekernel-values", MFD_CLOEXEC));
  if (!memory.is_open()) return system_failure("memfd");
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_failure("socketpair");
  }
  FileDescriptor ours(ends[0]), theirs(ends[1]);
  Result<SandboxedPython> python = SandboxedPython::start(
      {.script = std::string(shared_script) + own_script,
       .arguments = {std::to_string(first_inherited_descriptor),
                     std::to_string(first_inherited_descriptor + 1),
                     place == Place::gpu ? "cuda" : "cpu"},
       .descriptors = {theirs.release(), ::fcntl(memory.get(), F_DUPFD_CLOEXEC, 0)},
       .file_bytes = std::int64_t{1} << 30,
       .lifetime = lifetime,
       .devices = place == Place::gpu ? SandboxDevices::gpu : SandboxDevices::none,
       .additions = additions(place, device)});
  if (!python) return Error{"PyTorch: " + python.error().message};
  return std::unique_ptr<AgreementProcess>(
      new AgreementProcess(std::move(ours), std::move(memory), std::move(*python)));
}

AgreementProcess::~AgreementProcess() { unmap(); }

void AgreementProcess::unmap() {
  if (!mapped_.empty()) ::munmap(mapped_.data(), mapped_.size());
  mapped_ = {};
}

Result<std::span<std::byte>> AgreementProcess::memory(std::int64_t bytes) {
  unmap();
  // What the last problem had is given back before more is taken.
  if (::ftruncate(memory_.get(), 0) != 0 || ::ftruncate(memory_.get(), bytes) != 0) {
    return system_failure("memory that is shared");
  }
  const auto size = static_cast<std::size_t>(bytes);
  void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (at == MAP_FAILED) return system_failure("memory that is shared");
  mapped_ = {static_cast<std::byte*>(at), size};
  return mapped_;
}

Result<std::vector<Agreement>> AgreementProcess::compare(const Problem& problem,
                                                         const ValuesInMemory& values,
                                                         std::chrono::seconds deadline) {
  const Result<std::string> line = ask(json::serialize(question(problem, values)) + "\n", deadline);
  if (!line) return line.error();
  return read_answer(problem, *line);
}

Result<std::string> AgreementProcess::ask(const std::string& line, std::chrono::seconds deadline) {
  const Clock::time_point end = Clock::now() + deadline;
  if (!socket_.is_open()) return Error{"PyTorch: its process has ended"};
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      return ended();
    }
  }
  std::string answer;
  while (!answer.ends_with('\n')) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd state{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&state, 1, static_cast<int>(std::max<long long>(left.count(), 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 || answer.size() > longest_answer) {
      socket_.close();
      return Error{ready == 0 ? "PyTorch: no answer within the deadline"
                              : "PyTorch: an answer of over a megabyte"};
    }
    char chunk[4096];
    const ssize_t count = ::recv(socket_.get(), chunk, sizeof chunk, 0);
    if (count > 0) {
      answer.append(chunk, static_cast<std::size_t>(count));
    } else if (count == 0 || errno != EINTR) {
      return ended();
    }
  }
  return answer;
}

/// Why it ended, from its last words.
Error AgreementProcess::ended() {
  socket_.close();
  const Result<ChildOutcome> outcome = python_.outcome();
  if (!outcome) return {"PyTorch: " + outcome.error().message};
  const bool killed = outcome->end == ChildOutcome::End::signalled;
  const std::string how = killed ? "ended by signal " + std::to_string(outcome->code)
                                 : "python3 ended with status " + std::to_string(outcome->code);
  return {"PyTorch: " + how +
          (outcome->last_words.empty() ? "" : " (" + outcome->last_words + ")")};
}

Result<std::vector<Agreement>> pytorch_agreement(AgreementProcess& process, const Problem& problem,
                                                 const HostInputs& inputs, const HostInputs& truth,
                                                 std::chrono::seconds deadline) {
  const ValuesInMemory values = values_in_memory(problem, StoredInputs::float64);
  const Result<std::span<std::byte>> memory = process.memory(values.bytes);
  if (!memory) return memory.error();
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const Tensor& tensor = problem.tensors[i];
    const std::vector<double>& from = (tensor.role == Role::input ? inputs : truth).at(tensor.name);
    std::memcpy(memory->data() + values.tensors[i].at, from.data(), from.size() * sizeof(double));
  }
  return process.compare(problem, values, deadline);
}

}  // namespace rekernel
