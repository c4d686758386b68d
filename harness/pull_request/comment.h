#pragma once

#include <boost/json/fwd.hpp>
#include <string>

#include "harness/pull_request/pull_request.h"

namespace rekernel {

/// What is found out about a pull request, as a comment on it.
std::string to_markdown(const PullRequestFindings& found);
/// The same for programs, with the comment in it.
boost::json::object to_json(const PullRequestFindings& found);

}  // namespace rekernel
