#include "replay/model_openai.h"

#include <curl/curl.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <stdexcept>

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

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

bool is_this_machine(const std::string& url) {
  const std::string_view rest = std::string_view(url).substr(url.find("://") + 3);
  const std::string_view host = rest.substr(0, rest.find('/'));
  return host.starts_with("127.0.0.1:") || host == "127.0.0.1" || host.starts_with("[::1]") ||
         host.starts_with("localhost:") || host == "localhost";
}

bool may_succeed_later(long status) {
  return status == 408 || status == 409 || status == 425 || status == 429 || status >= 500;
}

std::string request_body(const ModelRequest& request, std::int64_t reply_tokens) {
  json::object body{
      {"model", request.model},
      {"messages", json::array{json::object{{"role", "user"}, {"content", request.prompt}}}}};
  if (reply_tokens > 0) body["max_completion_tokens"] = reply_tokens;
  return canonical_json(body);
}

void curl_check(CURLMcode code) {
  if (code != CURLM_OK) throw std::runtime_error(std::string("curl: ") + curl_multi_strerror(code));
}

}  // namespace

/// One request and its attempts.
struct OpenAiModel::Exchange {
  std::size_t index = 0;
  const Endpoint* endpoint = nullptr;
  std::string request_body;
  int attempts = 0;
  Clock::time_point not_before{};
  std::string body;
  bool too_long = false;
  std::unique_ptr<curl_slist, FreeList> headers;
  std::unique_ptr<CURL, FreeEasy> handle;

  static std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
    auto* exchange = static_cast<Exchange*>(user);
    if (exchange->body.size() + size * count > max_body_bytes) {
      exchange->too_long = true;
      return 0;
    }
    exchange->body.append(data, size * count);
    return size * count;
  }

  void start(CURLM* multi, const OpenAiOptions& options) {
    ++attempts;
    body.clear();
    too_long = false;
    handle.reset(curl_easy_init());
    if (!handle) throw std::runtime_error("curl: no handle");
    headers.reset();
    add_header("Content-Type: application/json");
    add_header("Expect:");
    if (!endpoint->key.empty()) add_header("Authorization: Bearer " + endpoint->key);
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, endpoint->url.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request_body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request_body.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);  // a key goes nowhere else
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(options.connect_timeout.count()));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(options.total_timeout.count()));
    curl_check(curl_multi_add_handle(multi, curl));
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
      exchange->endpoint = &model.endpoints_.at(requests[i].model);
      exchange->request_body = rekernel::request_body(requests[i], options_.reply_tokens);
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
      if (!failure_) start_those_due();
      int active = 0;
      curl_check(curl_multi_perform(multi_.get(), &active));
      collect_finished();
      if (stopped_ || (running_.empty() && (failure_ || waiting_.empty()))) break;
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
      (*it)->start(multi_.get(), options_);
      running_.push_back(std::move(*it));
      it = waiting_.erase(it);
    }
  }

  /// Until the next paused request is due, if there is room for it.
  int pause_ms() const {
    constexpr std::int64_t longest = 1000;
    std::int64_t pause = longest;
    if (running_.size() < static_cast<std::size_t>(options_.concurrency) && !failure_) {
      for (const auto& exchange : waiting_) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            exchange->not_before - Clock::now());
        pause = std::min<std::int64_t>(pause, std::max<std::int64_t>(0, left.count() + 1));
      }
    }
    return static_cast<int>(pause);
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
      return deliver(*exchange, std::move(reply));
    }
    if (code != CURLE_OK) {
      return try_again(std::move(exchange), curl_easy_strerror(code), 0);
    }
    if (status != 200) {
      const std::string what = "HTTP status " + std::to_string(status) + body_text(*exchange);
      if (may_succeed_later(status)) return try_again(std::move(exchange), what, retry_after);
      return fail(*exchange, what + hint(*exchange, status));
    }
    if (auto reply = reply_from_completion(exchange->body))
      return deliver(*exchange, std::move(*reply));
    const std::string what = "not a chat completion" + body_text(*exchange);
    try_again(std::move(exchange), what, 0);
  }

  void deliver(const Exchange& exchange, ModelReply reply) {
    if (stopped_) return;
    if (!arrived_(exchange.index, std::move(reply))) stopped_ = true;
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
    exchange->handle.reset();
    waiting_.push_back(std::move(exchange));
  }

  void fail(const Exchange& exchange, const std::string& what) {
    if (failure_) return;
    const ModelRequest& request = requests_[exchange.index];
    failure_ = Interruption{Kind::failed, "model " + request.model + ", request " + request.id +
                                              ": " + without_key(exchange, what) +
                                              "; the same command goes on from here"};
  }

  static std::string hint(const Exchange& exchange, long status) {
    if (status != 401 || !exchange.endpoint->key.empty()) return "";
    return exchange.endpoint->key_variable.empty()
               ? " (no key variable is set for this model)"
               : " (the environment variable " + exchange.endpoint->key_variable + " is not set)";
  }

  static std::string body_text(const Exchange& exchange) {
    if (exchange.body.empty()) return "";
    return ": " + printable(without_key(exchange, exchange.body), shown_body_bytes);
  }

  static std::string without_key(const Exchange& exchange, std::string text) {
    const std::string& key = exchange.endpoint->key;
    for (std::size_t at; !key.empty() && (at = text.find(key)) != std::string::npos;) {
      text.replace(at, key.size(), "[key]");
    }
    return text;
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

OpenAiModel::OpenAiModel(const OpenAiOptions& options) : options_(options) {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    throw std::runtime_error("curl cannot be initialised");
  }
}

OpenAiModel::~OpenAiModel() { curl_global_cleanup(); }

Result<std::unique_ptr<OpenAiModel>> OpenAiModel::make(const std::vector<ModelSettings>& models,
                                                       const OpenAiOptions& options) {
  std::unique_ptr<OpenAiModel> result(new OpenAiModel(options));
  for (const ModelSettings& model : models) {
    if (model.base_url.empty()) return Error{"model " + model.name + ": no base URL"};
    Endpoint endpoint{model.base_url, "", model.key_variable};
    while (endpoint.url.ends_with('/')) endpoint.url.pop_back();
    endpoint.url += "/chat/completions";
    const char* key =
        model.key_variable.empty() ? nullptr : std::getenv(model.key_variable.c_str());
    if (key) endpoint.key = key;
    if (endpoint.key.find_first_of("\r\n") != std::string::npos) {
      return Error{"the environment variable " + model.key_variable + " holds a line break"};
    }
    if (!endpoint.key.empty() && !model.base_url.starts_with("https://") &&
        !is_this_machine(model.base_url)) {
      return Error{"model " + model.name + ": a key is sent over https only; " + model.base_url +
                   " is not"};
    }
    result->endpoints_[model.name] = std::move(endpoint);
  }
  return result;
}

std::optional<Interruption> OpenAiModel::ask(std::span<const ModelRequest> requests,
                                             const Arrived& arrived) {
  for (const ModelRequest& request : requests) {
    if (!endpoints_.contains(request.model)) {
      return Interruption{Kind::failed, "model " + request.model + ": no endpoint is known"};
    }
  }
  return Batch(*this, requests, arrived).run();
}

}  // namespace rekernel
