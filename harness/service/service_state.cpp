#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "harness/service/service.h"

namespace rekernel::service {

bool Service::nothing_runs() const {
  return scheduler_.compiling() == 0 && scheduler_.judging() == 0 &&
         std::none_of(active_.begin(), active_.end(),
                      [](const auto& one) { return one.second.answering; });
}

void Service::check_stopped() {
  if (stopped_ && nothing_runs()) std::exchange(stopped_, nullptr)(true);
}

void Service::stop(std::chrono::milliseconds grace, std::function<void(bool)> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  log_("stopping", {{"queued", scheduler_.queued()}, {"judging", scheduler_.judging()}});
  loop_.after(grace, [this, alive = std::weak_ptr(alive_)] {
    if (!alive.expired() && stopped_) std::exchange(stopped_, nullptr)(false);
  });
  check_stopped();
}

std::string Service::not_ready() const {
  if (stopping_) return "stopping";
  if (!storage_works_) return "the store cannot be written";
  if (judge_->devices() == 0) return "no GPU: " + judge_->no_device();
  if (scheduler_.usable_devices() == 0) return "no GPU answers";
  return "";
}

std::string Service::metrics() const {
  std::string text;
  const auto write = [&](const char* name, const char* type, const char* help,
                         const std::vector<std::pair<std::string, double>>& values) {
    text += std::string("# HELP rekernel_") + name + " " + help + "\n# TYPE rekernel_" + name +
            " " + type + "\n";
    for (const auto& [labels, value] : values) {
      char number[32];
      std::snprintf(number, sizeof number, "%.17g", value);
      text += std::string("rekernel_") + name + labels + " " + number + "\n";
    }
  };
  const auto whole = [](auto value) { return static_cast<double>(value); };
  const StoreThread::Counts store = store_.counts();
  write("accepted_total", "counter", "Evaluations accepted.", {{"", whole(counts_.accepted)}});
  write("kept_total", "counter", "Evaluations answered by an earlier verdict.",
        {{"", whole(counts_.kept)}});
  write("refused_total", "counter", "Submissions refused.", {{"", whole(counts_.refused)}});
  std::vector<std::pair<std::string, double>> answers;
  for (std::size_t i = 0; i < counts_.answers.size(); ++i) {
    const std::string kind = to_string(static_cast<Answer::Kind>(i));
    answers.emplace_back("{kind=\"" + kind + "\"}", whole(counts_.answers[i]));
  }
  write("answers_total", "counter", "Answers given, by kind.", answers);
  write("machine_failures_total", "counter",
        "Failures of the machine, each tried again or given up.",
        {{"", whole(counts_.machine_failures)}});
  write("storage_failures_total", "counter", "Failures of the store.",
        {{"", whole(counts_.storage_failures)}});
  write("evaluations", "gauge", "Evaluations without an answer, by what they do.",
        {{"{state=\"queued\"}", whole(scheduler_.queued())},
         {"{state=\"compiling\"}", whole(scheduler_.compiling())},
         {"{state=\"ready\"}", whole(scheduler_.waiting_for_device())},
         {"{state=\"judging\"}", whole(scheduler_.judging())}});
  write("devices", "gauge", "Devices, and those that answer.",
        {{"{state=\"all\"}", whole(judge_->devices())},
         {"{state=\"usable\"}", whole(scheduler_.usable_devices())}});
  write("scheduler_seconds_total", "counter", "Time in the scheduler.",
        {{"", counts_.scheduler_seconds}});
  write("uptime_seconds", "gauge", "Time since the start.",
        {{"", std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count()}});
  write("store_transactions_total", "counter", "Transactions of the store, each synced to disk.",
        {{"", whole(store.transactions)}});
  write("store_pieces_total", "counter", "Requests that those transactions served.",
        {{"", whole(store.pieces)}});
  return text;
}

}  // namespace rekernel::service
