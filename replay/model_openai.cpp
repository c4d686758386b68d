#include "replay/model_openai.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <stdexcept>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "replay/chat_completion.h"
#include "replay/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using Kind = Interruption::Kind;

/// The JSON round a reply, with every character escaped, is bigger than the reply.
constexpr std::size_t max_body_bytes = 6 * max_reply_bytes + (1u << 20);
constexpr std::size_t shown_body_bytes = 300;
constexpr std::size_t shown_ids = 4;

constexpr const char* base_url_hint =
    " (expected a base URL of OpenAI's protocol; most end in /v1)";
constexpr const char* new_limit = "max_completion_tokens";
constexpr const char* old_limit = "max_tokens";

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

bool may_succeed_later(long status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

/// By curl's and OpenSSL's words for a connection that ended before anybody was believed or not.
bool broke_off(const std::string& trouble) {
  constexpr std::array words = {"SSL_ERROR_SYSCALL", "Connection reset", "unexpected eof"};
  return std::any_of(words.begin(), words.end(),
                     [&](const char* said) { return trouble.find(said) != std::string::npos; });
}

/// Whether nothing is sent since it could be read by somebody else.
bool is_disbelieved(CURL* handle, CURLcode code, const std::string& trouble) {
  long result = 0;  // of the certificate: other failures of a handshake may pass
  curl_easy_getinfo(handle, CURLINFO_SSL_VERIFYRESULT, &result);
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         (code == CURLE_SSL_CONNECT_ERROR && result != 0 && !broke_off(trouble));
}

/// By OpenSSL's words for an answer that is no TLS.
bool speaks_no_tls(const std::string& trouble) {
  return trouble.find("wrong version number") != std::string::npos;
}

/// Failures of a connection that no repetition mends.
bool is_lasting(CURLcode code) {
  return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
}

/// Nothing if it is no JSON.
std::optional<json::value> json_of(const std::string& body) {
  json::error_code status;
  json::value value = json::parse(body, status);
  if (status) return std::nullopt;
  return value;
}

/// A JSON object that is no completion and no error either comes from another protocol, every time.
bool speaks_another_protocol(const std::string& body) {
  const std::optional<json::value> value = json_of(body);
  const json::object* object = value ? value->if_object() : nullptr;
  return object && !object->contains("choices") && !object->contains("error");
}

/// What an error of OpenAI's protocol says; empty texts if the body is none.
struct ErrorWords {
  std::string message;
  std::string code;
  std::string type;

  explicit ErrorWords(const std::string& body) {
    const std::optional<json::value> value = json_of(body);
    const json::object* object = value ? value->if_object() : nullptr;
    const json::value* error = object ? object->if_contains("error") : nullptr;
    const json::object* details = error ? error->if_object() : nullptr;
    if (!details) return;
    for (auto [name, text] : {std::pair{"message", &message}, {"code", &code}, {"type", &type}}) {
      const json::value* member = details->if_contains(name);
      if (member && member->is_string()) *text = std::string_view(member->get_string());
    }
  }

  /// Status 429 as well, but no pause mends it.
  bool is_out_of_credit() const {
    constexpr const char* word = "insufficient_quota";
    return code == word || type == word;
  }
};

/// Whether an answer says that there is no such model, and not that there is no such address.
bool is_unknown_model(long status, const std::string& error, const std::string& model) {
  const auto says = [&](std::string_view words) { return error.find(words) != std::string::npos; };
  const bool refused = status == 404 || (status == 400 && says("nvalid model"));
  return refused && says("model") && says(model);
}

void curl_check(CURLMcode code) {
  if (code != CURLM_OK) throw std::runtime_error(std::string("curl: ") + curl_multi_strerror(code));
}

}  // namespace

struct OpenAiModel::Target {
  Endpoint endpoint;
  std::string url;
  std::int64_t reply_tokens = 0;
  std::string limit_field;   ///< as it is sent
  bool limit_known = false;  ///< by the owner, or by an answer

  Target(Endpoint given, const OpenAiOptions& options) : endpoint(std::move(given)) {
    const ModelSettings& record = endpoint.record;
    url = completions_address(record.base_url);
    reply_tokens = record.reply_tokens > 0 ? record.reply_tokens : options.reply_tokens;
    limit_known = !record.limit_field.empty();
    limit_field = limit_known ? record.limit_field : new_limit;
  }

  const std::string& asked_as(const ModelRequest& request) const {
    return endpoint.record.ask_as.empty() ? request.model : endpoint.record.ask_as;
  }

