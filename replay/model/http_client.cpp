#include "replay/model/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>

#include "harness/base/utf8.h"

namespace rekernel {
namespace {

constexpr std::size_t shown_bytes = 300;

struct FreeEasy {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeMulti {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

void curl_check(CURLMcode code) {
  if (code != CURLM_OK) throw std::runtime_error(std::string("curl: ") + curl_multi_strerror(code));
}

/// By curl's and OpenSSL's words for a connection that ended before any certificate was checked.
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

/// Failures of a connection that a retry does not fix.
bool is_lasting(CURLcode code) {
  return code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL;
}

}  // namespace

HttpLibrary::HttpLibrary() {
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
    throw std::runtime_error("curl cannot be initialised");
  }
}

HttpLibrary::~HttpLibrary() { curl_global_cleanup(); }

struct HttpClient::Multi {
  std::unique_ptr<CURLM, FreeMulti> handle{curl_multi_init()};
};

struct HttpClient::Exchange {
  HttpPost post;
  std::array<char, CURL_ERROR_SIZE> trouble{};  ///< with the connection, in curl's words
  std::unique_ptr<curl_slist, FreeList> headers;
  std::unique_ptr<CURL, FreeEasy> handle;

  explicit Exchange(HttpPost given) : post(std::move(given)), handle(curl_easy_init()) {
    if (!handle) throw std::runtime_error("curl: no handle");
    for (const std::string& line : post.headers) add_header(line);
    add_header("Expect:");
    CURL* curl = handle.get();
    curl_easy_setopt(curl, CURLOPT_URL, post.url.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(post.body.size()));
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post.body.c_str());
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, this);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, trouble.data());
    curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");  // some send it unasked
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);  // a key goes nowhere else
    // An empty name means none, whatever the environment says.
    if (post.past_proxies) curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (!post.ca_file.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, post.ca_file.c_str());
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(post.connect_timeout.count()));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(post.timeout.count()));
  }

  static std::size_t receive(char* data, std::size_t size, std::size_t count, void* user) {
    const std::string_view bytes(data, size * count);
    return static_cast<Exchange*>(user)->post.take(bytes) ? bytes.size() : 0;
  }

  void add_header(const std::string& line) {
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    if (!longer) throw std::bad_alloc();
    (void)headers.release();
    headers.reset(longer);
  }

  HttpOutcome outcome(CURLcode code) const {
    HttpOutcome outcome;
    curl_off_t retry_after = 0;
    const char* address = nullptr;
    curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &outcome.status);
    curl_easy_getinfo(handle.get(), CURLINFO_RETRY_AFTER, &retry_after);
    curl_easy_getinfo(handle.get(), CURLINFO_REDIRECT_URL, &address);
    outcome.retry_after_s = retry_after;
    if (address) outcome.sent_on_to = address;
    if (code != CURLE_OK) note_trouble(code, outcome);
    return outcome;
  }

  void note_trouble(CURLcode code, HttpOutcome& outcome) const {
    outcome.trouble = trouble_text(code);
    outcome.trouble_lasts = true;
    if (speaks_no_tls(outcome.trouble)) {
      outcome.trouble += " (no TLS is spoken there; expected http:// before it?)";
    } else if (is_disbelieved(handle.get(), code, outcome.trouble)) {
      outcome.trouble = "its certificate is not trusted: " + outcome.trouble +
                        " (--ca-file names the authorities to trust)";
    } else {
      outcome.trouble_lasts = is_lasting(code);
    }
  }

  std::string trouble_text(CURLcode code) const {
    const std::string what = curl_easy_strerror(code);
    if (code == CURLE_OPERATION_TIMEDOUT)
      return what + " (" + whole_seconds_text(post.timeout) + ")";
    const std::string more = post.without_secrets(trouble.data());
    const bool may_hold_password = more.find('@') != std::string::npos;  // of a proxy's address
    return more.empty() || may_hold_password ? what : one_line(more, shown_bytes);
  }
};

HttpClient::HttpClient() : multi_(std::make_unique<Multi>()) {
  if (!multi_->handle) throw std::runtime_error("curl: no handle");
}

HttpClient::~HttpClient() {
  for (const auto& [id, exchange] : exchanges_) {
    curl_multi_remove_handle(multi_->handle.get(), exchange->handle.get());
  }
}

void HttpClient::start(std::size_t id, HttpPost post) {
  auto exchange = std::make_unique<Exchange>(std::move(post));
  curl_check(curl_multi_add_handle(multi_->handle.get(), exchange->handle.get()));
  exchanges_[id] = std::move(exchange);
}

std::vector<std::pair<std::size_t, HttpOutcome>> HttpClient::go_on() {
  int active = 0;
  curl_check(curl_multi_perform(multi_->handle.get(), &active));
  std::vector<std::pair<std::size_t, HttpOutcome>> ended;
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_->handle.get(), &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    const auto found = std::find_if(exchanges_.begin(), exchanges_.end(), [&](const auto& one) {
      return one.second->handle.get() == message->easy_handle;
    });
    curl_multi_remove_handle(multi_->handle.get(), found->second->handle.get());
    ended.emplace_back(found->first, found->second->outcome(code));
    exchanges_.erase(found);
  }
  return ended;
}

void HttpClient::wait(std::chrono::milliseconds time) {
  curl_check(
      curl_multi_poll(multi_->handle.get(), nullptr, 0, static_cast<int>(time.count()), nullptr));
}

std::string whole_seconds_text(std::chrono::milliseconds time) {
  return std::to_string((time.count() + 999) / 1000) + " s";
}

}  // namespace rekernel
