#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "ops/result.h"
#include "replay/model.h"

namespace rekernel {

/// A reply as the trajectory holds it. Where the model did not count tokens, they are estimated.
boost::json::object response_event(const ModelRequest& request, const ModelReply& reply);
Result<ModelReply> reply_from_event(const boost::json::object& event, const std::string& where);

}  // namespace rekernel
