#include "replay/search/recording.h"

#include <boost/json.hpp>
#include <utility>

#include "replay/trajectory/event.h"

namespace rekernel {

namespace json = boost::json;

SearchRecord::SearchRecord(Trajectory& trajectory, PendingJournal* journal,
                           std::vector<ModelSettings> models)
    : trajectory_(trajectory), journal_(journal), models_(std::move(models)), endpoints_(models_) {}

void SearchRecord::interrupt(Interruption interruption) {
  if (!interruption_) interruption_ = std::move(interruption);
}

void SearchRecord::end(const std::string& reason, const std::string& note) {
  end_reason_ = reason;
  end_note_ = note;
}

SearchEnd SearchRecord::close() {
  if (!interruption_ && journal_) journal_->clear();
  return {std::move(interruption_), std::move(end_reason_), std::move(end_note_)};
}

void SearchRecord::put(const json::object& event) {
  if (!going()) return;
  if (auto interruption = trajectory_.put(event)) interrupt(std::move(*interruption));
}

bool SearchRecord::put_evaluation(const json::object& event, bool recorded) {
  auto interruption = recorded ? trajectory_.put_recorded() : trajectory_.put(event);
  if (interruption) interrupt(std::move(*interruption));
  return going();
}

const json::object* SearchRecord::next() {
  while (true) {
    const Result<const json::object*> event = trajectory_.peek();
    if (!event) interrupt({Interruption::Kind::bad_file, event.error().message});
    if (interruption_) return nullptr;
    if (!*event || !is_event(**event, "endpoints") || !going()) return *event;
    pass_endpoints(**event);
  }
}

const json::object* SearchRecord::next(const std::string& event, const std::string& id) {
  const json::object* found = next();
  if (found && !is_event(*found, event, id)) {
    refuse_next(event + " " + id);
    return nullptr;
  }
  return found;
}

const json::value* SearchRecord::recorded_value(const json::object& event) const {
  return trajectory_.recorded_value(event);
}

void SearchRecord::refuse_next(const std::string& expected_title) {
  interrupt(trajectory_.not_as_expected(expected_title));
}

std::string SearchRecord::where() const {
  return trajectory_.path().string() + ": line " + std::to_string(trajectory_.line() + 1);
}

void SearchRecord::note_endpoints(const std::vector<ModelSettings>& endpoints) {
  if (endpoints != endpoints_) put_endpoints(endpoints);
}

void SearchRecord::pass_endpoints(const json::object& event) {
  Result<std::vector<ModelSettings>> endpoints = endpoints_from_json(event, models_, where());
  if (!endpoints) return interrupt({Interruption::Kind::bad_file, endpoints.error().message});
  put_endpoints(*endpoints);
}

void SearchRecord::put_endpoints(const std::vector<ModelSettings>& endpoints) {
  put({{"event", "endpoints"}, {"models", to_json(endpoints)}});
  endpoints_ = endpoints;
}

const json::object* SearchRecord::pending(const char* event, const std::string& id, const char* key,
                                          const std::string& hash, int attempt) const {
  const json::object* entry = journal_ ? journal_->find(event, id, attempt) : nullptr;
  const json::value* kept = entry ? entry->if_contains(key) : nullptr;
  return kept && kept->is_string() && kept->get_string() == hash ? entry : nullptr;
}

void SearchRecord::add_pending(const json::object& entry) {
  if (!journal_) return;
  if (Result<Ok> added = journal_->add(entry); !added) {
    interrupt({Interruption::Kind::failed, added.error().message});
  }
}

void SearchRecord::forget_pending() {
  if (journal_ && going()) journal_->clear();
}

}  // namespace rekernel
