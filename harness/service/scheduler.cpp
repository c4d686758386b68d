#include "harness/service/scheduler.h"

#include <algorithm>
#include <cmath>

namespace rekernel::service {

namespace {

using Seconds = std::chrono::duration<double>;

/// How much the latest time counts in a moving average.
constexpr double latest_share = 0.05;

/// Evaluations that are compiled before a device is free for them, beside as many as it judges at
/// once: enough that none waits for the compiler, few enough that the cores serve those that only
/// want to be compiled.
constexpr std::size_t ready_beside_judged = 3;

/// Times are taken where nothing else runs. What failed once is tried again alone, since others may
/// have been why: by their memory, or by taking the device down.
bool has_device_alone(const Entry& entry) {
  return entry.tier == Tier::timed || entry.failures > 0 || entry.takedowns > 0;
}

}  // namespace

Scheduler::Scheduler(const SchedulerLimits& limits, Now now)
    : limits_(limits), now_(std::move(now)), devices_(limits.devices) {
  for (Device& device : devices_) device.next_rest = limits_.first_rest;
}

void Scheduler::set_client(const std::string& client, double weight,
                           std::optional<std::size_t> most_queued) {
  to_compile_.set_weight(client, weight);
  to_judge_.set_weight(client, weight);
  places_[client].most = most_queued;
}

bool Scheduler::reserve(const std::string& client, std::size_t count) {
  Place& place = places_[client];
  const std::size_t most = place.most.value_or(limits_.most_queued_of_client);
  if (place.queued + count > most) return false;
  if (entries_.size() + reserved_ + count > limits_.most_queued) return false;
  place.queued += count;
  reserved_ += count;
  return true;
}

void Scheduler::give_back(const std::string& client, std::size_t count) {
  places_[client].queued -= count;
  reserved_ -= count;
}

std::chrono::seconds Scheduler::retry_after() const {
  const double by_compiler =
      static_cast<double>(to_compile_.size()) * compile_seconds_ / std::max(1u, limits_.cores);
  const double by_devices = static_cast<double>(to_judge_.size()) * judge_seconds_ /
                            static_cast<double>(std::max<std::size_t>(1, devices_.size()));
  // A tenth of the queue gone is room enough to come back.
  const double seconds = std::ceil(std::max(by_compiler, by_devices) / 10);
  return std::chrono::seconds(static_cast<std::int64_t>(std::clamp(seconds, 1.0, 120.0)));
}

void Scheduler::add(const Entry& entry) {
  give_back(entry.client, 1);
  restore(entry);
}

void Scheduler::restore(const Entry& entry) {
  ++places_[entry.client].queued;
  entries_[entry.ticket] = State{entry, Stage::queued};
  if (entry.deadline) deadlines_.emplace(*entry.deadline, entry.ticket);
  to_compile_.push(entry.client, entry.priority, entry.ticket);
}

void Scheduler::forget(Ticket ticket) {
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return;
  const Entry& entry = found->second.entry;
  if (entry.deadline) deadlines_.erase({*entry.deadline, ticket});
  --places_[entry.client].queued;
  entries_.erase(found);
}

bool Scheduler::takes(const Device& device, bool alone) const {
  if (device.condition != Device::Condition::works) return false;
  if (device.running == 0) return true;
  return !alone && !device.is_one_alone && device.running < limits_.untimed_at_once;
}

std::optional<std::size_t> Scheduler::device_for(const Entry& entry) const {
  const bool alone = has_device_alone(entry);
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (!takes(devices_[i], alone)) continue;
    if (!best || devices_[i].running < devices_[*best].running) best = i;
  }
  return best;
}

Scheduler::Device* Scheduler::device_of(const Running& run) {
  return run.device < 0 ? nullptr : &devices_[static_cast<std::size_t>(run.device)];
}

void Scheduler::run(Ticket ticket, int device, double charged) {
  State& state = entries_.at(ticket);
  state.stage = device < 0 ? Stage::compiling : Stage::judging;
  const bool alone = has_device_alone(state.entry);
  running_[ticket] = {state.entry.client, now_(), charged, device, alone};
  if (device < 0) return;
  Device& used = devices_[static_cast<std::size_t>(device)];
  ++used.running;
  used.is_one_alone = alone;
}

std::optional<Scheduler::Running> Scheduler::end_run(Ticket ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return std::nullopt;
  Running run = std::move(found->second);
  running_.erase(found);
  const bool compiled = run.device < 0;
  const double share = compiled || run.alone ? 1 : 1.0 / limits_.untimed_at_once;
  const double seconds = share * Seconds(now_() - run.begun).count();
  (compiled ? to_compile_ : to_judge_).charge(run.client, seconds - run.charged);
  double& average = compiled ? compile_seconds_ : judge_seconds_;
  average += latest_share * (seconds - average);
  if (compiled) {
    --running_compilations_;
  } else {
    --device_of(run)->running;
  }
  return run;
}

std::vector<Ticket> Scheduler::start_compilations() {
  std::vector<Ticket> started;
  const std::size_t most_ready =
      limits_.cores + (limits_.untimed_at_once + ready_beside_judged) * devices_.size();
  while (running_compilations_ < limits_.cores && to_judge_.size() < most_ready) {
    const std::optional<Ticket> ticket = to_compile_.pop(compile_seconds_);
    if (!ticket) break;
    ++running_compilations_;
    run(*ticket, -1, compile_seconds_);
    started.push_back(*ticket);
  }
  return started;
}

