#include "replay/model/endpoint.h"

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

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr const char* openai_address = "https://api.openai.com/v1";
constexpr std::string_view completions_path = "/chat/completions";
constexpr const char* openai_variable = "OPENAI_API_KEY";
constexpr std::size_t shortest_secret = 6;
/// A secret of this length is never written as a name or a word.
constexpr std::size_t shortest_unlikely_secret = 16;
constexpr std::int64_t longest_timeout_s = 7 * 86400;

/// Members of a request that the search decides on.
constexpr std::array own_members = {
    "model", "messages", "n", "stream", "stream_options", "max_tokens", "max_completion_tokens"};

template <class Value>
void overlay(std::optional<Value>& below, const std::optional<Value>& above) {
  if (above) below = above;
}

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

/// "1.25": digits, with a point among them or not.
bool is_price(std::string_view text) {
  const auto digits =
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  const auto points = std::count(text.begin(), text.end(), '.');
  return digits > 0 && digits <= 15 && points <= 1 &&
         static_cast<std::size_t>(digits + points) == text.size();
}

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

bool has_line_break(const std::string& text) {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
}

/// The value with "$NAME" and "${NAME}" replaced by what the environment holds; "$$" is a dollar.
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

/// Whether it is PEM with a certificate, and with nothing that cannot be read.
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

/// An object without the members that the search writes itself, as one text.
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

/// The longest first, since it may begin like another.
std::vector<std::string> secrets_of(const Endpoint& endpoint) {
  std::vector<std::string> secrets{endpoint.key};
  for (const HeaderLine& line : endpoint.headers) {
    if (!line.secret) continue;
    secrets.push_back(line.value);
    // "Bearer <secret>": an answer may repeat the second word alone.
    secrets.push_back(line.value.substr(line.value.rfind(' ') + 1));
  }
  std::sort(secrets.begin(), secrets.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  return secrets;
}

/// One model on its way to its endpoint.
class Resolution {
 public:
  Resolution(const ModelSettings& model, ModelsFrom from, const EndpointWish* entry,
             const EndpointWish& flags)
      : model_(model),
        trusted_(from == ModelsFrom::owner),
        // An entry of the owner's file says everything about the model, also what it leaves out.
        complete_(entry != nullptr),
        wish_(merged(entry ? *entry : EndpointWish{}, flags)),
        place_("model " + one_line(model.name, 64)) {}

  Result<Endpoint> run() {
    endpoint_.record.name = model_.name;
    for (const auto step :
         {&Resolution::check, &Resolution::choose_address, &Resolution::choose_key,
          &Resolution::choose_body, &Resolution::choose_headers, &Resolution::choose_authorities,
          &Resolution::choose_the_rest, &Resolution::check_scheme, &Resolution::check_record}) {
      if (Result<Ok> done = (this->*step)(); !done) return done.error();
    }
    return std::move(endpoint_);
  }

 private:
  ModelSettings& record() { return endpoint_.record; }

  /// Whether the recording holds something that its owner has not repeated.
  bool differs(bool said, const std::string& recorded, const std::string& chosen) const {
    return !said && !trusted_ && !complete_ && !model_.base_url.empty() && recorded != chosen;
  }

  Error unsaid(const std::string& what, const std::string& recorded,
               const std::string& flag) const {
    return {place_ + ": the trajectory was recorded with " + what + " " +
            (recorded.empty() ? "none" : "\"" + one_line(recorded, 128) + "\"") +
            ", which is not taken from a trajectory: give it, or another, by " + flag + " or in " +
            default_endpoint_file().string()};
  }

  Result<Ok> check() { return check_values(wish_, place_); }

  Result<Ok> choose_address() {
    const bool own = trusted_ && !model_.base_url.empty();
    record().base_url = wish_.base_url.value_or(own ? model_.base_url : openai_address);
    if (differs(wish_.base_url.has_value(), model_.base_url, record().base_url)) {
      return unsaid("the base URL", model_.base_url, "--base-url");
    }
    return Ok{};
  }

  Result<Ok> choose_key() {
    const bool own = trusted_ && !model_.key_variable.empty();
    const std::string usual = record().base_url == openai_address ? openai_variable : "";
    record().key_variable = wish_.key_variable.value_or(own ? model_.key_variable : usual);
    if (differs(wish_.key_variable.has_value(), model_.key_variable, record().key_variable)) {
      return unsaid("the key variable", model_.key_variable, "--key-variable ('' is none)");
    }
    const char* key =
        record().key_variable.empty() ? nullptr : std::getenv(record().key_variable.c_str());
    if (key) endpoint_.key = key;
    if (has_line_break(endpoint_.key)) {
      return Error{"the environment variable " + record().key_variable + " holds a line break"};
    }
    return Ok{};
  }

  Result<Ok> choose_body() {
    const std::string given = wish_.body.value_or(trusted_ ? model_.body : "");
    const Result<std::string> body = checked_body(given.empty() ? "{}" : given, place_);
    if (!body) return body.error();
    record().body = *body;
    if (differs(wish_.body.has_value(), model_.body, record().body)) {
      return unsaid("the body", model_.body, "--body ('' is none)");
    }
    return Ok{};
  }

  Result<Ok> choose_headers() {
    for (const auto& [name, value] : wish_.headers.value_or(std::map<std::string, std::string>{})) {
      Result<HeaderLine> line = header_line(name, value);
      if (!line) return Error{place_ + ": " + line.error().message};
      record().headers.push_back(name);
      endpoint_.headers.push_back(std::move(*line));
    }
    for (const std::string& name : model_.headers) {
      const bool given = wish_.headers && wish_.headers->contains(name);
      if (trusted_ && !given) return Error{place_ + ": header " + name + ": no value is given"};
    }
    if (differs(wish_.headers.has_value(), joined(model_.headers), joined(record().headers))) {
      return unsaid("the headers", joined(model_.headers), "--header ('' is none)");
    }
    return Ok{};
  }

  Result<Ok> choose_authorities() {
    if (!wish_.ca_file || wish_.ca_file->empty()) return Ok{};
    const Result<std::string> content = read_file(*wish_.ca_file);
    if (!content) return Error{place_ + ": CA file: " + content.error().message};
    if (!holds_certificates(*content)) {
      return Error{place_ + ": CA file: " + *wish_.ca_file +
                   ": expected certificates (-----BEGIN CERTIFICATE-----)"};
    }
    endpoint_.ca_file = *wish_.ca_file;
    record().ca_sha256 = sha256_hex(*content);
    return Ok{};
  }

  /// What can neither send a secret anywhere nor change what is asked stays as it was recorded.
  Result<Ok> choose_the_rest() {
    const ModelSettings before = complete_ ? ModelSettings{} : model_;
    record().ask_as = wish_.ask_as.value_or(before.ask_as);
    if (record().ask_as == model_.name) record().ask_as.clear();
    record().limit_field = wish_.limit_field.value_or(before.limit_field);
    if (record().limit_field == "auto") record().limit_field.clear();
    record().timeout_s = wish_.timeout_s.value_or(before.timeout_s);
    record().reply_tokens = wish_.reply_tokens.value_or(before.reply_tokens);
    record().stream = wish_.stream.value_or(before.stream);
    record().prompt_price = wish_.prompt_price.value_or(before.prompt_price);
    record().reply_price = wish_.reply_price.value_or(before.reply_price);
    return Ok{};
  }

  Result<Ok> check_scheme() {
    const bool secret =
        !endpoint_.key.empty() || std::any_of(endpoint_.headers.begin(), endpoint_.headers.end(),
                                              [](const HeaderLine& line) { return line.secret; });
    if (secret && !record().base_url.starts_with("https://") &&
        !is_this_machine(record().base_url)) {
      return Error{place_ + ": a key is sent over https only; " + record().base_url + " is not"};
    }
    return Ok{};
  }

  /// A trajectory is for everybody to read.
  Result<Ok> check_record() {
    const std::string text = json::serialize(to_json({record()}));
    for (const std::string& secret : secrets_of(endpoint_)) {
      if (secret.size() < shortest_unlikely_secret || text.find(secret) == std::string::npos) {
        continue;
      }
      return Error{place_ +
                   ": its base URL, body or name holds a key, which would be recorded: expected it "
                   "in --key-variable or, as $NAME, in a header alone"};
    }
    return Ok{};
  }

  const ModelSettings& model_;
  bool trusted_;
  bool complete_;
  EndpointWish wish_;
  std::string place_;
  Endpoint endpoint_;
};

}  // namespace

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

