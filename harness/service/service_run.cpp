#include <boost/json.hpp>
#include <exception>

#include "harness/service/answer.h"
#include "harness/service/service.h"

namespace rekernel::service {

namespace {

constexpr std::chrono::milliseconds tick_time{100};
constexpr std::chrono::milliseconds pause_before_storing_again{500};
constexpr std::int64_t swept_at_once = 2000;

/// A step of the judge. A defect of its own is a failure of the machine, and ends nothing else.
Outcome attempted(const std::string& request, const std::function<Outcome(const Task&)>& step) {
  Outcome outcome;
  try {
    const Result<Task> task = task_from_text(request);
    if (task) return step(*task);
    outcome.code = "stored_request";
    outcome.message = task.error().message;
  } catch (const std::exception& defect) {
    outcome.code = "defect";
    outcome.message = defect.what();
  }
  return outcome;
}

}  // namespace

void Service::pump() {
  if (stopping_) return check_stopped();
  std::vector<Ticket> compilations;
  std::vector<Scheduler::Assignment> judgings;
  {
    const SchedulerTime timed(*this);
    compilations = scheduler_.start_compilations();
    judgings = scheduler_.start_judgings();
  }
  for (const Ticket ticket : compilations) {
    tell(active_.at(ticket));
    with_request(ticket,
                 [this, ticket](std::string request) { compile(ticket, std::move(request)); });
  }
  for (const Scheduler::Assignment& one : judgings) judge_on(one);
}

void Service::tick() {
  loop_.after(tick_time, [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    for (const Ticket ticket : scheduler_.expire()) {
      give_answer(ticket, without_verdict(Answer::Kind::deadline_passed, "deadline_passed",
                                          "not judged before its deadline", true));
    }
    for (const int device : scheduler_.devices_to_ask()) {
      judges_.push([this, device] {
        const bool answers = judge_->answers(device);
        loop_.post([this, alive = std::weak_ptr(alive_), device, answers] {
          if (alive.expired()) return;
          scheduler_.answered(device, answers);
          log_("device_asked", {{"device", device}, {"answers", answers}});
          pump();
        });
      });
    }
    pump();
    tick();
  });
}

void Service::with_request(Ticket ticket, std::function<void(std::string)> use) {
  Active& active = active_.at(ticket);
  if (active.request) return use(*active.request);
  store_.ask<std::optional<std::string>>(
      [ticket](Store& store) { return store.request(ticket); },
      [this, alive = std::weak_ptr(alive_), ticket,
       use = std::move(use)](Result<std::optional<std::string>> request) {
        if (alive.expired()) return;
        if (request && *request) return use(std::move(**request));
        // Cancelled meanwhile, or the store failed: then it is tried again.
        scheduler_.put_back(ticket);
        if (!request) ++counts_.storage_failures;
      });
}

void Service::compile(Ticket ticket, std::string request) {
  compilers_.push([this, ticket, request = std::move(request)] {
    Outcome outcome =
        attempted(request, [this](const Task& task) { return judge_->compile(task); });
    loop_.post(
        [this, alive = std::weak_ptr(alive_), ticket, outcome = std::move(outcome)]() mutable {
          if (!alive.expired()) after_compilation(ticket, std::move(outcome));
        });
  });
}

void Service::judge_on(Scheduler::Assignment assignment) {
  const Ticket ticket = assignment.ticket;
  tell(active_.at(ticket));
  // Should the machine go down with it, the store has to know.
  store_.ask<bool>(
      [ticket, boot = options_.boot](Store& store) {
        store.begin_judging(ticket, boot);
        return true;
      },
      [this, alive = std::weak_ptr(alive_), assignment, ticket](const Result<bool>& noted) {
        if (alive.expired()) return;
        if (!noted || !active_.contains(ticket)) {
          if (!noted) ++counts_.storage_failures;
          return scheduler_.put_back(ticket);  // at the next tick
        }
        with_request(ticket, [this, assignment, ticket](std::string request) {
          judges_.push([this, assignment, ticket, request = std::move(request)] {
            Outcome outcome = attempted(
                request, [&](const Task& task) { return judge_->judge(task, assignment.device); });
            loop_.post([this, alive = std::weak_ptr(alive_), ticket,
                        outcome = std::move(outcome)]() mutable {
              if (!alive.expired()) after_judging(ticket, std::move(outcome));
            });
          });
        });
      });
}

void Service::after_compilation(Ticket ticket, Outcome outcome) {
  if (outcome.kind == Outcome::Kind::goes_on) {
    const bool has_device = judge_->devices() > 0;
    {
      const SchedulerTime timed(*this);
      scheduler_.compiled(ticket, has_device);
    }
    if (!has_device) {
      give_answer(ticket, without_verdict(Answer::Kind::machine_error, "no_gpu",
                                          "no GPU here: " + judge_->no_device(), false));
    }
  } else if (outcome.kind == Outcome::Kind::answer) {
    scheduler_.compiled(ticket, false);
    give_answer(ticket, std::move(outcome.answer));
  } else {
    after_failure(ticket, outcome);
  }
  pump();
}

void Service::after_judging(Ticket ticket, Outcome outcome) {
  if (outcome.kind == Outcome::Kind::answer) {
    {
      const SchedulerTime timed(*this);
      scheduler_.judged(ticket);
    }
    give_answer(ticket, std::move(outcome.answer));
  } else {
    after_failure(ticket, outcome);
  }
  pump();
}

void Service::after_failure(Ticket ticket, const Outcome& outcome) {
  ++counts_.machine_failures;
  const bool lost = outcome.kind == Outcome::Kind::device_lost;
  const auto found = active_.find(ticket);
  if (found != active_.end()) {
    ++found->second.row.failures;
    if (lost) ++found->second.row.takedowns;
    log_("machine_failed", {{"id", found->second.row.id},
                            {"code", outcome.code},
                            {"message", outcome.message},
                            {"failures", found->second.row.failures}});
  }
  switch (scheduler_.failed(ticket, lost)) {
    case Scheduler::Afterwards::gone:
      return;
    case Scheduler::Afterwards::again: {
      const Row& row = found->second.row;
      store_.ask<bool>(
          [ticket, failures = row.failures, takedowns = row.takedowns](Store& store) {
            store.end_judging(ticket, failures, takedowns);
            return true;
          },
          [](const Result<bool>&) {});
      return;
    }
    case Scheduler::Afterwards::give_up:
      return give_answer(ticket, without_verdict(Answer::Kind::machine_error, outcome.code,
                                                 outcome.message, true));
    case Scheduler::Afterwards::quarantine:
      return give_answer(
          ticket, without_verdict(Answer::Kind::quarantined, "quarantined",
                                  "a device went down twice with it: " + outcome.message, false));
  }
}

void Service::give_answer(Ticket ticket, Answer answer) {
  const auto found = active_.find(ticket);
  if (found == active_.end() || found->second.answering) return;
  found->second.answering = true;
  auto shared = std::make_shared<Answer>(std::move(answer));
  auto store_it = std::make_shared<std::function<void()>>();
  *store_it = [this, ticket, shared, weak = std::weak_ptr(store_it)] {
    const std::int64_t time = now_ms();
    store_.ask<bool>(
        [ticket, shared, time](Store& store) { return store.answer(ticket, *shared, false, time); },
        [this, alive = std::weak_ptr(alive_), ticket, shared, time,
         again = weak.lock()](const Result<bool>& stored) {
          if (alive.expired()) return;
          storage_works_ = stored.ok();
          if (!stored) {
            // Told to nobody before it is on disk.
            ++counts_.storage_failures;
            log_("storage_failed", {{"message", stored.error().message}});
            loop_.after(pause_before_storing_again, [again] { (*again)(); });
            return;
          }
          const auto still = active_.find(ticket);
          if (still == active_.end()) return;
          Active active = std::move(still->second);
          if (active.request) cached_bytes_ -= active.request->size();
          tickets_.erase(active.row.id);
          active_.erase(still);
          ++counts_.answers[static_cast<std::size_t>(shared->kind)];
          active.row.answer = shared->body;
          active.row.answered_ms = time;
          tell(active);
          constexpr std::uint64_t between_sweeps = 1000;
          if (counts_.answers[0] % between_sweeps == 0) {
            store_.ask<std::int64_t>(
                [keep = options_.keep](Store& store) { return store.sweep(keep, swept_at_once); },
                [](const Result<std::int64_t>&) {});
          }
          if (stopping_) check_stopped();
        });
  };
  (*store_it)();
}

}  // namespace rekernel::service
