#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/service/fair_queue.h"

namespace rekernel::service {

/// How far an evaluation goes.
enum class Tier { compile, correct, timed };

enum class Stage { queued, compiling, ready, judging };

/// What the service can take and do at once.
struct SchedulerLimits {
  std::size_t most_queued = 200'000;           ///< of all clients
  std::size_t most_queued_of_client = 50'000;  ///< unless the client has a limit of its own
  unsigned cores = 1;                          ///< compilations at once
  unsigned devices = 0;
  unsigned untimed_at_once = 1;  ///< evaluations without times on one device
  int tries = 3;                 ///< failures of the machine before an evaluation is given up
  /// How long a device rests after a failure; twice as long after each further one.
  std::chrono::milliseconds first_rest{1000};
  std::chrono::milliseconds longest_rest{60'000};
};

/// An evaluation as the scheduler sees it.
struct Entry {
  Ticket ticket = 0;
  std::string client;
  Priority priority = Priority::normal;
  Tier tier = Tier::timed;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  int failures = 0;   ///< of the machine, with it
  int takedowns = 0;  ///< how often a device or the machine went down with it
};

/// Decides what is compiled and judged next, and where. Holds numbers alone: no thread, no file, no
/// clock of its own. Not thread-safe.
class Scheduler {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Now = std::function<TimePoint()>;

  Scheduler(const SchedulerLimits& limits, Now now);

  void set_client(const std::string& client, double weight, std::optional<std::size_t> most_queued);

  /// Places for evaluations that are about to be accepted: all of them, or none.
  bool reserve(const std::string& client, std::size_t count);
  void give_back(const std::string& client, std::size_t count);
  /// A rough guess at when there will be a place, in whole seconds from 1 to 120.
  std::chrono::seconds retry_after() const;

  /// Adds an evaluation, whose place was reserved.
  void add(const Entry& entry);
  /// After a restart: one that has a place whether or not there is one.
  void restore(const Entry& entry);

  /// What to compile now.
  std::vector<Ticket> start_compilations();
  /// It is compiled, and has a verdict by that or goes on to a device.
  void compiled(Ticket ticket, bool goes_on);

  struct Assignment {
    Ticket ticket = 0;
    int device = 0;
  };
  /// What to judge now, and where.
  std::vector<Assignment> start_judgings();
  /// It has an answer, and its device is free.
  void judged(Ticket ticket);

  enum class Afterwards { again, give_up, quarantine, gone };
  /// The machine failed with it while it was compiled or judged. `took_down`: the device does not
  /// answer any more. Unless it is tried again, it has left.
  Afterwards failed(Ticket ticket, bool took_down);
  /// Put back as if it had never begun.
  void put_back(Ticket ticket);

  /// Devices whose rest is over: to be asked whether they answer. Each is told once.
  std::vector<int> devices_to_ask();
  void answered(int device, bool answers);

  /// Takes it out. What runs goes on, and its result is of no interest: judged(), compiled() and
  /// failed() may still be called with it. False if it is not here.
  bool cancel(Ticket ticket);
  /// Those whose deadline has passed, taken out like cancelled ones.
  std::vector<Ticket> expire();
  /// When expire() or devices_to_ask() may have something new.
  std::optional<TimePoint> next_event() const;

  std::optional<Stage> stage(Ticket ticket) const;
  std::size_t queued() const { return entries_.size(); }
  std::size_t queued_of(const std::string& client) const;
  std::size_t waiting_for_device() const { return to_judge_.size(); }
  std::size_t compiling() const { return running_compilations_; }
  std::size_t judging() const;
  std::size_t usable_devices() const;

 private:
  struct State {
    Entry entry;
    Stage stage = Stage::queued;
  };
  /// What runs, whether or not it is still wanted.
  struct Running {
    std::string client;
    TimePoint begun;
    double charged = 0;  ///< seconds
    int device = -1;     ///< −1: compiling
    bool alone = true;   ///< there
  };
  struct Device {
    enum class Condition { works, resting, asked } condition = Condition::works;
    unsigned running = 0;
    bool is_one_alone = false;  ///< the one that runs has it for itself
    TimePoint rests_until;
    std::chrono::milliseconds next_rest;
  };
  struct Place {
    std::size_t queued = 0;  ///< with those that are reserved
    std::optional<std::size_t> most;
  };

  void forget(Ticket ticket);
  bool takes(const Device& device, bool alone) const;
  /// The least busy device that takes it.
  std::optional<std::size_t> device_for(const Entry& entry) const;
  Device* device_of(const Running& run);
  void run(Ticket ticket, int device, double charged);
  /// Ends a run and charges its time. Nothing if there was none.
  std::optional<Running> end_run(Ticket ticket);
  void queue_again(State& state);
  void rest(Device& device);

  SchedulerLimits limits_;
  Now now_;
  std::unordered_map<Ticket, State> entries_;
  std::unordered_map<Ticket, Running> running_;
  FairQueue to_compile_, to_judge_;
  std::set<std::pair<TimePoint, Ticket>> deadlines_;
  std::vector<Device> devices_;
  std::map<std::string, Place> places_;
  std::size_t reserved_ = 0;
  std::size_t running_compilations_ = 0;
  double compile_seconds_ = 1;  ///< moving averages
  double judge_seconds_ = 2;    ///< of a device; of what shared it, the share
};

}  // namespace rekernel::service
