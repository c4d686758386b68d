#include "harness/evaluation/truth.h"

#include <boost/json.hpp>
#include <chrono>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/evaluation/setup_failure.h"

namespace rekernel {

namespace json = boost::json;

namespace {

/// PyTorch is imported and the model built, or one truth computed: less than an evaluation's own
/// deadlines, past which the candidate would be called late.
constexpr std::chrono::seconds longest_answer{45};
constexpr std::size_t longest_complaint = 600;

/// Where the process finds one buffer: in the allocation that is handed over at the same place.
json::object described(const Tensor& tensor, const char* role, const GuardedBuffer& buffer) {
  return {{"name", tensor.name},
          {"role", role},
          {"dtype", to_string(tensor.dtype)},
          {"shape", json::value_from(tensor.shape)},
          {"allocation", buffer.allocation().bytes()},
          {"offset", buffer.offset()}};
}

}  // namespace

void DefinitionTruth::compute(const Stream& stream) {
  oracle_.enqueue(stream);
  stream.synchronize();
}

ProgramTruth::ProgramTruth(const Problem& problem, const InputBuffers& inputs,
                           const Buffers& truths, Channel& channel)
    : problem_(problem.id), channel_(channel) {
  json::array tensors;
  std::vector<FileDescriptor> lent;
  std::vector<int> descriptors;
  const auto lend = [&](const Tensor& tensor, const char* role, const GuardedBuffer& buffer) {
    tensors.push_back(described(tensor, role, buffer));
    lent.push_back(buffer.allocation().lend());
    descriptors.push_back(lent.back().get());
  };
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.role == Role::input) {
      lend(tensor, "input", inputs.all().at(tensor.name));
    } else {
      lend(tensor, "output", truths.all().at(truth_buffer(tensor.name)));
    }
  }
  for (const auto& [name, buffer] : inputs.drawn().all()) {
    lend(*problem.find_tensor(name), "drawn", buffer);
  }
  ask({"problem", problem.program->json, json::serialize(tensors)}, descriptors);
}

void ProgramTruth::compute(const Stream& stream) {
  stream.synchronize();  // the inputs are there
  const Fields answer = ask({"compute"}, {});
  has_nan_ = answer.size() == 2 && answer[1] == "nan";
}

void ProgramTruth::draw(std::uint64_t seed) { ask({"draw", std::to_string(seed)}, {}); }

Fields ProgramTruth::ask(const Fields& question, std::span<const int> descriptors) {
  const auto failed = [&](const std::string& why) {
    channel_ = Channel();
    return SetupFailure("the program of '" + problem_ +
                        "' gives no truth: " + one_line(why, longest_complaint));
  };
  if (!channel_.is_open()) throw failed("its process has ended");
  // A process that is gone shows when its answer is read.
  (void)channel_.send(question, descriptors).ok();
  const Result<Message> answer = channel_.receive(Channel::Clock::now() + longest_answer);
  if (!answer) throw failed(answer.error().message);
  if (answer->fields.empty() || answer->fields[0] != "ok") {
    throw failed(answer->fields.empty() ? "an empty answer" : answer->fields.back());
  }
  return answer->fields;
}

}  // namespace rekernel
