#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "ops/result.h"

namespace rekernel {

/// A model that takes part and, for the `openai` backend, how it is asked. This is a record of what
/// the search's owner wanted: a search that goes on asks its owner again (replay/model/endpoint.h),
/// since the file may come from elsewhere. No secret is in it: neither the key nor a header's
/// value.
struct ModelSettings {
  std::string name;                  ///< in the search, and at the endpoint unless `ask_as` is set
  std::string base_url;              ///< "https://api.openai.com/v1"
  std::string key_variable;          ///< "OPENAI_API_KEY"
  std::string ask_as;                ///< what the endpoint calls the model, where that is another
  std::vector<std::string> headers;  ///< names of those beside the protocol's
  std::string body;                  ///< members beside the protocol's: a JSON object, as text
  std::string limit_field;           ///< "max_tokens" or "max_completion_tokens"; empty: found out
  std::string ca_sha256;             ///< of the file with the trusted authorities
  std::int64_t timeout_s = 0;        ///< of one attempt; 0: the program's
  std::int64_t reply_tokens = 0;     ///< in place of the settings'; 0: theirs
  bool stream = false;
  std::string prompt_price;  ///< US dollars for a million tokens, "1.25"; empty: unknown
  std::string reply_price;

  bool operator==(const ModelSettings&) const = default;
};

/// What a person specified for one round; the search decides what is absent.
struct RoundPlan {
  int round = 0;
  std::vector<std::string> ideas;  ///< taken instead of asking for ideas; their number counts
  /// Candidates whose source the prompts show, instead of survivors and bank; empty: from scratch.
  std::optional<std::vector<std::string>> parents;
  std::vector<std::string> bank_kernels;  ///< names of kernels from the header's library

  bool operator==(const RoundPlan&) const = default;
};

/// Everything that steers a search. Recorded in the header of its trajectory.
struct Settings {
  int rounds = 5;
  int first_round = 1;
  int ideas = 2;      ///< asked for in every round
  int branches = 2;   ///< implementations of every idea
  int survivors = 2;  ///< fastest correct kernels that seed the next round
  int bank = 2;       ///< good kernels beside them
  /// Survivors come from the last round alone, even when an earlier kernel is faster, as long as
  /// any of its kernels is correct.
  bool chain = false;
  std::vector<ModelSettings> models;
  std::int64_t token_budget = 0;       ///< prompt and reply tokens of the whole search; 0: no limit
  std::int64_t prompt_tokens = 48000;  ///< limit of one prompt, by estimated_tokens
  std::int64_t reply_tokens = 0;       ///< asked of the endpoint as a limit of a reply; 0: its own
  std::int64_t deadline_minutes = 0;   ///< of one run of the program; 0: none
  std::vector<std::string> references;  ///< timed beside every candidate, the headline first
  std::vector<RoundPlan> round_plans;
  /// Whether candidates may be timed on GPUs of different kinds. Then each is ranked by its time as
  /// a share of the reference's on the same GPU.
  bool mixed_gpus = false;
  /// How often a reply is asked for until it is usable; then it counts as it is. Old recordings
  /// do not say: once.
  int tries = 1;
  /// Whether the prompts say what a profiler says of the candidates that they show.
  bool profiles = false;

  int last_round() const { return first_round + rounds - 1; }
  const RoundPlan* plan_of(int round) const;
};

/// The default of a new search.
inline constexpr int usual_tries = 3;

/// The longest text of a person's idea.
inline constexpr std::size_t max_idea_bytes = 4000;

/// Whether an address is one that may be recorded, and that a key may be sent to if its scheme
/// allows: http:// or https://, without user name, password, query or fragment.
bool is_plain_address(const std::string& address);

std::vector<ModelSettings> read_models(JsonReader reader);
/// What old recordings do not have is left out where it is not set.
boost::json::array to_json(const std::vector<ModelSettings>& models);
/// The models of an event `endpoints`, which must be those of the search.
Result<std::vector<ModelSettings>> endpoints_from_json(const boost::json::object& event,
                                                       const std::vector<ModelSettings>& models,
                                                       const std::string& where);

/// Plans for rounds of such a search, one a round at most. Errors land in the reader.
std::vector<RoundPlan> read_round_plans(JsonReader reader, const Settings& settings);
boost::json::array to_json(const std::vector<RoundPlan>& plans);

/// Every key may be absent; then the default stands. Errors land in the reader.
Settings read_settings(JsonReader reader);
boost::json::object to_json(const Settings& settings);

}  // namespace rekernel
