#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

/// What a person specifies when a search that stopped is to go on: recorded after the stop, as the
/// event `continue`, so that the replay goes on there too.
struct Continuation {
  int rounds = 0;                      ///< of the whole search from now on
  std::int64_t token_budget = 0;       ///< of the whole search; 0: no limit
  std::vector<RoundPlan> round_plans;  ///< beside the header's
  std::string notes;
};

boost::json::object to_json(const Continuation& continuation);
/// Reads the event. `settings` are those of the search so far: rounds can be added, not taken away.
Result<Continuation> continuation_from_json(const boost::json::object& event,
                                            const Settings& settings, const std::string& where);
/// Reads a person's file: the event's members, of which all but "rounds" may be absent.
Result<Continuation> load_continuation(const std::filesystem::path& path, const Settings& settings);

/// Whether the search goes on like that already.
bool adds_nothing(const Continuation& continuation, const Settings& settings);

/// The settings from here on; an error if a round has a plan already.
Result<Settings> continued(const Settings& settings, const Continuation& continuation,
                           const std::string& where);

}  // namespace rekernel
