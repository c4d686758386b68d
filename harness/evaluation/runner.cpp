#include "harness/evaluation/runner.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "harness/base/cache.h"
#include "harness/base/files.h"
#include "harness/candidate/code.h"
#include "harness/compile/compile_isolated.h"
#include "harness/evaluation/ceilings.h"
#include "harness/evaluation/report.h"
#include "harness/evaluation/served_process.h"
#include "harness/gpu/shared_memory.h"
#include "harness/problems/catalog.h"
#include "harness/problems/sizes.h"
#include "harness/process/channel.h"
#include "harness/process/isolate.h"

namespace rekernel {

namespace {

constexpr int rate_runs = 8;

/// The referee's requests are ours: one that is malformed is a defect.
std::int64_t number(const std::string& field) {
  std::int64_t value = 0;
  const char* end = field.data() + field.size();
  if (std::from_chars(field.data(), end, value).ptr != end || field.empty()) {
    throw std::runtime_error("runner: expected a number, got '" + field + "'");
  }
  return value;
}

/// Something that can be run, and for a candidate what it was made of.
struct Subject {
  std::unique_ptr<Runnable> runnable;
  Program program;
  CompiledProgram code;
};

/// Lent memory at an address of this process.
struct MappedBuffer {
  DeviceAllocation allocation;
  DeviceMapping mapping;
};

class Runner {
 public:
  Runner(Channel channel, const FileDescriptor& words, Device device,
         const ReferenceMaker& references)
      : channel_(std::move(channel)),
        words_(words),
        device_(std::move(device)),
        references_(references) {}

  void serve() {
    say({"ready"});
    while (Result<Message> request = channel_.receive()) {
      try {
        answer(*request);
      } catch (const CudaError& error) {
        say({"cuda", std::to_string(static_cast<int>(error.code())), error.what()});
      }
    }
  }

 private:
  void say(const Fields& fields) {
    // A referee that is gone shows at the next receive.
    (void)channel_.send(fields).ok();
  }

  void answer(const Message& request) {
    const Fields& fields = request.fields;
    const std::string verb = fields.empty() ? "" : fields[0];
    if (verb == "map") return map(request);
    if (verb == "load" && fields.size() == 6) {
      know_problem(fields[5]);
      return load(fields[1], fields[2], fields[3], sizes_in(fields[4]));
    }
    if (verb == "reference" && fields.size() == 4) {
      know_problem(fields[3]);
      return make_reference(fields[1], fields[2]);
    }
    if (verb == "reload" && fields.size() == 2) return reload(subject(fields[1]));
    if (verb == "matrix rate" && fields.size() == 3) {
      return measure_matrix_rate(fields[1], number(fields[2]));
    }
    if (verb == "forget") return forget();
    if (verb == "cache entries") return say({"ok", new_cache_entries()});
    if (verb == "run" && fields.size() == 3) {
      return run(subject(fields[1]), static_cast<std::uint32_t>(number(fields[2])));
    }
    throw std::runtime_error("runner: unknown request '" + verb + "'");
  }

  void map(const Message& request) {
    constexpr std::size_t fields_a_buffer = 5;
    const Fields& fields = request.fields;
    for (std::size_t i = 0; i < request.descriptors.size(); ++i) {
      const std::size_t at = 1 + i * fields_a_buffer;
      DeviceAllocation allocation =
          DeviceAllocation::import(request.descriptors[i], number(fields.at(at + 2)));
      DeviceMapping mapping(allocation,
                            fields.at(at + 4) == "read" ? Access::read : Access::read_and_write);
      bindings_[fields[at]] = {mapping.begin() + static_cast<CUdeviceptr>(number(fields[at + 3])),
                               number(fields[at + 1])};
      memory_.push_back({std::move(allocation), std::move(mapping)});
    }
    say({"ok"});
  }

  static void know_problem(const std::string& fields) {
    if (auto adopted = adopt_problem(fields, "runner"); !adopted) {
      throw std::runtime_error(adopted.error().message);
    }
  }

  static Sizes sizes_in(const std::string& text) {
    const Result<boost::json::value> json = parse_json(text, "runner");
    if (!json) throw std::runtime_error(json.error().message);
    JsonReader reader("runner", *json);
    Sizes sizes = sizes_from_json(reader);
    if (const auto error = reader.error()) throw std::runtime_error(error->message);
    return sizes;
  }

