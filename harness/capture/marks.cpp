#include "harness/capture/marks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "harness/base/text.h"
#include "harness/base/utf8.h"

namespace rekernel {
namespace {

std::string names_of(const Problem& problem) {
  std::vector<std::string> names;
  for (const Tensor& tensor : problem.tensors) names.push_back(tensor.name);
  return joined(names);
}

Result<Ok> assign(RecordedCall& call, const Problem& problem) {
  const std::vector<RecordedTensor> marked = std::move(call.inputs);
  call.inputs.clear();
  for (const RecordedTensor& one : marked) {
    const std::string name = "\"" + one_line(one.name, 64) + "\"";
    const Tensor* tensor = problem.find_tensor(one.name);
    if (!tensor) {
      return Error{"marks " + name + ", which is no tensor of " + problem.id + "; it has " +
                   names_of(problem)};
    }
    if (one.bytes == 0) return Error{"marks " + name + " with no address of device memory"};
    if (one.bytes < tensor->bytes()) {
      return Error{"marks " + name + ", which has " + std::to_string(tensor->bytes()) +
                   " bytes, where its memory has only " + std::to_string(one.bytes)};
    }
    (tensor->role == Role::input ? call.inputs : call.outputs)
        .push_back({one.name, one.address, tensor->bytes()});
  }
  for (const Tensor& tensor : problem.tensors) {
    const bool found = std::any_of(marked.begin(), marked.end(), [&](const RecordedTensor& one) {
      return one.name == tensor.name;
    });
    if (!found) return Error{"marks no \"" + tensor.name + "\"; expected " + names_of(problem)};
  }
  return Ok{};
}

}  // namespace

Result<Ok> assign_marked(Recording& recording, const Problem& problem) {
  if (!recording.problem.empty()) return Ok{};  // why nothing was recorded says the plan maker
  if (recording.calls.empty()) {
    return Error{
        "marked no call of its work, or fewer than three (rekernel_marks.h): the first warms up, "
        "the two after it are recorded"};
  }
  for (RecordedCall& call : recording.calls) {
    if (Result<Ok> assigned = assign(call, problem); !assigned) return assigned;
  }
  return Ok{};
}

}  // namespace rekernel
