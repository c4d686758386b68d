#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "harness/service/event_loop.h"
#include "harness/service/judge.h"
#include "harness/service/log.h"
#include "harness/service/scheduler.h"
#include "harness/service/store_thread.h"
#include "harness/service/task.h"
#include "harness/service/workers.h"

namespace rekernel::service {

/// What a client asks for, read and checked.
struct Submission {
  Task task;
  std::optional<std::string> key;
  Priority priority = Priority::normal;
  std::optional<std::int64_t> deadline_s;
  bool fresh = false;  ///< a verdict that was given before does not serve
};

/// Why a request is not served, as HTTP tells it.
struct Refusal {
  int status = 400;
  std::string code;  ///< one word for programs
  std::string message;
  std::optional<std::chrono::seconds> retry_after;
};

/// An evaluation as its client sees it.
struct View {
  std::string id;
  std::string json;  ///< the whole object
  bool answered = false;
};
using Views = std::variant<std::vector<View>, Refusal>;
using OnViews = std::function<void(Views)>;

/// Accepts evaluations, has them compiled and judged, and tells their answers. Everything happens
/// on the event loop's thread; every member is called there.
class Service {
 public:
  struct Options {
    SchedulerLimits limits;
    std::int64_t keep = 1'000'000;              ///< answered evaluations that are remembered
    std::string boot;                           ///< the machine's boot id
    std::size_t most_cached_bytes = 64u << 20;  ///< of requests that wait in memory
  };

  Service(Options options, Store store, std::shared_ptr<JudgeBackend> judge, EventLoop& loop,
          Log log);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void set_client(const std::string& client, double weight, std::optional<std::size_t> most_queued);

  /// All of them, once they are on disk, or none. With `batch`, they are one.
  void submit(const std::string& client, const std::vector<Submission>& submissions,
              const std::optional<std::string>& batch, OnViews done);
  void find(const std::string& client, const std::string& id, OnViews done);
  /// The client's evaluations in order, at most `limit`, after the one of this id (empty: from the
  /// first), of one batch where that is named.
  void list(const std::string& client, const std::optional<std::string>& batch,
            const std::string& after, std::size_t limit, OnViews done);
  void cancel(const std::string& client, const std::string& id, OnViews done);

  /// `told` with every change of an evaluation up to its answer, until the watch is forgotten. Null
  /// if it is answered already, or unknown.
  using Told = std::function<void(const View&)>;
  using Watch = std::shared_ptr<Told>;
  Watch watch(const std::string& client, const std::string& id, Told told);

  /// Nothing new begins; `done` is told once nothing runs, or after the grace.
  void stop(std::chrono::milliseconds grace, std::function<void(bool nothing_runs)> done);
  bool is_stopping() const { return stopping_; }

  /// Ready to accept and, unless only compiling is wanted, to judge: empty, or why not.
  std::string not_ready() const;
  /// Prometheus' text format.
  std::string metrics() const;
  const JudgeBackend& judge() const { return *judge_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  /// An evaluation without an answer on disk.
  struct Active {
    Row row;
    std::optional<std::string> request;
    bool answering = false;  ///< its answer is on its way to the disk
    std::vector<std::weak_ptr<Told>> watches;
  };
  struct Counts {
    std::uint64_t accepted = 0, kept = 0, refused = 0, machine_failures = 0, storage_failures = 0;
    std::array<std::uint64_t, 5> answers{};  ///< by Answer::Kind
    double scheduler_seconds = 0;
  };

  /// Adds the time until it goes to what the scheduler took.
  class SchedulerTime {
   public:
    explicit SchedulerTime(Service& service) : service_(service) {}
    ~SchedulerTime() {
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun_;
      service_.counts_.scheduler_seconds += time.count();
    }

   private:
    Service& service_;
    const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  };

  void activate(Row row, std::optional<std::string> request);
  Entry entry_of(const Row& row) const;
  View view_of(const Row& row) const;
  void tell(Active& active);
  /// The evaluation as the store has it.
  void find_in_store(const std::string& client, const std::string& id, OnViews done);
  void pump();
  void tick();
  /// Calls back with the request's text, from memory or from disk.
  void with_request(Ticket ticket, std::function<void(std::string)> use);
  void compile(Ticket ticket, std::string request);
  void judge_on(Scheduler::Assignment assignment);
  void after_compilation(Ticket ticket, Outcome outcome);
  void after_judging(Ticket ticket, Outcome outcome);
  void after_failure(Ticket ticket, const Outcome& outcome);
  void give_answer(Ticket ticket, Answer answer);
  void note_failure(Ticket ticket, int takedowns);
  bool nothing_runs() const;
  void check_stopped();

  const Options options_;
  const std::shared_ptr<JudgeBackend> judge_;
  EventLoop& loop_;
  const Log log_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  Scheduler scheduler_;
  std::unordered_map<Ticket, Active> active_;
  std::unordered_map<std::string, Ticket> tickets_;  ///< of active ones, by id
  std::size_t cached_bytes_ = 0;
  Counts counts_;
  bool stopping_ = false;
  std::function<void(bool)> stopped_;
  bool storage_works_ = true;
  /// What comes back to a service that is gone is dropped.
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  StoreThread store_;
  Workers compilers_, judges_;  ///< end first
};

/// Different after each start of the machine.
std::string boot_id();

}  // namespace rekernel::service