  void load(const std::string& plan, const std::string& source, const std::string& code,
            const Sizes& sizes) {
    Result<std::vector<Code>> modules = code_from_fields(source);
    if (!modules) throw std::runtime_error(modules.error().message);
    Result<Candidate> candidate = parse_candidate_at(sizes, plan, *std::move(modules), "runner");
    if (!candidate) throw std::runtime_error(candidate.error().message);
    Result<CompileOutcome> outcome = compile_outcome_from(code);
    if (!outcome) throw std::runtime_error(outcome.error().message);
    subjects_.push_back({nullptr, std::move(candidate->program), std::move(*outcome->program)});
    reload(subjects_.back());
  }

  /// Once more if it is loaded already: its global variables start again as the source says.
  void reload(Subject& subject) {
    subject.runnable.reset();
    Result<std::unique_ptr<Runnable>> runnable =
        make_runnable(subject.program, subject.code, bindings_, device_.properties());
    if (!runnable) return say({"refused", runnable.error().message});
    subject.runnable = std::move(*runnable);
    run_unwatched(*subject.runnable);
    say({"ok", std::to_string(subjects_.size() - 1)});
  }

  /// The first launch of a kernel may load code or make room for its local memory, for which the
  /// driver waits until the device is idle: never, with a stream that waits for a word.
  void run_unwatched(Runnable& runnable) {
    runnable.enqueue(stream_.get());
    stream_.synchronize();
  }

  void make_reference(const std::string& problem, const std::string& id) {
    Result<std::unique_ptr<Runnable>> made =
        references_(id, *find_problem(problem), bindings_, device_);
    if (!made) return say({"refused", made.error().message});
    run_unwatched(**made);
    subjects_.push_back({std::move(*made), {}, {}});
    say({"ok", std::to_string(subjects_.size() - 1), subjects_.back().runnable->details()});
  }

  void measure_matrix_rate(const std::string& id, std::int64_t extent) {
    const Problem product = matrix_rate_product(extent);
    Result<std::unique_ptr<Runnable>> library = references_(id, product, bindings_, device_);
    if (!library) return say({"refused", library.error().message});
    std::int64_t fastest = 0;
    for (int i = 0; i < rate_runs; ++i) {
      start_.record(stream_);
      (*library)->enqueue(stream_.get());
      stop_.record(stream_);
      const std::int64_t elapsed = elapsed_ns(start_, stop_);
      if (i == 0 || elapsed < fastest) fastest = elapsed;
    }
    say({"ok", std::to_string(std::llround(static_cast<double>(product.operations) /
                                           static_cast<double>(fastest) * 1e9))});
  }

  void forget() {
    subjects_.clear();
    bindings_.clear();
    memory_.clear();
    say({"ok"});
  }

  void run(Subject& subject, std::uint32_t ticket) {
    // A reload that was refused: the harness asks for a run only of what was loaded.
    if (!subject.runnable) throw std::runtime_error("runner: nothing is loaded");
    wait_for_word(stream_, words_.address(WordPage::go), ticket);
    start_.record(stream_);
    subject.runnable->enqueue(stream_.get());
    stop_.record(stream_);
    write_word(stream_, words_.address(WordPage::done), ticket);
    say({"armed"});
    const std::int64_t elapsed = elapsed_ns(start_, stop_);
    stream_.synchronize();  // an error of work that the events did not wait for must show here
    say({"ran", std::to_string(elapsed)});
  }

  Subject& subject(const std::string& field) {
    return subjects_.at(static_cast<std::size_t>(number(field)));
  }

  Channel channel_;
  WordPage words_;
  Device device_;
  const ReferenceMaker& references_;
  Stream stream_;
  Event start_;
  Event stop_;
  std::vector<MappedBuffer> memory_;
  Bindings bindings_;
  std::vector<Subject> subjects_;
};

[[noreturn]] void leave(int status) {
  // Past a device fault, CUDA's own destructors can hang or crash.
  std::cerr.flush();
  ::_exit(status);
}

}  // namespace

int run_runner_worker(const ReferenceSource& references) {
  constexpr int failed = 2;
  if (::fcntl(first_served_descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return failed;  // started by hand: there is nobody to serve
  }
  Channel channel{FileDescriptor(first_served_descriptor)};
  const FileDescriptor words(first_served_descriptor + 1);
  settle_as_served_process();
  try {
    const Result<Message> open = channel.receive();
    if (!open) leave(0);  // nobody wants it any more
    // Before its turn at the device, while others take theirs.
    for (std::size_t i = 1; i < open->fields.size(); ++i) references.load(open->fields[i]);
    Result<Device> device = open_in_turn();
    if (!device) {
      (void)channel.send({"failed", device.error().message}).ok();
      leave(failed);
    }
    Runner(std::move(channel), words, std::move(*device), references.make).serve();
  } catch (const std::exception& error) {
    (void)write_all(STDERR_FILENO, std::string(error.what()) + "\n");
    leave(failed);
  }
  leave(0);
}

}  // namespace rekernel
