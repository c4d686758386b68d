#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ops/result.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

/// A header of every request, with its value.
struct HeaderLine {
  std::string name;
  std::string value;
  bool secret = false;  ///< out of an environment variable, or named like one that holds a key
};

/// Where a model is asked and with which secrets. Made of what the search's owner says, by
/// resolve_endpoints; nothing of it comes out of a trajectory unless its owner said the same.
struct Endpoint {
  ModelSettings record;  ///< as the trajectory holds it
  std::string key;
  std::vector<HeaderLine> headers;
  std::filesystem::path ca_file;
};

/// What the owner says of one model's endpoint, on the command line or in a file; what is absent is
/// not said.
struct EndpointWish {
  std::optional<std::string> base_url;
  std::optional<std::string> key_variable;  ///< empty: no key is sent
  std::optional<std::string> ask_as;
  std::optional<std::map<std::string, std::string>> headers;  ///< "$NAME" is a variable's value
  std::optional<std::string> body;
  std::optional<std::string> ca_file;
  std::optional<std::string> limit_field;  ///< "auto": found out
  std::optional<std::int64_t> timeout_s;
  std::optional<std::int64_t> reply_tokens;
  std::optional<bool> stream;
  std::optional<std::string> prompt_price;
  std::optional<std::string> reply_price;
};

/// Wishes by the model's name.
using EndpointFile = std::map<std::string, EndpointWish>;

/// The owner's own file, {"models": {"<name>": {"base_url": …}}}; in $XDG_CONFIG_HOME/rekernel or
/// ~/.config/rekernel where no other is named.
std::filesystem::path default_endpoint_file();
Result<EndpointFile> load_endpoint_file(const std::filesystem::path& path);

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
