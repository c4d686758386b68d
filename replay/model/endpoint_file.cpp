#include "replay/model/endpoint_file.h"

#include <boost/json.hpp>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "replay/model/endpoint_values.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::int64_t longest_timeout_s = 7 * 86400;

template <class Value>
void overlay(std::optional<Value>& below, const std::optional<Value>& above) {
  if (above) below = above;
}

void take(JsonReader& reader, const char* key, std::optional<std::string>& value) {
  if (auto field = reader.optional(key)) value = field->string(1 << 16);
}

EndpointWish read_wish(JsonReader reader) {
  EndpointWish wish;
  take(reader, "base_url", wish.base_url);
  take(reader, "key_variable", wish.key_variable);
  take(reader, "ask_as", wish.ask_as);
  take(reader, "ca_file", wish.ca_file);
  take(reader, "limit_field", wish.limit_field);
  if (auto headers = reader.optional("headers")) wish.headers = headers->string_map(4096);
  if (auto body = reader.optional("body")) wish.body = json::serialize(body->raw());
  if (auto timeout = reader.optional("timeout_s")) {
    wish.timeout_s = timeout->integer(1, longest_timeout_s);
  }
  if (auto tokens = reader.optional("reply_tokens")) {
    wish.reply_tokens = tokens->integer(0, std::int64_t{1} << 40);
  }
  if (auto stream = reader.optional("stream")) wish.stream = stream->boolean();
  if (auto price = reader.optional("price")) {
    wish.prompt_price = price->required("prompt").string(32);
    wish.reply_price = price->required("reply").string(32);
    price->no_other_keys();
  }
  reader.no_other_keys();
  return wish;
}

}  // namespace

EndpointWish merged(EndpointWish below, const EndpointWish& above) {
  overlay(below.base_url, above.base_url);
  overlay(below.key_variable, above.key_variable);
  overlay(below.ask_as, above.ask_as);
  overlay(below.headers, above.headers);
  overlay(below.body, above.body);
  overlay(below.ca_file, above.ca_file);
  overlay(below.limit_field, above.limit_field);
  overlay(below.timeout_s, above.timeout_s);
  overlay(below.reply_tokens, above.reply_tokens);
  overlay(below.stream, above.stream);
  overlay(below.prompt_price, above.prompt_price);
  overlay(below.reply_price, above.reply_price);
  return below;
}

Result<Ok> check_values(const EndpointWish& wish, const std::string& place) {
  if (wish.base_url && !is_plain_address(*wish.base_url)) {
    return Error{place +
                 ": base URL: expected an http:// or https:// address without user name, password "
                 "or query, got \"" +
                 one_line(*wish.base_url, 128) + "\""};
  }
  if (wish.base_url && without_slashes_behind(*wish.base_url).ends_with(completions_path)) {
    return Error{place + ": base URL: expected the address without " +
                 std::string(completions_path) + ", which is added to it, got \"" +
                 one_line(*wish.base_url, 128) + "\""};
  }
  if (wish.key_variable && !wish.key_variable->empty() && !is_identifier(*wish.key_variable)) {
    return Error{place + ": key variable: expected the name of an environment variable"};
  }
  if (wish.limit_field && *wish.limit_field != "auto" && *wish.limit_field != "max_tokens" &&
      *wish.limit_field != "max_completion_tokens") {
    return Error{place + ": limit field: expected auto, max_tokens or max_completion_tokens"};
  }
  if (wish.timeout_s && (*wish.timeout_s < 1 || *wish.timeout_s > longest_timeout_s)) {
    return Error{place + ": timeout: expected 1 to " + std::to_string(longest_timeout_s) +
                 " seconds"};
  }
  if (wish.reply_tokens && *wish.reply_tokens < 0) {
    return Error{place + ": reply tokens: expected 0 or more"};
  }
  for (const auto* price : {&wish.prompt_price, &wish.reply_price}) {
    if (*price && !is_price(**price)) {
      return Error{place + ": price: expected US dollars for a million tokens, as 1.25"};
    }
  }
  return Ok{};
}

fs::path default_endpoint_file() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  const fs::path folder =
      config && *config ? fs::path(config) : fs::path(home ? home : ".") / ".config";
  return folder / "rekernel" / "endpoints.json";
}

Result<EndpointFile> load_endpoint_file(const fs::path& path) {
  const Result<json::value> value = read_json_file(path);
  if (!value) return value.error();
  JsonReader reader(path.string(), *value);
  EndpointFile file;
  for (auto& [name, entry] : reader.required("models").entries()) file[name] = read_wish(entry);
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  for (const auto& [name, wish] : file) {
    const Result<Ok> checked = check_values(wish, path.string() + ": models." + one_line(name, 64));
    if (!checked) return checked.error();
  }
  return file;
}

}  // namespace rekernel
