#pragma once

#include <boost/json/fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "ops/result.h"

namespace rekernel {

/// What looks like a key or a password in a text.
struct FoundSecret {
  std::string kind;      ///< "an OpenAI key"
  std::size_t byte = 0;  ///< where it begins
  std::size_t bytes = 0;
};

/// The first one: by the prefixes that issuers give their keys, with as many characters after it as
/// those have. Not by entropy: kernels are full of numbers.
std::optional<FoundSecret> find_secret(std::string_view text);

/// That every text of a row can be published: it is UTF-8 without NUL, and nothing in it looks like
/// a secret. The error names the column and the byte, and not what stands there.
Result<Ok> check_texts(const boost::json::object& row);

}  // namespace rekernel
