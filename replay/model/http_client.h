#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rekernel {

/// What is sent to a server, and who takes its answer.
struct HttpPost {
  std::string url;
  std::vector<std::string> headers;
  std::string body;
  std::filesystem::path ca_file;  ///< with the trusted authorities; empty: the machine's
  bool past_proxies = false;
  std::chrono::milliseconds connect_timeout{0};
  std::chrono::milliseconds timeout{0};
  /// Takes the next bytes of the answer's body; false: no more of it is wanted.
  std::function<bool(std::string_view)> take;
  /// Cuts secrets out of what is said of the connection.
  std::function<std::string(std::string)> without_secrets;
};

/// How an exchange with a server ended.
struct HttpOutcome {
  std::string trouble;         ///< with the connection; empty if there is an answer
  bool trouble_lasts = false;  ///< a retry would not fix it
  long status = 0;
  std::int64_t retry_after_s = 0;
  std::string sent_on_to;  ///< the address of a redirection, which is not followed
};

/// While it lives, HttpClient can be used. Throws where it cannot.
class HttpLibrary {
 public:
  HttpLibrary();
  ~HttpLibrary();
  HttpLibrary(const HttpLibrary&) = delete;
  HttpLibrary& operator=(const HttpLibrary&) = delete;
};

/// Exchanges with servers, several at once, in one thread. Ends those under way as it goes.
class HttpClient {
 public:
  HttpClient();
  ~HttpClient();

  /// `id` names the exchange among those under way.
  void start(std::size_t id, HttpPost post);
  /// Goes on with all exchanges as far as that is possible without waiting, and gives those that
  /// ended.
  std::vector<std::pair<std::size_t, HttpOutcome>> go_on();
  /// Until something can go on, and so long at most.
  void wait(std::chrono::milliseconds time);

 private:
  struct Multi;
  struct Exchange;

  std::unique_ptr<Multi> multi_;
  std::map<std::size_t, std::unique_ptr<Exchange>> exchanges_;
};

/// "3 s": whole seconds, rounded up.
std::string whole_seconds_text(std::chrono::milliseconds time);

}  // namespace rekernel
