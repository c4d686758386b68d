#include "harness/dataset/texts.h"

#include <string.h>

#include <array>
#include <boost/json.hpp>

#include "harness/base/utf8.h"

namespace rekernel {

namespace json = boost::json;

namespace {

/// Which characters a key goes on with.
enum class Letters { word, base64url, any_line };

struct SecretKind {
  const char* name;
  std::string_view prefix;
  Letters letters;
  std::size_t least;  ///< characters after the prefix
};

// From the issuers' pages on what their keys look like, and GitHub's list of secret patterns.
constexpr std::array secret_kinds{
    SecretKind{"an OpenAI or Anthropic key", "sk-", Letters::base64url, 20},
    SecretKind{"an AWS access key", "AKIA", Letters::word, 16},
    SecretKind{"a GitHub token", "ghp_", Letters::word, 36},
    SecretKind{"a GitHub token", "gho_", Letters::word, 36},
    SecretKind{"a GitHub token", "ghs_", Letters::word, 36},
    SecretKind{"a GitHub token", "github_pat_", Letters::word, 22},
    SecretKind{"a GitLab token", "glpat-", Letters::base64url, 20},
    SecretKind{"a Hugging Face token", "hf_", Letters::word, 30},
    SecretKind{"a Google API key", "AIza", Letters::base64url, 35},
    SecretKind{"an NVIDIA API key", "nvapi-", Letters::base64url, 40},
    SecretKind{"a Slack token", "xoxb-", Letters::base64url, 20},
    SecretKind{"a Slack token", "xoxp-", Letters::base64url, 20},
    SecretKind{"a PyPI token", "pypi-AgEI", Letters::base64url, 40},
    SecretKind{"a bearer token", "Authorization: Bearer ", Letters::base64url, 16},
    SecretKind{"a JSON web token", "eyJhbGciOi", Letters::base64url, 20},
    SecretKind{"a private key", "-----BEGIN ", Letters::any_line, 0},
};

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool belongs(Letters letters, char c) {
  switch (letters) {
    case Letters::word:
      return is_word(c);
    case Letters::base64url:
      return is_word(c) || c == '-' || c == '.' || c == '/' || c == '+' || c == '=';
    case Letters::any_line:
      return c != '\n';
  }
  return false;
}

/// A word such as "task-specific-…" holds a prefix in its middle, and sk-learn-like names hold no
/// digit.
bool is_secret(const SecretKind& kind, std::string_view text, std::size_t at, std::size_t end) {
  const std::string_view found = text.substr(at, end - at);
  if (kind.letters == Letters::any_line) {
    return found.find("PRIVATE KEY-----") != std::string_view::npos;
  }
  if (at > 0 && is_word(text[at - 1])) return false;
  return found.size() >= kind.prefix.size() + kind.least &&
         found.find_first_of("0123456789") != std::string_view::npos;
}

Result<Ok> check_text(std::string_view text, const std::string& column) {
  if (!is_utf8(text)) {
    std::size_t byte = 0;
    for (std::size_t length; byte < text.size(); byte += length) {
      length = character_length(text, byte);
      if (length == 0) break;
    }
    return Error{"column " + column + ": byte " + std::to_string(byte) + " is not UTF-8"};
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return Error{"column " + column + ": byte " + std::to_string(nul) + " is NUL"};
  }
  if (const auto secret = find_secret(text)) {
    return Error{"column " + column + ": " + std::to_string(secret->bytes) +
                 " characters from byte " + std::to_string(secret->byte) + " on look like " +
                 secret->kind};
  }
  return Ok{};
}

Result<Ok> check_value(const json::value& value, const std::string& column) {
  if (const json::string* text = value.if_string()) return check_text(*text, column);
  if (const json::array* array = value.if_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      Result<Ok> checked = check_value((*array)[i], column + "[" + std::to_string(i) + "]");
      if (!checked) return checked;
    }
  } else if (const json::object* object = value.if_object()) {
    for (const auto& [key, member] : *object) {
      if (Result<Ok> checked = check_value(member, column + "." + std::string(key)); !checked) {
        return checked;
      }
    }
  }
  return Ok{};
}

}  // namespace

std::optional<FoundSecret> find_secret(std::string_view text) {
  for (const SecretKind& kind : secret_kinds) {
    std::size_t from = 0;
    while (from < text.size()) {
      const void* found =
          ::memmem(text.data() + from, text.size() - from, kind.prefix.data(), kind.prefix.size());
      if (!found) break;
      const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
      std::size_t end = at + kind.prefix.size();
      while (end < text.size() && belongs(kind.letters, text[end])) ++end;
      if (is_secret(kind, text, at, end)) return FoundSecret{kind.name, at, end - at};
      from = at + kind.prefix.size();
    }
  }
  return std::nullopt;
}

Result<Ok> check_texts(const json::object& row) {
  for (const auto& [key, value] : row) {
    if (Result<Ok> checked = check_value(value, std::string(key)); !checked) return checked;
  }
  return Ok{};
}

}  // namespace rekernel