void Scheduler::compiled(Ticket ticket, bool goes_on) {
  end_run(ticket);
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return;
  if (!goes_on) return forget(ticket);
  State& state = found->second;
  state.stage = Stage::ready;
  to_judge_.push(state.entry.client, state.entry.priority, ticket);
}

/// In the queue's order: what needs a device for itself keeps those that come after it waiting, so
/// that one empties.
std::vector<Scheduler::Assignment> Scheduler::start_judgings() {
  std::vector<Assignment> assignments;
  while (const std::optional<Ticket> ticket = to_judge_.front()) {
    const std::optional<std::size_t> device = device_for(entries_.at(*ticket).entry);
    if (!device) break;
    to_judge_.pop(judge_seconds_);
    run(*ticket, static_cast<int>(*device), judge_seconds_);
    assignments.push_back({*ticket, static_cast<int>(*device)});
  }
  return assignments;
}

void Scheduler::judged(Ticket ticket) {
  const std::optional<Running> run = end_run(ticket);
  if (Device* const device = run ? device_of(*run) : nullptr) {
    if (device->condition == Device::Condition::works) device->next_rest = limits_.first_rest;
  }
  forget(ticket);
}

void Scheduler::rest(Device& device) {
  device.condition = Device::Condition::resting;
  device.rests_until = now_() + device.next_rest;
  device.next_rest = std::min(2 * device.next_rest, limits_.longest_rest);
}

Scheduler::Afterwards Scheduler::failed(Ticket ticket, bool took_down) {
  const std::optional<Running> run = end_run(ticket);
  Device* const device = run ? device_of(*run) : nullptr;
  // Beside others it may have lacked their memory, of which the device is not to blame. What fails
  // on a device that rests already says nothing new.
  if (device && (run->alone || took_down) && device->condition == Device::Condition::works) {
    rest(*device);
  }
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return Afterwards::gone;
  Entry& entry = found->second.entry;
  ++entry.failures;
  if (took_down) ++entry.takedowns;
  if (entry.takedowns >= 2 || entry.failures >= limits_.tries) {
    const auto afterwards = entry.takedowns >= 2 ? Afterwards::quarantine : Afterwards::give_up;
    forget(ticket);
    return afterwards;
  }
  queue_again(found->second);
  return Afterwards::again;
}

void Scheduler::put_back(Ticket ticket) {
  end_run(ticket);
  if (const auto found = entries_.find(ticket); found != entries_.end()) queue_again(found->second);
}

void Scheduler::queue_again(State& state) {
  const bool was_compiled = state.stage == Stage::judging;
  state.stage = was_compiled ? Stage::ready : Stage::queued;
  FairQueue& queue = was_compiled ? to_judge_ : to_compile_;
  queue.push(state.entry.client, state.entry.priority, state.entry.ticket);
}

std::vector<int> Scheduler::devices_to_ask() {
  std::vector<int> asked;
  const TimePoint now = now_();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Device& device = devices_[i];
    if (device.condition != Device::Condition::resting || device.rests_until > now) continue;
    device.condition = Device::Condition::asked;
    asked.push_back(static_cast<int>(i));
  }
  return asked;
}

void Scheduler::answered(int number, bool answers) {
  Device& device = devices_.at(static_cast<std::size_t>(number));
  if (device.condition != Device::Condition::asked) return;
  if (answers) {
    device.condition = Device::Condition::works;
  } else {
    rest(device);
  }
}

bool Scheduler::cancel(Ticket ticket) {
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return false;
  const auto& [entry, stage] = found->second;
  if (stage == Stage::queued) to_compile_.erase(entry.client, entry.priority, ticket);
  if (stage == Stage::ready) to_judge_.erase(entry.client, entry.priority, ticket);
  forget(ticket);
  return true;
}

std::vector<Ticket> Scheduler::expire() {
  std::vector<Ticket> expired;
  const TimePoint now = now_();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    expired.push_back(deadlines_.begin()->second);
    cancel(expired.back());
  }
  return expired;
}

std::optional<Scheduler::TimePoint> Scheduler::next_event() const {
  std::optional<TimePoint> next;
  if (!deadlines_.empty()) next = deadlines_.begin()->first;
  for (const Device& device : devices_) {
    if (device.condition != Device::Condition::resting) continue;
    next = next ? std::min(*next, device.rests_until) : device.rests_until;
  }
  return next;
}

std::optional<Stage> Scheduler::stage(Ticket ticket) const {
  const auto found = entries_.find(ticket);
  if (found == entries_.end()) return std::nullopt;
  return found->second.stage;
}

std::size_t Scheduler::queued_of(const std::string& client) const {
  const auto found = places_.find(client);
  return found == places_.end() ? 0 : found->second.queued;
}

std::size_t Scheduler::judging() const { return running_.size() - running_compilations_; }

std::size_t Scheduler::usable_devices() const {
  return static_cast<std::size_t>(std::count_if(
      devices_.begin(), devices_.end(),
      [](const Device& device) { return device.condition == Device::Condition::works; }));
}

}  // namespace rekernel::service
