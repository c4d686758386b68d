#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/model/model.h"
#include "replay/search/candidate_memory.h"
#include "replay/search/recording.h"
#include "replay/search/reply_collector.h"
#include "replay/search/surroundings.h"
#include "replay/trajectory/continuation.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// Stops a search where its rounds, its tokens or its time are over, where a person wants that, or
/// where no reply can be used; and lets it go on after a stop where a continuation says so, which
/// changes the settings.
class Ending {
 public:
  /// All must outlive it.
  Ending(const Header& header, Settings& settings, const SearchSurroundings& around,
         SearchRecord& recording, CandidateMemory& memory, const TokenCount& tokens)
      : header_(header),
        settings_(settings),
        around_(around),
        recording_(recording),
        memory_(memory),
        tokens_(tokens) {}

  /// Records the stop. The search ends there, or goes on.
  void stop(const std::string& reason, const std::string& note = "");
  /// Stops the search where the requests would exceed the token budget or the deadline has passed,
  /// and looks again where a continuation lets it go on. False: the search is over.
  bool may_ask(const std::vector<ModelRequest>& requests);

 private:
  std::optional<std::string> outside_reason();
  bool goes_on(const std::string& reason, bool was_recorded);
  bool wants_to_go_on(const std::string& reason, bool was_recorded) const;
  Result<Continuation> wanted_continuation();
  Result<Settings> continued_settings(const Continuation& continuation);
  bool refuse(const Error& error);

  const Header& header_;
  Settings& settings_;
  const SearchSurroundings& around_;
  SearchRecord& recording_;
  CandidateMemory& memory_;
  const TokenCount& tokens_;
  bool went_on_ = false;  ///< by this run's wish
};

}  // namespace rekernel
