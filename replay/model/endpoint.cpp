#include "replay/model/endpoint.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "replay/model/endpoint_values.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr const char* openai_address = "https://api.openai.com/v1";
constexpr const char* openai_variable = "OPENAI_API_KEY";
constexpr std::size_t shortest_secret = 6;
/// A secret of this length is never written as a name or a word.
constexpr std::size_t shortest_unlikely_secret = 16;

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