Result<std::vector<Endpoint>> resolve_endpoints(const std::vector<ModelSettings>& models,
                                                ModelsFrom from, const EndpointFile& file,
                                                const EndpointWish& flags) {
  std::vector<Endpoint> endpoints;
  for (const ModelSettings& model : models) {
    const auto entry = file.find(model.name);
    Result<Endpoint> endpoint =
        Resolution(model, from, entry == file.end() ? nullptr : &entry->second, flags).run();
    if (!endpoint) return endpoint.error();
    for (const Endpoint& other : endpoints) {
      if (other.record.name == model.name && !(other.record == endpoint->record)) {
        return Error{"model " + one_line(model.name, 64) +
                     " takes part twice, with different endpoints; give one of them another name "
                     "and \"ask_as\""};
      }
    }
    endpoints.push_back(std::move(*endpoint));
  }
  return endpoints;
}

std::string completions_address(std::string base_url) {
  return without_slashes_behind(std::move(base_url)) + std::string(completions_path);
}

bool is_this_machine(const std::string& address) {
  const std::size_t scheme = address.find("://");
  if (scheme == std::string::npos) return false;
  std::string_view host = std::string_view(address).substr(scheme + 3);
  host = host.substr(0, host.find('/'));
  const std::size_t port = host.rfind(':');
  const bool has_port = port != std::string_view::npos && host.find(']', port) == host.npos;
  if (has_port && (host.starts_with('[') || host.find(':') == port)) host = host.substr(0, port);
  return host == "127.0.0.1" || host == "[::1]" || host == "localhost";
}

std::string masked(const Endpoint& endpoint, std::string text, Masking masking) {
  const std::size_t shortest = masking == Masking::replies ? shortest_secret : 1;
  for (const std::string& secret : secrets_of(endpoint)) {
    if (secret.size() < shortest) continue;
    constexpr std::string_view mask = "[key]";
    for (std::size_t at = 0; (at = text.find(secret, at)) != std::string::npos; at += mask.size()) {
      text.replace(at, secret.size(), mask);
    }
  }
  return text;
}

std::optional<double> cost_usd(const ModelSettings& model, std::int64_t prompt_tokens,
                               std::int64_t reply_tokens) {
  if (!is_price(model.prompt_price) || !is_price(model.reply_price)) return std::nullopt;
  constexpr double million = 1e6;
  return (static_cast<double>(prompt_tokens) * std::strtod(model.prompt_price.c_str(), nullptr) +
          static_cast<double>(reply_tokens) * std::strtod(model.reply_price.c_str(), nullptr)) /
         million;
}

}  // namespace rekernel