  std::string request_body(const ModelRequest& request) const {
    const ModelSettings& record = endpoint.record;
    json::object body;
    if (!record.body.empty()) body = json::parse(record.body).as_object();
    body["model"] = asked_as(request);
    body["messages"] =
        json::array{json::object{{"role", "user"}, {"content", request.prompt.text()}}};
    if (reply_tokens > 0) body[limit_field] = reply_tokens;
    if (record.stream) {
      body["stream"] = true;
      body["stream_options"] = json::object{{"include_usage", true}};
    }
    return json::serialize(body);
  }

  /// Whether an answer refuses the name of the limit that was sent, and the other is worth a try.
  bool refuses_limit(long status, const std::string& body, const std::string& sent) const {
    if (reply_tokens == 0 || (status != 400 && status != 422)) return false;
    return (!limit_known || sent != limit_field) && body.find(sent) != std::string::npos;
  }
  void take_other_limit() {
    if (limit_known) return;
    limit_field = limit_field == new_limit ? old_limit : new_limit;
    limit_known = true;
  }
  /// An endpoint that does not know a member may ignore it.
  bool ignores_limit(const ModelReply& reply) const {
    return !limit_known && reply_tokens > 0 && reply.completion_tokens &&
           *reply.completion_tokens > reply_tokens;
  }
};

/// One request and its attempts.
struct OpenAiModel::Exchange {
  std::size_t index = 0;
  Target* target = nullptr;
  std::string request_body;
  std::string sent_limit;
  int attempts = 0;
  Clock::time_point not_before{};
  std::string body;  ///< of a streamed answer, its first bytes alone
  std::optional<StreamedCompletion> streamed;
  bool too_long = false;
  std::array<char, CURL_ERROR_SIZE> trouble{};  ///< with the connection, in curl's words
  std::unique_ptr<curl_slist, FreeList> headers;
  std::unique_ptr<CURL, FreeEasy> handle;

  static std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
    auto* exchange = static_cast<Exchange*>(user);
    const std::string_view bytes(data, size * count);
    return exchange->take(bytes) ? bytes.size() : 0;
  }

  bool take(std::string_view bytes) {
    if (body.empty() && !streamed && looks_streamed(bytes)) streamed.emplace();
    if (streamed) {
      body += bytes.substr(0, shown_body_bytes - std::min(body.size(), shown_body_bytes));
      too_long = !streamed->take(bytes);
    } else if (body.size() + bytes.size() > max_body_bytes) {
      too_long = true;
    } else {
      body += bytes;
    }
    return !too_long;
  }

  void start(CURLM* multi, const OpenAiOptions& options, const ModelRequest& request) {
    ++attempts;
    body.clear();
    streamed.reset();
    too_long = false;
    request_body = target->request_body(request);
    sent_limit = target->limit_field;
    handle.reset(curl_easy_init());
    if (!handle) throw std::runtime_error("curl: no handle");
    headers.reset();
    add_header("Content-Type: application/json");
    add_header("Expect:");
    const Endpoint& endpoint = target->endpoint;
    if (!endpoint.key.empty()) add_header("Authorization: Bearer " + endpoint.key);
    for (const HeaderLine& line : endpoint.headers) add_header(line.name + ": " + line.value);
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, target->url.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request_body.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
    trouble.fill('\0');
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, trouble.data());
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");  // some send it unasked
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);  // a key goes nowhere else
    // An empty name means none, whatever the environment says.
    if (is_this_machine(target->url)) curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (!endpoint.ca_file.empty()) {
      curl_easy_setopt(curl, CURLOPT_CAINFO, endpoint.ca_file.c_str());
    }
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(options.connect_timeout.count()));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout(options).count()));
    curl_check(curl_multi_add_handle(multi, curl));
  }

  std::chrono::milliseconds timeout(const OpenAiOptions& options) const {
    const std::int64_t own = target->endpoint.record.timeout_s;
    return own > 0 ? std::chrono::milliseconds(own * 1000) : options.total_timeout;
  }

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    if (!longer) throw std::bad_alloc();
    (void)headers.release();
    headers.reset(longer);
  }
};

