#pragma once

#include <filesystem>
#include <vector>

#include "harness/terminal/arguments.h"
#include "ops/result.h"
#include "replay/model/endpoint.h"
#include "replay/trajectory/header.h"
#include "replay/trajectory/trajectory.h"

namespace rekernel {

/// Neither good nor bad: replies or a GPU are missing, and the same command goes on.
inline constexpr int exit_waiting = 3;

/// What `rekernel search` takes.
Page search_page();

/// Whether the settings are those that the trajectory holds (--resume, --continue).
bool resumes(const ParsedArguments& parsed);

/// The command that goes on with an interrupted search: the one that was given, less what the
/// trajectory holds. `continued`: the file of --continue is in the trajectory already.
std::string resuming_command(const ParsedArguments& parsed, bool continued);

/// Rejects options that would be ignored.
Result<Ok> check_search_options(const ParsedArguments& parsed);

/// The id of the problem that --problem names; where that is a file, its problem is known from then
/// on. A search for such a problem, at `path`, must be no file of the project's.
Result<std::string> named_problem(const ParsedArguments& parsed, const std::filesystem::path& path);

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
