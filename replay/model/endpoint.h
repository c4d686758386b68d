#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/model/endpoint_file.h"
#include "replay/model/endpoint_values.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

/// Where a model is asked and with which secrets. Made of what the search's owner says, by
/// resolve_endpoints; nothing of it comes out of a trajectory unless its owner said the same.
struct Endpoint {
  ModelSettings record;  ///< as the trajectory holds it
  std::string key;
  std::vector<HeaderLine> headers;
  std::filesystem::path ca_file;
};

/// Where the settings of the models come from.
enum class ModelsFrom {
  owner,      ///< the command line and the settings file that it names
  recording,  ///< a trajectory, which may have come from anybody: only compared
};

/// The endpoint of every model. `flags` go before `file`, which goes before `models` if they are
/// the owner's, which go before OpenAI's own address and OPENAI_API_KEY. The key of OPENAI_API_KEY
/// goes to another address only if the owner says so. A recording's address, key variable,
/// headers and body must be what the owner says or has by default: the error names what differs.
/// Reads the keys from the environment. A secret goes over https only, or to this machine.
Result<std::vector<Endpoint>> resolve_endpoints(const std::vector<ModelSettings>& models,
                                                ModelsFrom from, const EndpointFile& file,
                                                const EndpointWish& flags);

/// The address that a base URL's chat completions are asked of.
std::string completions_address(std::string base_url);

/// Whether the address is a port of this machine, which is asked past any proxy.
bool is_this_machine(const std::string& address);

/// The text with every secret of the endpoint replaced by "[key]". In what a model said, secrets
/// that are too short to be any are left: "none" is a word.
enum class Masking { messages, replies };
std::string masked(const Endpoint& endpoint, std::string text, Masking masking);

/// US dollars by the models' prices, of so many tokens; nothing where a price is unknown.
std::optional<double> cost_usd(const ModelSettings& model, std::int64_t prompt_tokens,
                               std::int64_t reply_tokens);

}  // namespace rekernel