/// All requests of one call of ask().
class OpenAiModel::Batch {
 public:
  Batch(const OpenAiModel& model, std::span<const ModelRequest> requests, const Arrived& arrived)
      : options_(model.options_),
        requests_(requests),
        arrived_(arrived),
        multi_(curl_multi_init()) {
    if (!multi_) throw std::runtime_error("curl: no handle");
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto exchange = std::make_unique<Exchange>();
      exchange->index = i;
      exchange->target = model.targets_.at(requests[i].model).get();
      waiting_.push_back(std::move(exchange));
    }
  }

  ~Batch() {
    for (const auto& exchange : running_) {
      curl_multi_remove_handle(multi_.get(), exchange->handle.get());
    }
  }

  /// Once one request has failed for good, no other is started, but those under way are awaited:
  /// their replies are paid for.
  std::optional<Interruption> run() {
    while (!stopped_ && (!running_.empty() || (!failure_ && !waiting_.empty()))) {
      if (options_.deadline && Clock::now() >= *options_.deadline) return at_deadline();
      if (!failure_) start_those_due();
      int active = 0;
      curl_check(curl_multi_perform(multi_.get(), &active));
      collect_finished();
      if (stopped_ || (running_.empty() && (failure_ || waiting_.empty()))) break;
      show_progress();
      curl_check(curl_multi_poll(multi_.get(), nullptr, 0, pause_ms(), nullptr));
    }
    return std::move(failure_);
  }

 private:
  void start_those_due() {
    const Clock::time_point now = Clock::now();
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (running_.size() >= static_cast<std::size_t>(options_.concurrency)) return;
      if ((*it)->not_before > now) {
        ++it;
        continue;
      }
      (*it)->start(multi_.get(), options_, requests_[(*it)->index]);
      running_.push_back(std::move(*it));
      it = waiting_.erase(it);
    }
  }

  static std::chrono::milliseconds until(Clock::time_point time) {
    return std::max(std::chrono::milliseconds(0),
                    std::chrono::duration_cast<std::chrono::milliseconds>(time - Clock::now()));
  }

  /// Until the next paused request is due, if there is room for it, or the deadline.
  int pause_ms() const {
    std::chrono::milliseconds pause(1000);
    if (options_.deadline)
      pause = std::min(pause, until(*options_.deadline) + std::chrono::milliseconds(1));
    if (running_.size() < static_cast<std::size_t>(options_.concurrency) && !failure_) {
      for (const auto& exchange : waiting_) {
        pause = std::min(pause, until(exchange->not_before) + std::chrono::milliseconds(1));
      }
    }
    return static_cast<int>(pause.count());
  }

  void show_progress() const {
    if (!options_.progress) return;
    std::string text = "waiting for " + std::to_string(running_.size() + waiting_.size()) + " of " +
                       std::to_string(requests_.size()) + " replies";
    const Exchange* next = nullptr;
    for (const auto& exchange : waiting_) {
      const bool paused = exchange->not_before > Clock::now();
      if (paused && (!next || exchange->not_before < next->not_before)) next = exchange.get();
    }
    if (next) {
      text += "; " + requests_[next->index].id + " again in " +
              seconds_text(std::chrono::ceil<std::chrono::seconds>(until(next->not_before)));
    }
    if (options_.deadline)
      text += "; the deadline is in " +
              seconds_text(std::chrono::ceil<std::chrono::seconds>(until(*options_.deadline)));
    options_.progress(text);
  }

  Interruption at_deadline() {
    std::string ids;
    std::size_t count = 0;
    for (const auto* list : {&running_, &waiting_}) {
      for (const auto& exchange : *list) {
        if (++count > shown_ids) continue;
        ids += (ids.empty() ? "" : ", ") + requests_[exchange->index].id;
      }
    }
    if (count > shown_ids) ids += ", …";
    return {Kind::waiting, "the deadline passed while " + std::to_string(count) +
                               (count == 1 ? " reply was" : " replies were") + " awaited (" + ids +
                               "); --resume asks for " + (count == 1 ? "it" : "them") + " again"};
  }

  void collect_finished() {
    int left = 0;
    while (CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      CURL* handle = message->easy_handle;
      const CURLcode code = message->data.result;
      const auto found = std::find_if(running_.begin(), running_.end(), [&](const auto& exchange) {
        return exchange->handle.get() == handle;
      });
      std::unique_ptr<Exchange> exchange = std::move(*found);
      running_.erase(found);
      curl_multi_remove_handle(multi_.get(), handle);
      finish(std::move(exchange), code);
    }
  }

  void finish(std::unique_ptr<Exchange> exchange, CURLcode code) {
    long status = 0;
    curl_off_t retry_after = 0;
    curl_easy_getinfo(exchange->handle.get(), CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(exchange->handle.get(), CURLINFO_RETRY_AFTER, &retry_after);
    if (exchange->too_long) {
      ModelReply reply;
      reply.failure = "the answer has more than " + std::to_string(max_body_bytes) + " bytes";
      return deliver(std::move(exchange), std::move(reply));
    }
    if (code != CURLE_OK) {
      const std::string what = connection_text(*exchange, code);
      CURL* const handle = exchange->handle.get();
      if (speaks_no_tls(what)) {
        return fail(*exchange, what + " (no TLS is spoken there; expected http:// before it?)");
      }
      if (is_disbelieved(handle, code, what)) {
        return fail(*exchange, "its certificate is not believed: " + what +
                                   " (--ca-file names the authorities to believe)");
      }
      if (is_lasting(code)) return fail(*exchange, what);
      return try_again(std::move(exchange), what, 0);
    }
    if (status != 200) return finish_refused(std::move(exchange), status, retry_after);
    if (!exchange->streamed && looks_streamed(exchange->body)) {  // its first bytes came one by one
      exchange->streamed.emplace().take(exchange->body);
    }
    if (auto reply = exchange->streamed ? exchange->streamed->reply()
                                        : reply_from_completion(exchange->body)) {
      return deliver(std::move(exchange), std::move(*reply));
    }
    finish_unreadable(std::move(exchange));
  }

  void finish_refused(std::unique_ptr<Exchange> exchange, long status, curl_off_t retry_after) {
    Target& target = *exchange->target;
    if (target.refuses_limit(status, exchange->body, exchange->sent_limit)) {
      say(*exchange, "does not take " + exchange->sent_limit + body_text(*exchange));
      target.take_other_limit();
      --exchange->attempts;
      waiting_.push_back(std::move(exchange));
      return;
    }
    const std::string what = "HTTP status " + std::to_string(status) + body_text(*exchange);
    if (may_succeed_later(status) && !ErrorWords(exchange->body).is_out_of_credit()) {
      return try_again(std::move(exchange), what, retry_after);
    }
    fail(*exchange, what + hint(*exchange, status));
  }

  void finish_unreadable(std::unique_ptr<Exchange> exchange) {
    if (exchange->streamed) {
      const std::string& trouble = exchange->streamed->trouble();
      return try_again(std::move(exchange),
                       trouble.empty() ? "the stream ended early"
                                       : "in the stream: " + one_line(trouble, shown_body_bytes),
                       0);
    }
    const std::string what = "not a chat completion" + body_text(*exchange);
    if (speaks_another_protocol(exchange->body)) {
      return fail(*exchange, what + " (another API? expected OpenAI's /chat/completions)");
    }
    const bool is_page = exchange->body.starts_with('<');
    try_again(std::move(exchange), what + (is_page ? base_url_hint : ""), 0);
  }

  void deliver(std::unique_ptr<Exchange> exchange, ModelReply reply) {
    if (stopped_) return;
    Target& target = *exchange->target;
    if (target.ignores_limit(reply)) {
      say(*exchange, "ignores " + target.limit_field);
      target.take_other_limit();
    }
    reply.text = masked(target.endpoint, std::move(reply.text), Masking::replies);
    reply.failure = masked(target.endpoint, std::move(reply.failure), Masking::messages);
    const Reception reception = arrived_(exchange->index, std::move(reply));
    stopped_ = reception.next == Reception::Next::stop;
    if (reception.next != Reception::Next::ask_again) return;
    exchange->attempts = 0;
    exchange->handle.reset();
    // First of all: a model of no use shows before all of a long round is asked.
    waiting_.insert(waiting_.begin(), std::move(exchange));
  }

  void try_again(std::unique_ptr<Exchange> exchange, const std::string& what,
                 std::int64_t retry_after_s) {
    if (exchange->attempts >= options_.attempts) {
      return fail(*exchange, what + ", after " + std::to_string(exchange->attempts) + " attempts");
    }
    auto pause = options_.first_pause;
    for (int i = 1; i < exchange->attempts && pause < options_.longest_pause; ++i) pause *= 2;
    // The server knows better, within reason.
    const std::int64_t bounded_s = std::min<std::int64_t>(retry_after_s, 86400);
    pause = std::max(pause, std::chrono::milliseconds(bounded_s * 1000));
    pause = std::min(pause, options_.longest_pause);
    exchange->not_before = Clock::now() + pause;
    say(*exchange, what + "; " + requests_[exchange->index].id + " again in " +
                       seconds_text(std::chrono::ceil<std::chrono::seconds>(pause)) + " (attempt " +
                       std::to_string(exchange->attempts + 1) + " of " +
                       std::to_string(options_.attempts) + ")");
    exchange->handle.reset();
    waiting_.push_back(std::move(exchange));
  }

  void say(const Exchange& exchange, const std::string& what) const {
    if (!options_.say) return;
    options_.say("model " + requests_[exchange.index].model + ", " + exchange.target->url + ": " +
                 without_key(exchange, what));
  }

  void fail(const Exchange& exchange, const std::string& what) {
    if (failure_) return;
    const ModelRequest& request = requests_[exchange.index];
    failure_ =
        Interruption{Kind::failed, "model " + request.model + ", request " + request.id + ", " +
                                       exchange.target->url + ": " + without_key(exchange, what) +
                                       "; the same command goes on from here, --resume also with "
                                       "another --base-url, --ask-as or --key-variable"};
  }

  std::string hint(const Exchange& exchange, long status) const {
    const Endpoint& endpoint = exchange.target->endpoint;
    const std::string& model = exchange.target->asked_as(requests_[exchange.index]);
    const std::string error = ErrorWords(exchange.body).message;
    if (is_unknown_model(status, error, model)) {
      return " (asked for is \"" + model + "\"; --ask-as gives the name that is known there)";
    }
    if (status == 400 && error.find("context length") != std::string::npos) {
      return " (a new search with --prompt-tokens asks in shorter prompts)";
    }
    if (status == 404 || status == 405) {
      return base_url_hint;
    }
    if (status >= 300 && status < 400) return " (" + moved_to(exchange) + ")";
    if (status != 401 || !endpoint.key.empty()) return "";
    return endpoint.record.key_variable.empty()
               ? " (no key is sent; --key-variable names the environment variable that holds one)"
               : " (the environment variable " + endpoint.record.key_variable + " is not set)";
  }

  static std::string moved_to(const Exchange& exchange) {
    const char* address = nullptr;
    curl_easy_getinfo(exchange.handle.get(), CURLINFO_REDIRECT_URL, &address);
    const std::string text = address ? one_line(address, 256) : "another address";
    return "it sends on to " + text.substr(0, text.find('?')) +
           ", and no key follows: --base-url gives the right address";
  }

  std::string connection_text(const Exchange& exchange, CURLcode code) const {
    const std::string what = curl_easy_strerror(code);
    if (code == CURLE_OPERATION_TIMEDOUT) {
      return what + " (" +
             seconds_text(std::chrono::ceil<std::chrono::seconds>(exchange.timeout(options_))) +
             ")";
    }
    const std::string more = without_key(exchange, exchange.trouble.data());
    const bool may_hold_password = more.find('@') != std::string::npos;  // of a proxy's address
    return more.empty() || may_hold_password ? what : one_line(more, shown_body_bytes);
  }

  /// JSON as this program writes it: an escaped key would not be found.
  static std::string body_text(const Exchange& exchange) {
    if (exchange.body.empty()) return "";
    const std::optional<json::value> value = json_of(exchange.body);
    const std::string text = value ? json::serialize(*value) : exchange.body;
    return ": " + one_line(without_key(exchange, text), shown_body_bytes);
  }

  static std::string without_key(const Exchange& exchange, std::string text) {
    return masked(exchange.target->endpoint, std::move(text), Masking::messages);
  }

  const OpenAiOptions& options_;
  std::span<const ModelRequest> requests_;
  const Arrived& arrived_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::vector<std::unique_ptr<Exchange>> waiting_;
  std::vector<std::unique_ptr<Exchange>> running_;
  std::optional<Interruption> failure_;
  bool stopped_ = false;
};

OpenAiModel::OpenAiModel(std::vector<Endpoint> endpoints, OpenAiOptions options)
    : options_(std::move(options)) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    throw std::runtime_error("curl cannot be initialised");
  }
  for (Endpoint& endpoint : endpoints) {
    const std::string name = endpoint.record.name;
    targets_[name] = std::make_unique<Target>(std::move(endpoint), options_);
  }
}

OpenAiModel::~OpenAiModel() { curl_global_cleanup(); }

std::optional<Interruption> OpenAiModel::ask(std::span<const ModelRequest> requests,
                                             const Arrived& arrived) {
  for (const ModelRequest& request : requests) {
    if (!targets_.contains(request.model)) {
      return Interruption{Kind::failed, "model " + request.model + ": no endpoint is known"};
    }
  }
  return Batch(*this, requests, arrived).run();
}

}  // namespace rekernel
