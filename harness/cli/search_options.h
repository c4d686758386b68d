#pragma once

#include <filesystem>
#include <vector>

#include "harness/terminal/arguments.h"
#include "ops/result.h"
#include "replay/model/endpoint.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

/// The options of `rekernel search`.
boost::program_options::options_description search_options();

/// Whether the settings are those that the trajectory holds (--resume, --continue).
bool resumes(const ParsedArguments& parsed);

/// That no option is given which would not be heeded.
Result<Ok> check_search_options(const ParsedArguments& parsed);

/// What a search works with: the header, and for --replies openai how the models are asked.
struct ChosenSearch {
  Header header;
  std::vector<Endpoint> endpoints;
};

/// The recorded header where the search goes on, else one of the command line and the settings file
/// that it names. Fails, before anything is asked or paid, for a problem or a reference that is not
/// there, and for a trajectory that holds another search.
Result<ChosenSearch> choose_search(const ParsedArguments& parsed, Trajectory& trajectory);

}  // namespace rekernel
