#include "harness/service/listen_address.h"

#include <arpa/inet.h>

#include <array>
#include <cctype>

namespace rekernel::service {

namespace {

/// An address of IPv4 (as one of IPv6, ::ffff:a.b.c.d) or IPv6; nothing for other texts.
std::optional<std::array<unsigned char, 16>> bytes_of(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  if (::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return bytes;
  bytes = {};
  bytes[10] = bytes[11] = 0xff;
  if (::inet_pton(AF_INET, host.c_str(), bytes.data() + 12) == 1) return bytes;
  return std::nullopt;
}

std::optional<int> digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  const int lower = std::tolower(static_cast<unsigned char>(letter));
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return std::nullopt;
}

}  // namespace

bool ListenAddress::is_loopback() const {
  if (!unix_path.empty()) return true;
  const auto bytes = bytes_of(host);
  if (!bytes) return false;
  constexpr std::array<unsigned char, 16> six = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  constexpr unsigned char four = 127;
  return *bytes == six || ((*bytes)[10] == 0xff && (*bytes)[12] == four);
}

Result<ListenAddress> parse_listen_address(const std::string& text) {
  ListenAddress address;
  constexpr std::string_view unix_mark = "unix:";
  if (text.starts_with(unix_mark)) {
    address.unix_path = text.substr(unix_mark.size());
    if (address.unix_path.empty()) return Error{text + ": expected a path after unix:"};
    return address;
  }
  const std::size_t colon = text.rfind(':');
  unsigned port = 65536;
  if (colon != std::string::npos && colon + 1 < text.size() &&
      text.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
      text.size() - colon < 8) {
    port = static_cast<unsigned>(std::stoul(text.substr(colon + 1)));
  }
  if (port > 65535) return Error{text + ": expected ADDRESS:PORT, [::1]:PORT or unix:PATH"};
  address.host = text.substr(0, colon);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']') {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  if (address.host == "localhost") address.host = "127.0.0.1";
  address.port = static_cast<std::uint16_t>(port);
  if (!bytes_of(address.host)) {
    return Error{text + ": expected a number like 127.0.0.1 before the port"};
  }
  return address;
}

std::optional<std::string> url_decoded(std::string_view text, bool plus_is_blank) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += plus_is_blank && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = digit_of(text[i + 1]), low = digit_of(text[i + 2]);
    if (!high || !low) return std::nullopt;
    decoded += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return decoded;
}

}  // namespace rekernel::service
