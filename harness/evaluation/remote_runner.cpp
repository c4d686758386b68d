#include "harness/evaluation/remote_runner.h"

#include <boost/json.hpp>
#include <charconv>

#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/compile/compile_isolated.h"
#include "harness/problems/catalog.h"
#include "harness/problems/sizes.h"

namespace rekernel {

namespace {

/// A message from a process whose memory a candidate may have reached: anything may be in it.
std::optional<std::int64_t> number(const std::string& field) {
  std::int64_t value = 0;
  const char* end = field.data() + field.size();
  const auto [at, code] = std::from_chars(field.data(), end, value);
  if (code != std::errc() || at != end) return std::nullopt;
  return value;
}

constexpr std::size_t longest_text = 4096;

/// Whether the driver refused to start the work, as against the work failing on the device.
bool is_refused_launch(std::int64_t code) {
  switch (code) {
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_OUT_OF_MEMORY:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return true;
    default:
      return false;
  }
}

}  // namespace

void PendingRunner::open(const std::vector<std::string>& references) {
  Fields request = {"open"};
  request.insert(request.end(), references.begin(), references.end());
  // A process that is gone shows when its answer is read.
  (void)channel_.send(request).ok();
}

Result<RemoteRunner*> PendingRunner::ready(std::chrono::milliseconds deadline) {
  if (runner_) return runner_.get();
  const Result<Message> first = channel_.receive(Channel::Clock::now() + deadline);
  if (!first) return first.error();
  const Fields& fields = first->fields;
  if (fields.size() == 2 && fields[0] == "failed") return Error{one_line(fields[1], longest_text)};
  if (fields != Fields{"ready"}) return Error{"the runner's first word makes no sense"};
  runner_.reset(new RemoteRunner(std::move(channel_), words_));
  words_.close();
  return runner_.get();
}

void PendingRunner::hang_up() {
  channel_ = Channel();
  if (runner_) runner_->hang_up();
}

Fields RemoteRunner::hear() {
  std::optional<Channel::Clock::time_point> deadline;
  const auto start = Channel::Clock::now();
  if (left_) deadline = start + *left_;
  Result<Message> message = channel_.receive(deadline);
  if (left_) *left_ -= Channel::Clock::now() - start;
  if (!message && deadline && Channel::Clock::now() >= *deadline) {
    throw RunnerFailure(*this, {Status::timed_out, "not done by the run deadline"},
                        RunnerFailure::Kind::late);
  }
  if (!message)
    throw RunnerFailure(*this, {Status::crashed, message.error().message},
                        RunnerFailure::Kind::gone);
  Fields& fields = message->fields;
  if (fields.empty()) throw RunnerFailure(*this, {Status::crashed, "an empty answer"});
  // What it tells is shown, and a candidate may have reached its memory.
  for (std::string& field : fields) field = one_line(field, longest_text);
  if (fields[0] != "cuda") return std::move(fields);
  const auto code = fields.size() == 3 ? number(fields[1]) : std::nullopt;
  if (!code) throw RunnerFailure(*this, {Status::crashed, "a malformed answer"});
  const Status status = is_refused_launch(*code) ? Status::launch_failed : Status::crashed;
  throw RunnerFailure(*this, {status, fields[2]},
                      *code == CUDA_ERROR_ILLEGAL_ADDRESS ? RunnerFailure::Kind::faulted
                                                          : RunnerFailure::Kind::other);
}

Fields RemoteRunner::ask(const Fields& request, std::span<const int> descriptors) {
  // A process that is gone shows when its answer is read.
  (void)channel_.send(request, descriptors).ok();
  return hear();
}

void RemoteRunner::lend(const Buffers& buffers, Access access) {
  Fields request = {"map"};
  std::vector<FileDescriptor> lent;
  std::vector<int> descriptors;
  for (const auto& [name, buffer] : buffers.all()) {
    for (const std::string& field :
         {name, std::to_string(buffer.view().bytes), std::to_string(buffer.allocation().bytes()),
          std::to_string(buffer.offset()),
          std::string(access == Access::read ? "read" : "write")}) {
      request.push_back(field);
    }
    lent.push_back(buffer.allocation().lend());
    descriptors.push_back(lent.back().get());
  }
  ask(request, descriptors);
}

Result<int> RemoteRunner::load(const Candidate& candidate, const CompiledProgram& code) {
  const Fields answer =
      ask({"load", candidate_json(candidate), code_fields(candidate.program),
           to_fields(CompileOutcome{code, Status::compile_failed, {}}),
           boost::json::serialize(to_json(candidate.sizes)), problem_fields(candidate.problem)});
  if (answer.size() != 2) throw RunnerFailure(*this, {Status::crashed, "a malformed answer"});
  if (answer[0] != "ok") return Error{answer[1]};
  return static_cast<int>(number(answer[1]).value_or(0));
}

Result<Ok> RemoteRunner::reload(int subject) {
  const Fields answer = ask({"reload", std::to_string(subject)});
  if (answer[0] != "ok") return Error{answer.back()};
  return Ok{};
}

Result<RemoteRunner::Reference> RemoteRunner::make_reference(const std::string& problem,
                                                             const std::string& id) {
  const Fields answer = ask({"reference", problem, id, problem_fields(problem)});
  if (answer[0] != "ok" || answer.size() != 3) return Error{answer.back()};
  return Reference{static_cast<int>(number(answer[1]).value_or(0)), answer[2]};
}

Result<std::int64_t> RemoteRunner::measure_matrix_rate(const std::string& reference,
                                                       std::int64_t extent) {
  const Fields answer = ask({"matrix rate", reference, std::to_string(extent)});
  if (answer[0] != "ok") return Error{answer.back()};
  return number(answer.back()).value_or(0);
}

void RemoteRunner::forget() { ask({"forget"}); }

std::string RemoteRunner::new_cache_entries() {
  (void)channel_.send({"cache entries"}).ok();
  Result<Message> answer = channel_.receive();
  // Asked of the libraries' process alone, in which no candidate's code is.
  if (!answer || answer->fields.size() != 2 || answer->fields[0] != "ok") {
    throw RunnerFailure(*this, {Status::crashed, "a malformed answer"});
  }
  return answer->fields[1];
}

void RemoteRunner::arm(int subject, std::uint32_t ticket) {
  const Fields answer = ask({"run", std::to_string(subject), std::to_string(ticket)});
  if (answer != Fields{"armed"}) {
    throw RunnerFailure(*this, {Status::crashed, "a malformed answer"});
  }
}

std::int64_t RemoteRunner::finish() {
  const Fields answer = hear();
  const auto elapsed = answer.size() == 2 && answer[0] == "ran" ? number(answer[1]) : std::nullopt;
  if (!elapsed) throw RunnerFailure(*this, {Status::crashed, "a malformed answer"});
  return *elapsed;
}

}  // namespace rekernel
