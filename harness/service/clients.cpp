#include "harness/service/clients.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <charconv>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"

namespace rekernel::service {

namespace {

constexpr std::size_t digits_of_sha256 = 64;
constexpr std::string_view digest_mark = "sha256:";
constexpr double least_weight = 0.01, most_weight = 100;

template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), into);
  return code == std::errc() && end == text.data() + text.size();
}

/// The part after "weight=" or "queued=". False if it is neither.
bool read_setting(std::string_view word, Client& client) {
  if (word.starts_with("weight=")) {
    return read_number(word.substr(7), client.weight) && client.weight >= least_weight &&
           client.weight <= most_weight;
  }
  std::size_t queued = 0;
  if (!word.starts_with("queued=") || !read_number(word.substr(7), queued)) return false;
  client.most_queued = queued;
  return true;
}

}  // namespace

Result<Clients> Clients::parse(const std::string& text, const std::string& where) {
  Clients clients;
  std::istringstream lines(text);
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = where + ", line " + std::to_string(++number) + ": ";
    std::istringstream words(line.substr(0, line.find('#')));
    Client client;
    std::string digest;
    if (!(words >> client.name)) continue;
    if (!is_identifier(client.name)) {
      return Error{place + "expected a client's name (letters, digits, _), got " +
                   one_line(client.name, 64)};
    }
    words >> digest;
    const std::string digits =
        digest.starts_with(digest_mark) ? digest.substr(digest_mark.size()) : "";
    if (digits.size() != digits_of_sha256 ||
        digits.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return Error{place + "expected sha256: and 64 hexadecimal digits after the name"};
    }
    for (std::string word; words >> word;) {
      if (!read_setting(word, client)) {
        return Error{place + "expected weight=0.01 to 100 or queued=NUMBER, got " +
                     one_line(word, 64)};
      }
    }
    const bool known = std::any_of(clients.clients_.begin(), clients.clients_.end(),
                                   [&](const Client& one) { return one.name == client.name; });
    if (known) return Error{place + client.name + " stands there twice"};
    clients.clients_.push_back(std::move(client));
    clients.digests_.push_back(digits);
  }
  if (clients.clients_.empty()) return Error{where + ": expected at least one client"};
  return clients;
}

Result<Clients> Clients::load(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file, 1u << 20);
  if (!text) return text.error();
  return parse(*text, file.string());
}

const Client* Clients::by_token(std::string_view token) const {
  const std::string digest = sha256_hex(token);
  const Client* found = nullptr;
  for (std::size_t i = 0; i < clients_.size(); ++i) {
    if (CRYPTO_memcmp(digest.data(), digests_[i].data(), digits_of_sha256) == 0)
      found = &clients_[i];
  }
  return found;
}

NewToken new_token(const std::string& client) {
  const std::string token =
      "rk_" + random_digits() + random_digits() + random_digits() + random_digits();
  return {token, client + " " + std::string(digest_mark) + sha256_hex(token) + "\n"};
}

}  // namespace rekernel::service
