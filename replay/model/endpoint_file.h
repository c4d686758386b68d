#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "ops/result.h"

namespace rekernel {

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

/// What `above` says, and what it does not say as `below` has it.
EndpointWish merged(EndpointWish below, const EndpointWish& above);
/// Error, which begins with `place`, where a value cannot be one.
Result<Ok> check_values(const EndpointWish& wish, const std::string& place);

}  // namespace rekernel
