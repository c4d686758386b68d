#include "replay/model/recorded_model.h"

#include <boost/json.hpp>

#include "replay/model/response.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

Result<std::unique_ptr<RecordedModel>> RecordedModel::load(
    const std::filesystem::path& trajectory) {
  auto model = std::make_unique<RecordedModel>();
  model->path_ = trajectory;
  Result<Trajectory> recording = Trajectory::open(trajectory, Trajectory::Access::read);
  if (!recording) return recording.error();
  while (true) {
    const Result<const boost::json::object*> event = recording->peek();
    if (!event) return event.error();
    if (!*event) return model;
    if ((*event)->at("event") == "response") {
      const std::string where =
          trajectory.string() + ": line " + std::to_string(recording->line() + 1);
      Result<ModelReply> reply = reply_from_event(**event, where);
      if (!reply) return reply.error();
      const boost::json::value* id = (*event)->if_contains("id");
      if (id && id->is_string()) model->replies_[std::string(id->get_string())] = std::move(*reply);
    }
    if (const Result<Ok> skipped = recording->skip(); !skipped) return skipped.error();
  }
}

std::optional<Interruption> RecordedModel::ask(std::span<const ModelRequest> requests,
                                               const Arrived& arrived) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto reply = replies_.find(requests[i].id);
    if (reply == replies_.end()) {
      return Interruption{Interruption::Kind::failed,
                          path_.string() + ": holds no reply to " + requests[i].id};
    }
    const Reception reception = arrived(i, reply->second);
    if (reception.next == Reception::Next::stop) return std::nullopt;
    if (reception.next == Reception::Next::ask_again) {
      return Interruption{Interruption::Kind::failed,
                          path_.string() + ": holds no other reply to " + requests[i].id + " (" +
                              reception.reason + "); --as-is takes this one"};
    }
  }
  return std::nullopt;
}

}  // namespace rekernel
