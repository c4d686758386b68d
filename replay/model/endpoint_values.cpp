#include "replay/model/endpoint_values.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cctype>
#include <climits>
#include <cstdlib>
#include <memory>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"

namespace rekernel {

namespace json = boost::json;

namespace {

/// Members of a request that the search decides on.
constexpr std::array own_members = {
    "model", "messages", "n", "stream", "stream_options", "max_tokens", "max_completion_tokens"};

/// RFC 9110's token.
bool is_header_name(std::string_view name) {
  return !name.empty() && name.size() <= 128 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) ||
                  std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string::npos;
         });
}

bool is_named_like_a_secret(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array words = {"auth", "key", "token", "secret", "cookie"};
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

}  // namespace

bool is_price(std::string_view text) {
  const auto digits =
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const auto points = std::count(text.begin(), text.end(), '.');
  return digits > 0 && digits <= 15 && points <= 1 &&
         static_cast<std::size_t>(digits + points) == text.size();
}

bool has_line_break(const std::string& text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
}

Result<HeaderLine> header_line(const std::string& name, const std::string& given) {
  const std::string place = "header " + one_line(name, 64);
  if (!is_header_name(name)) return Error{place + ": not a header's name"};
  HeaderLine line{name, "", is_named_like_a_secret(name)};
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != '$') {
      line.value += given[i];
      continue;
    }
    if (i + 1 < given.size() && given[i + 1] == '$') {
      line.value += given[++i];
      continue;
    }
    const bool braces = i + 1 < given.size() && given[i + 1] == '{';
    const std::size_t begin = i + (braces ? 2 : 1);
    std::size_t end = begin;
    while (end < given.size() &&
           (std::isalnum(static_cast<unsigned char>(given[end])) || given[end] == '_')) {
      ++end;
    }
    const std::string variable = given.substr(begin, end - begin);
    if (!is_identifier(variable) || (braces && (end == given.size() || given[end] != '}'))) {
      return Error{place + ": expected the name of an environment variable after $"};
    }
    const char* value = std::getenv(variable.c_str());
    if (!value) return Error{place + ": the environment variable " + variable + " is not set"};
    line.value += value;
    line.secret = true;
    i = braces ? end : end - 1;
  }
  if (has_line_break(line.value)) return Error{place + ": holds a line break"};
  return line;
}

bool holds_certificates(const std::string& text) {
  struct Free {
    void operator()(BIO* bio) const { BIO_free(bio); }
    void operator()(STACK_OF(X509_INFO) * all) const { sk_X509_INFO_pop_free(all, X509_INFO_free); }
  };
  const std::unique_ptr<BIO, Free> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(std::min<std::size_t>(text.size(), INT_MAX))));
  const std::unique_ptr<STACK_OF(X509_INFO), Free> all(
      PEM_X509_INFO_read_bio(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  for (int i = 0; all && i < sk_X509_INFO_num(all.get()); ++i) {
    if (sk_X509_INFO_value(all.get(), i)->x509) return true;
  }
  return false;
}

Result<std::string> checked_body(const std::string& text, const std::string& place) {
  Result<json::value> value = parse_json(text, place + ": body");
  if (!value) return value.error();
  const json::object* object = value->if_object();
  if (!object) return Error{place + ": body: expected a JSON object"};
  for (const char* member : own_members) {
    if (object->contains(member)) {
      return Error{place + ": body: \"" + member + "\" is written by the search itself"};
    }
  }
  return object->empty() ? std::string() : json::serialize(*value);
}

std::string without_slashes_behind(std::string address) {
  while (address.ends_with('/')) address.pop_back();
  return address;
}

}  // namespace rekernel
