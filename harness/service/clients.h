#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/result.h"

namespace rekernel::service {

/// Who may ask, and for how much.
struct Client {
  std::string name;
  double weight = 1;  ///< of its share beside others'
  std::optional<std::size_t> most_queued;
};

/// Clients by their tokens. A file has a line for each: "NAME sha256:DIGITS", then, if wanted,
/// "weight=2" and "queued=1000"; "#" begins a comment. It holds no token, only what a token is
/// recognised by.
class Clients {
 public:
  static Result<Clients> parse(const std::string& text, const std::string& where);
  static Result<Clients> load(const std::filesystem::path& file);

  /// Takes the same time whichever client it is, and if it is none.
  const Client* by_token(std::string_view token) const;
  const std::vector<Client>& all() const { return clients_; }

 private:
  std::vector<Client> clients_;
  std::vector<std::string> digests_;
};

/// A fresh token of 256 bits for a client, and the line of the file that goes with it.
struct NewToken {
  std::string token;
  std::string line;
};
NewToken new_token(const std::string& client);

}  // namespace rekernel::service
