#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel::service {

/// Where a service listens, in parts.
struct ListenAddress {
  std::string unix_path;  ///< or
  std::string host;       ///< a number, without brackets
  std::uint16_t port = 0;
  bool is_loopback() const;
};
/// "127.0.0.1:8420", "[::1]:0", "localhost:1", "unix:PATH".
Result<ListenAddress> parse_listen_address(const std::string& text);

/// "%20" and "+" of a query; nothing for a broken one.
std::optional<std::string> url_decoded(std::string_view text, bool plus_is_blank);

}  // namespace rekernel::service
