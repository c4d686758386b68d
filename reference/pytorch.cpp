#include "reference/pytorch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "harness/base/file_descriptor.h"
#include "harness/base/json.h"
#include "harness/process/sandbox.h"

extern char** environ;

namespace rekernel {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t max_line_bytes = 1 << 20;

constexpr char script[] =
#include "expression_source.inc"
#include "program_source.inc"
#include "pytorch_source.inc"
    ;

boost::json::object describe(const Problem& problem, const std::string& id, int device) {
  boost::json::array tensors;
  for (const Tensor& tensor : problem.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", to_string(tensor.dtype)},
                       {"shape", boost::json::value_from(tensor.shape)},
                       {"role", tensor.role == Role::input ? "input" : "output"},
                       {"distribution",
                        {{"kind", to_string(tensor.distribution.kind)},
                         {"a", tensor.distribution.a},
                         {"b", tensor.distribution.b},
                         {"choices", boost::json::value_from(tensor.distribution.choices)}}}});
  }
  boost::json::object attributes;
  for (const Attribute& attribute : problem.attributes) {
    std::visit([&](auto value) { attributes[attribute.name] = value; }, attribute.value);
  }
  return {{"problem", problem.id},
          {"mode", id},
          {"function", problem.pytorch},
          {"program", problem.program ? problem.program->json : ""},
          {"device", device},
          {"tensors", std::move(tensors)},
          {"attributes", std::move(attributes)}};
}

}  // namespace

/// Lines of JSON to and from a `python3`.
class PytorchReference::Conversation {
 public:
  explicit Conversation(const std::array<int, 2>& descriptors)
      : socket_(descriptors[0]), errors_(descriptors[1]) {}
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  /// Sends one line and waits for the line that answers it, which must be a JSON object without
  /// "error". Answers to questions of an evaluation that ended before it heard them are passed
  /// over.
  Result<boost::json::value> ask(boost::json::object question, Clock::time_point deadline);

 private:
  Result<Ok> send_line(const std::string& line, Clock::time_point deadline);
  Result<std::string> receive_line(Clock::time_point deadline);
  Result<Ok> wait_for(short events, Clock::time_point deadline);
  Error failure(const std::string& what) const;
  std::string last_error_line() const;

  FileDescriptor socket_;
  FileDescriptor errors_;  ///< what the process wrote to standard error
  std::string received_;
  std::mt19937_64 tokens_{std::random_device{}()};
};

Result<std::unique_ptr<PytorchProcess>> PytorchProcess::spawn(WhoseText text) {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{std::string("PyTorch: socketpair: ") + std::strerror(errno)};
  }
  FileDescriptor ours(ends[0]);
  FileDescriptor theirs(ends[1]);
  FileDescriptor errors(::memfd_create("rekernel-pytorch", MFD_CLOEXEC));
  if (errors.get() < 0) return Error{std::string("PyTorch: memfd: ") + std::strerror(errno)};
  std::unique_ptr<PytorchProcess> process(new PytorchProcess(std::move(ours), std::move(errors)));
  const Result<Ok> started = text == WhoseText::own ? process->start_alone(theirs)
                                                    : process->start_in_sandbox(std::move(theirs));
  if (!started) return started.error();
  return process;
}

/// It finds the socket and the file for standard error where a child of the sandbox does.
Result<Ok> PytorchProcess::start_in_sandbox(FileDescriptor theirs) {
  const std::string socket = std::to_string(first_inherited_descriptor);
  const std::string redirect = "import os\nfor end in (0, 1): os.dup2(" + socket +
                               ", end)\nos.dup2(" + std::to_string(first_inherited_descriptor + 1) +
                               ", 2)\n";
  Result<SandboxedPython> python = SandboxedPython::start(
      {.script = redirect + script,
       .arguments = {},
       .descriptors = {theirs.release(), ::fcntl(errors_.get(), F_DUPFD_CLOEXEC, 0)},
       .file_bytes = std::int64_t{1} << 32,
       .lifetime = std::chrono::hours(24),
       .devices = SandboxDevices::gpu,
       .additions = python_additions()});
  if (!python) return Error{"PyTorch: " + python.error().message};
  sandboxed_ = std::move(*python);
  return Ok{};
}

/// With a socket as its standard input and output, in a process group of its own, since
/// torch.compile starts workers.
Result<Ok> PytorchProcess::start_alone(const FileDescriptor& theirs) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors_.get(), STDERR_FILENO);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);
  const char* const arguments[] = {"python3", "-c", script, nullptr};
  const int failed = ::posix_spawnp(&pid_, "python3", &actions, &attributes,
                                    const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return Error{std::string("PyTorch is not installed: python3: ") + std::strerror(failed)};
  }
  return Ok{};
}

