#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <set>
#include <string>

#include "ops/result.h"

namespace rekernel {

/// Nothing if a report can be put at `folder`: there is none yet, it is empty, or it is a report
/// and nothing else. The error says what stands there instead.
Result<Ok> check_report_folder(const std::filesystem::path& folder);

/// Makes the pages of the data (see report_data) in place of `folder`. They are made beside it and
/// put there in one step: whatever fails, what was there before stays. The generator says on
/// standard error what went wrong.
Result<Ok> write_html_report(const boost::json::object& data, const std::filesystem::path& folder);

/// Makes these pictures of a report ("reference-h200.svg") and nothing else, as
/// `folder`/pictures/NAME; names that it has none of are left out.
Result<Ok> write_pictures(const boost::json::object& data, const std::filesystem::path& folder,
                          const std::set<std::string>& names);

}  // namespace rekernel
