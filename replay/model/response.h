#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "ops/result.h"
#include "replay/model/model.h"

namespace rekernel {

/// A reply as the trajectory holds it. Where the model did not count tokens, they are estimated.
boost::json::object response_event(const ModelRequest& request, const ModelReply& reply);
/// One that was unusable for the reason given, and was asked for again: number `attempt` of this
/// request, from 1.
boost::json::object unusable_event(const ModelRequest& request, const ModelReply& reply,
                                   int attempt, const std::string& reason);
/// The reply of either event.
Result<ModelReply> reply_from_event(const boost::json::value& event, const std::string& where);

}  // namespace rekernel