PytorchProcess::~PytorchProcess() {
  if (pid_ < 0) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Result<std::array<int, 2>> PytorchProcess::descriptors() {
  pollfd state{socket_.get(), 0, 0};
  if (::poll(&state, 1, 0) > 0 && (state.revents & POLLHUP)) return Error{"PyTorch: python3 ended"};
  return std::array<int, 2>{socket_.get(), errors_.get()};
}

Result<Ok> PytorchReference::Conversation::wait_for(short events, Clock::time_point deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return failure("no answer within the deadline");
    pollfd poll_for{.fd = socket_.get(), .events = events, .revents = 0};
    const int ready = ::poll(&poll_for, 1, static_cast<int>(std::min<long long>(left, 60'000)));
    if (ready > 0) return Ok{};
    if (ready < 0 && errno != EINTR) return failure(std::strerror(errno));
  }
}

Result<Ok> PytorchReference::Conversation::send_line(const std::string& line,
                                                     Clock::time_point deadline) {
  std::string_view rest = line;
  while (!rest.empty()) {
    if (Result<Ok> writable = wait_for(POLLOUT, deadline); !writable) return writable;
    const ssize_t sent =
        ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR && errno != EAGAIN) {
      return failure("python3 ended");
    }
  }
  return Ok{};
}

Result<std::string> PytorchReference::Conversation::receive_line(Clock::time_point deadline) {
  for (;;) {
    if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > max_line_bytes) return failure("an answer of over a megabyte");
    if (Result<Ok> readable = wait_for(POLLIN, deadline); !readable) return readable.error();
    char chunk[4096];
    const ssize_t count = ::recv(socket_.get(), chunk, sizeof chunk, MSG_DONTWAIT);
    if (count > 0) {
      received_.append(chunk, static_cast<std::size_t>(count));
    } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
      return failure("python3 ended");
    }
  }
}

Result<boost::json::value> PytorchReference::Conversation::ask(boost::json::object question,
                                                               Clock::time_point deadline) {
  const auto token = static_cast<std::int64_t>(tokens_() >> 1);
  question["token"] = token;
  Result<Ok> sent = send_line(boost::json::serialize(question) + "\n", deadline);
  if (!sent) return sent.error();
  for (;;) {
    Result<std::string> line = receive_line(deadline);
    if (!line) return line.error();
    Result<boost::json::value> answer = parse_json(*line, "PyTorch's answer");
    // The rest of a line that somebody else began to read is no answer either.
    if (!answer || !answer->is_object()) continue;
    boost::json::object& object = answer->as_object();
    const boost::json::value* answered = object.if_contains("token");
    if (!answered || *answered != token) continue;
    object.erase("token");
    if (const boost::json::value* error = object.if_contains("error")) {
      return Error{error->is_string() ? std::string(error->as_string())
                                      : boost::json::serialize(*error)};
    }
    return answer;
  }
}

Error PytorchReference::Conversation::failure(const std::string& what) const {
  const std::string last = last_error_line();
  return Error{"PyTorch: " + what + (last.empty() ? "" : " (" + last + ")")};
}

std::string PytorchReference::Conversation::last_error_line() const {
  char tail[4096];
  const off_t size = ::lseek(errors_.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - static_cast<off_t>(sizeof tail));
  const ssize_t count = ::pread(errors_.get(), tail, sizeof tail, from);
  if (count <= 0) return {};
  std::string_view text(tail, static_cast<std::size_t>(count));
  text = text.substr(0, text.find_last_not_of(" \n\r\t") + 1);
  const std::size_t line = text.rfind('\n');
  return std::string(line == std::string_view::npos ? text : text.substr(line + 1));
}

std::vector<std::string> pytorch_reference_ids(const Problem& problem) {
  std::vector<std::string> ids = {"pytorch_eager", "pytorch_compile"};
  const auto is_f32 = [](const Tensor* input) { return input->dtype == DType::f32; };
  const std::vector<const Tensor*> inputs = problem.inputs();
  // What a program does is not known: it may well have products.
  const bool may_have_products = problem.matrix_products > 0 || problem.program;
  if (may_have_products && std::any_of(inputs.begin(), inputs.end(), is_f32)) {
    ids.insert(ids.begin(), "pytorch_eager_fp32");
  }
  return ids;
}

PytorchReference::PytorchReference(std::unique_ptr<Conversation> conversation,
                                   std::chrono::milliseconds block_deadline)
    : conversation_(std::move(conversation)), block_deadline_(block_deadline) {}

PytorchReference::~PytorchReference() = default;

Result<std::unique_ptr<PytorchReference>> PytorchReference::connect(
    const std::array<int, 2>& descriptors, const Problem& problem, const std::string& id,
    int device, std::chrono::milliseconds startup_deadline,
    std::chrono::milliseconds block_deadline) {
  const Clock::time_point deadline = Clock::now() + startup_deadline;
  auto conversation = std::make_unique<Conversation>(descriptors);
  Result<boost::json::value> answer = conversation->ask(describe(problem, id, device), deadline);
  if (!answer) return answer.error();

  JsonReader reader("PyTorch's answer", *answer);
  const bool ready = reader.required("ready").boolean();
  std::string version = reader.required("torch").string(128);
  if (auto error = reader.error()) return *error;
  if (!ready) return Error{"PyTorch is not ready"};
  std::unique_ptr<PytorchReference> reference(
      new PytorchReference(std::move(conversation), block_deadline));
  reference->version_ = std::move(version);
  return reference;
}

Result<std::vector<std::int64_t>> PytorchReference::time_block(int samples, std::uint64_t seed) {
  Result<boost::json::value> answer =
      conversation_->ask({{"samples", samples}, {"seed", seed}}, Clock::now() + block_deadline_);
  if (!answer) return answer.error();
  JsonReader reader("PyTorch's answer", *answer);
  const auto count = static_cast<std::size_t>(samples);
  std::vector<std::int64_t> times;
  for (JsonReader& time : reader.required("times_ns").array(count, count)) {
    times.push_back(time.integer(1, INT64_MAX));
  }
  if (auto error = reader.error()) return *error;
  return times;
}

}  // namespace rekernel
