#include "harness/service/service.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/service/answer.h"

namespace rekernel::service {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

namespace {

Refusal storage_refusal(const Error& error) {
  return {503, "storage", error.message, std::chrono::seconds(5)};
}

Refusal unknown_evaluation() {
  return {404, "unknown_evaluation", "this client has no evaluation of that id", {}};
}

NewEvaluation new_evaluation(const std::string& client, const Submission& submission,
                             const std::optional<std::string>& batch, const JudgeBackend& judge) {
  NewEvaluation one;
  one.id = random_digits() + random_digits();
  one.client = client;
  one.key = submission.key;
  one.request = task_text(submission.task);
  one.content = sha256_hex(one.request);
  one.digest = one.content;
  one.batch = batch;
  one.problem = submission.task.problem;
  one.tier = submission.task.tier;
  one.priority = submission.priority;
  one.deadline_s = submission.deadline_s;
  one.takes_kept = !submission.fresh;
  const JudgeBackend::Identity identity = judge.identity(submission.task);
  one.judge = identity.judge;
  one.device = identity.device;
  return one;
}

}  // namespace

std::string boot_id() {
  const Result<std::string> text = read_file("/proc/sys/kernel/random/boot_id", 64);
  return text ? text->substr(0, text->find('\n')) : "unknown";
}

Service::Service(Options options, Store store, std::shared_ptr<JudgeBackend> judge, EventLoop& loop,
                 Log log)
    : options_(std::move(options)),
      judge_(std::move(judge)),
      loop_(loop),
      log_(std::move(log)),
      scheduler_(options_.limits, Clock::now),
      store_(std::move(store), [this](std::function<void()> work) { loop_.post(std::move(work)); }),
      compilers_(options_.limits.cores),
      judges_(options_.limits.devices * options_.limits.untimed_at_once) {
  store_.ask<std::vector<Row>>(
      [boot = options_.boot](Store& opened) {
        opened.settle_interrupted(boot);
        return opened.unanswered();
      },
      [this, alive = std::weak_ptr(alive_)](Result<std::vector<Row>> rows) {
        if (alive.expired()) return;
        if (!rows) return log_("storage_failed", {{"message", rows.error().message}});
        for (Row& row : *rows) {
          scheduler_.restore(entry_of(row));
          const Ticket ticket = row.ticket;
          const bool quarantined = row.takedowns >= 2;
          activate(std::move(row), std::nullopt);
          if (!quarantined) continue;
          scheduler_.cancel(ticket);
          give_answer(ticket, without_verdict(Answer::Kind::quarantined, "quarantined",
                                              "the machine went down twice with it", false));
        }
        log_("restored", {{"evaluations", rows->size()}});
        pump();
      });
  tick();
}

Service::~Service() { alive_.reset(); }

void Service::set_client(const std::string& client, double weight,
                         std::optional<std::size_t> most_queued) {
  scheduler_.set_client(client, weight, most_queued);
}

Entry Service::entry_of(const Row& row) const {
  Entry entry{row.ticket, row.client, row.priority, row.tier, {}, row.failures, row.takedowns};
  if (row.deadline_s) {
    // The machine's clock may have jumped since: the deadline is never farther away than it was.
    const std::int64_t gone_ms =
        std::clamp<std::int64_t>(now_ms() - row.accepted_ms, 0, *row.deadline_s * 1000);
    entry.deadline = Clock::now() + std::chrono::milliseconds(*row.deadline_s * 1000 - gone_ms);
  }
  return entry;
}

void Service::activate(Row row, std::optional<std::string> request) {
  if (request && cached_bytes_ + request->size() > options_.most_cached_bytes) request.reset();
  if (request) cached_bytes_ += request->size();
  const Ticket ticket = row.ticket;
  tickets_[row.id] = ticket;
  active_[ticket] = Active{std::move(row), std::move(request), false, {}};
}

View Service::view_of(const Row& row) const {
  json::object view{{"id", row.id},
                    {"problem", row.problem},
                    {"tier", to_string(row.tier)},
                    {"priority", to_string(row.priority)},
                    {"accepted", utc_text(row.accepted_ms)}};
  if (row.batch) view["batch"] = *row.batch;
  if (row.answer) {
    view["state"] = "answered";
    view["answered"] = utc_text(row.answered_ms);
    view["kept"] = row.kept;
  } else {
    const std::optional<Stage> stage = scheduler_.stage(row.ticket);
    view["state"] = to_string(stage.value_or(Stage::judging));
  }
  std::string text = json::serialize(view);
  if (row.answer) {
    text.pop_back();
    text += ",\"answer\":" + *row.answer + "}";
  }
  return {row.id, std::move(text), row.answer.has_value()};
}

void Service::submit(const std::string& client, const std::vector<Submission>& submissions,
                     const std::optional<std::string>& batch, OnViews done) {
  if (stopping_) {
    return done(Refusal{503, "stopping", "the service is stopping", std::chrono::seconds(10)});
  }
  auto evaluations = std::make_shared<std::vector<NewEvaluation>>();
  for (const Submission& submission : submissions) {
    evaluations->push_back(new_evaluation(client, submission, batch, *judge_));
  }
  const std::size_t count = evaluations->size();
  const bool has_place = scheduler_.reserve(client, count);
  store_.ask<std::vector<Acceptance>>(
      [evaluations, has_place](Store& store) {
        return store.accept(*evaluations, has_place, now_ms());
      },
      [this, alive = std::weak_ptr(alive_), evaluations, has_place, count, client,
       done = std::move(done)](Result<std::vector<Acceptance>> acceptances) {
        if (alive.expired()) return;
        if (!acceptances || acceptances->back().kind == Acceptance::Kind::no_place ||
            acceptances->back().kind == Acceptance::Kind::key_reused) {
          if (has_place) scheduler_.give_back(client, count);
          ++counts_.refused;
          if (!acceptances) {
            ++counts_.storage_failures;
            return done(storage_refusal(acceptances.error()));
          }
          if (acceptances->back().kind == Acceptance::Kind::key_reused) {
            return done(Refusal{422, "key_reused", "this key belongs to another request", {}});
          }
          const bool own = scheduler_.queued() < options_.limits.most_queued;
          return done(Refusal{
              own ? 429 : 503, own ? "too_many_queued" : "full",
              own ? "this client has as many evaluations queued as it may" : "the queue is full",
              scheduler_.retry_after()});
        }
        std::vector<View> views;
        for (std::size_t i = 0; i < acceptances->size(); ++i) {
          Acceptance& one = (*acceptances)[i];
          if (one.kind == Acceptance::Kind::accepted) {
            ++counts_.accepted;
            {
              const SchedulerTime timed(*this);
              scheduler_.add(entry_of(one.row));
            }
            activate(one.row, std::move((*evaluations)[i].request));
          } else {
            if (has_place) scheduler_.give_back(client, 1);
            if (one.kind == Acceptance::Kind::answered) ++counts_.kept;
          }
          views.push_back(view_of(one.row));
        }
        pump();
        done(std::move(views));
      });
}

void Service::find(const std::string& client, const std::string& id, OnViews done) {
  if (const auto found = tickets_.find(id); found != tickets_.end()) {
    const Row& row = active_.at(found->second).row;
    if (row.client != client) return done(unknown_evaluation());
    return done(std::vector<View>{view_of(row)});
  }
  find_in_store(client, id, std::move(done));
}

void Service::find_in_store(const std::string& client, const std::string& id, OnViews done) {
  store_.ask<std::optional<Row>>([client, id](Store& store) { return store.find(client, id); },
                                 [this, alive = std::weak_ptr(alive_),
                                  done = std::move(done)](Result<std::optional<Row>> row) {
                                   if (alive.expired()) return;
                                   if (!row) return done(storage_refusal(row.error()));
                                   if (!*row) return done(unknown_evaluation());
                                   done(std::vector<View>{view_of(**row)});
                                 });
}

void Service::list(const std::string& client, const std::optional<std::string>& batch,
                   const std::string& after, std::size_t limit, OnViews done) {
  store_.ask<std::vector<Row>>(
      [=](Store& store) { return store.list(client, batch, after, limit); },
      [this, alive = std::weak_ptr(alive_), done = std::move(done)](Result<std::vector<Row>> rows) {
        if (alive.expired()) return;
        if (!rows) return done(storage_refusal(rows.error()));
        std::vector<View> views;
        for (const Row& row : *rows) views.push_back(view_of(row));
        done(std::move(views));
      });
}

void Service::cancel(const std::string& client, const std::string& id, OnViews done) {
  const auto found = tickets_.find(id);
  if (found != tickets_.end() && active_.at(found->second).row.client == client &&
      !active_.at(found->second).answering) {
    scheduler_.cancel(found->second);
    give_answer(found->second, without_verdict(Answer::Kind::cancelled, "cancelled",
                                               "cancelled by its client", false));
  }
  // The store works in order: what it finds is after the cancellation.
  find_in_store(client, id, std::move(done));
  pump();
}

Service::Watch Service::watch(const std::string& client, const std::string& id, Told told) {
  const auto found = tickets_.find(id);
  if (found == tickets_.end()) return nullptr;
  Active& active = active_.at(found->second);
  if (active.row.client != client) return nullptr;
  auto watch = std::make_shared<Told>(std::move(told));
  std::erase_if(active.watches, [](const auto& one) { return one.expired(); });
  active.watches.push_back(watch);
  return watch;
}

void Service::tell(Active& active) {
  if (active.watches.empty()) return;
  const View view = view_of(active.row);
  for (const std::weak_ptr<Told>& one : std::exchange(active.watches, {})) {
    const Watch watch = one.lock();
    if (!watch) continue;
    if (!view.answered) active.watches.push_back(one);
    (*watch)(view);
  }
}

}  // namespace rekernel::service
