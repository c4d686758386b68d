#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/playback/replayer.h"

namespace rekernel {

/// The state of a search, finished or not, by its file.
struct SearchStatus {
  ReplayedSearch search;
  bool running = false;                          ///< a search is writing the file now
  std::vector<std::string> awaited_replies;      ///< ids of requests
  std::vector<std::string> awaited_evaluations;  ///< ids of candidates
  std::vector<std::string> awaited_profiles;     ///< ids of candidates
  std::vector<std::string>
      arrived;  ///< ids of what came before its turn, and is kept beside the file
  std::vector<ModelSettings> models;  ///< as they were asked last
};

/// Reads a trajectory, whole or not, and what lies beside it. Fails where the events that are there
/// do not replay.
Result<SearchStatus> search_status(const std::filesystem::path& trajectory);

/// What waits, what failed and why, tokens and cost so far. `exchange`: the folder of a search by
/// files, empty where there is none. Shows the last `most` failures of each kind.
std::string status_text(const SearchStatus& status, const std::filesystem::path& exchange,
                        std::size_t most = 20);
/// "waits for 4 replies", "over (rounds)".
std::string state_text(const SearchStatus& status);
boost::json::object status_json(const SearchStatus& status);

}  // namespace rekernel
