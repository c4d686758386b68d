#include "replay/model/http_model.h"

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "harness/base/utf8.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;
using Kind = Interruption::Kind;

constexpr std::size_t shown_ids = 4;

}  // namespace

/// One request and its attempts.
struct HttpModel::Exchange {
  std::size_t index = 0;
  Target* target = nullptr;
  int attempts = 0;
  Clock::time_point not_before{};
  ChatRequest sent;
  std::unique_ptr<ChatAnswer> answer;
  bool too_long = false;
};

/// All requests of one call of ask().
class HttpModel::Batch {
 public:
  Batch(const HttpModel& model, std::span<const ModelRequest> requests, const Arrived& arrived)
      : options_(model.options_), requests_(requests), arrived_(arrived) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      auto exchange = std::make_unique<Exchange>();
      exchange->index = i;
      exchange->target = model.targets_.at(requests[i].model).get();
      waiting_.push_back(std::move(exchange));
    }
  }

  /// Once one request has failed for good, no other is started, but those under way are awaited:
  /// their replies are paid for.
  std::optional<Interruption> run() {
    while (goes_on()) {
      if (options_.deadline && Clock::now() >= *options_.deadline) return at_deadline();
      if (!failure_) start_those_due();
      for (const auto& [index, outcome] : client_.go_on()) finish(take_running(index), outcome);
      if (!goes_on()) break;
      show_progress();
      client_.wait(pause());
    }
    return std::move(failure_);
  }

 private:
  bool goes_on() const {
    return !stopped_ && (!running_.empty() || (!failure_ && !waiting_.empty()));
  }
  bool has_room() const { return running_.size() < static_cast<std::size_t>(options_.concurrency); }

  // ── Requests ─────────────────────────────────────────────────────────────────────────────────

  void start_those_due() {
    const Clock::time_point now = Clock::now();
    for (auto it = waiting_.begin(); it != waiting_.end() && has_room();) {
      if ((*it)->not_before > now) {
        ++it;
        continue;
      }
      start(**it);
      running_.push_back(std::move(*it));
      it = waiting_.erase(it);
    }
  }

  void start(Exchange& exchange) {
    const Endpoint& endpoint = exchange.target->endpoint;
    const ChatProtocol& protocol = *exchange.target->protocol;
    ++exchange.attempts;
    exchange.sent = protocol.request(requests_[exchange.index]);
    exchange.answer = protocol.new_answer();
    exchange.too_long = false;
    HttpPost post;
    post.url = protocol.address();
    post.headers = protocol.headers();
    for (const HeaderLine& line : endpoint.headers) {
      post.headers.push_back(line.name + ": " + line.value);
    }
    post.body = exchange.sent.body;
    post.ca_file = endpoint.ca_file;
    post.past_proxies = is_this_machine(post.url);
    post.connect_timeout = options_.connect_timeout;
    const std::int64_t own = endpoint.record.timeout_s;
    post.timeout = own > 0 ? Milliseconds(own * 1000) : options_.total_timeout;
    post.take = [&exchange](std::string_view bytes) {
      exchange.too_long = !exchange.answer->take(bytes);
      return !exchange.too_long;
    };
    post.without_secrets = [&exchange](std::string text) {
      return without_key(exchange, std::move(text));
    };
    client_.start(exchange.index, std::move(post));
  }

  std::unique_ptr<Exchange> take_running(std::size_t index) {
    const auto found = std::find_if(running_.begin(), running_.end(),
                                    [&](const auto& exchange) { return exchange->index == index; });
    std::unique_ptr<Exchange> exchange = std::move(*found);
    running_.erase(found);
    return exchange;
  }

  // ── Waiting ──────────────────────────────────────────────────────────────────────────────────

  static Milliseconds until(Clock::time_point time) {
    return std::max(Milliseconds(0), std::chrono::duration_cast<Milliseconds>(time - Clock::now()));
  }

  /// Until the next paused request is due, if there is room for it, or the deadline.
  Milliseconds pause() const {
    Milliseconds pause(1000);
    if (options_.deadline) pause = std::min(pause, until(*options_.deadline) + Milliseconds(1));
    if (has_room() && !failure_) {
      for (const auto& exchange : waiting_) {
        pause = std::min(pause, until(exchange->not_before) + Milliseconds(1));
      }
    }
    return pause;
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
              whole_seconds_text(until(next->not_before));
    }
    if (options_.deadline)
      text += "; the deadline is in " + whole_seconds_text(until(*options_.deadline));
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

  // ── Answers ──────────────────────────────────────────────────────────────────────────────────

  void finish(std::unique_ptr<Exchange> exchange, const HttpOutcome& outcome) {
    if (exchange->too_long) {
      ModelReply reply;
      reply.failure = "the answer has more than " + std::to_string(max_answer_bytes) + " bytes";
      return deliver(std::move(exchange), std::move(reply));
    }
    if (!outcome.trouble.empty()) {
      if (outcome.trouble_lasts) return fail(*exchange, outcome.trouble);
      return try_again(std::move(exchange), outcome.trouble, 0);
    }
    if (outcome.status != 200) return finish_refused(std::move(exchange), outcome);
    std::variant<ModelReply, AnswerFault> read = exchange->answer->read();
    if (auto* reply = std::get_if<ModelReply>(&read)) {
      return deliver(std::move(exchange), std::move(*reply));
    }
    const AnswerFault& fault = std::get<AnswerFault>(read);
    const std::string what = fault_text(*exchange, fault) + fault.hint;
    if (fault.lasting) return fail(*exchange, what);
    try_again(std::move(exchange), what, 0);
  }

  void finish_refused(std::unique_ptr<Exchange> exchange, const HttpOutcome& outcome) {
    ChatProtocol& protocol = *exchange->target->protocol;
    const std::string& body = exchange->answer->body();
    if (const auto change = protocol.adapt_to_refusal(outcome.status, body, exchange->sent)) {
      say(*exchange, *change + body_text(*exchange));
      --exchange->attempts;
      waiting_.push_back(std::move(exchange));
      return;
    }
    const AnswerFault fault = protocol.refusal(outcome.status, body, requests_[exchange->index]);
    const std::string what = fault_text(*exchange, fault);
    if (!fault.lasting) return try_again(std::move(exchange), what, outcome.retry_after_s);
    fail(*exchange,
         what + (fault.hint.empty() ? hint(exchange->target->endpoint, outcome) : fault.hint));
  }

  void deliver(std::unique_ptr<Exchange> exchange, ModelReply reply) {
    if (stopped_) return;
    const Endpoint& endpoint = exchange->target->endpoint;
    if (const auto change = exchange->target->protocol->adapt_to_reply(reply)) {
      say(*exchange, *change);
    }
    reply.text = masked(endpoint, std::move(reply.text), Masking::replies);
    reply.failure = masked(endpoint, std::move(reply.failure), Masking::messages);
    const Reception reception = arrived_(exchange->index, std::move(reply));
    stopped_ = reception.next == Reception::Next::stop;
    if (reception.next != Reception::Next::ask_again) return;
    exchange->attempts = 0;
    exchange->answer.reset();
    // First of all: an unusable model shows before all of a long round is asked.
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
    pause = std::max(pause, Milliseconds(bounded_s * 1000));
    pause = std::min(pause, options_.longest_pause);
    exchange->not_before = Clock::now() + pause;
    say(*exchange, what + "; " + requests_[exchange->index].id + " again in " +
                       whole_seconds_text(pause) + " (attempt " +
                       std::to_string(exchange->attempts + 1) + " of " +
                       std::to_string(options_.attempts) + ")");
    exchange->answer.reset();
    waiting_.push_back(std::move(exchange));
  }

  void fail(const Exchange& exchange, const std::string& what) {
    if (failure_) return;
    const ModelRequest& request = requests_[exchange.index];
    failure_ =
        Interruption{Kind::failed, "model " + request.model + ", request " + request.id + ", " +
                                       exchange.target->protocol->address() + ": " +
                                       without_key(exchange, what) +
                                       "; the same command goes on from here, --resume also with "
                                       "another --base-url, --ask-as or --key-variable"};
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────

  void say(const Exchange& exchange, const std::string& what) const {
    if (!options_.say) return;
    options_.say("model " + requests_[exchange.index].model + ", " +
                 exchange.target->protocol->address() + ": " + without_key(exchange, what));
  }

  static std::string fault_text(const Exchange& exchange, const AnswerFault& fault) {
    return fault.what + (fault.shows_body ? body_text(exchange) : "");
  }

  /// JSON as this program writes it: an escaped key would not be found.
  static std::string body_text(const Exchange& exchange) {
    const std::string& body = exchange.answer->body();
    if (body.empty()) return "";
    json::error_code status;
    const json::value value = json::parse(body, status);
    const std::string text = status ? body : json::serialize(value);
    return ": " + one_line(without_key(exchange, text), shown_answer_bytes);
  }

  /// What the owner can do about a status that every protocol has.
  static std::string hint(const Endpoint& endpoint, const HttpOutcome& outcome) {
    if (outcome.status >= 300 && outcome.status < 400) {
      const std::string address =
          outcome.sent_on_to.empty() ? "another address" : one_line(outcome.sent_on_to, 256);
      return " (it redirects to " + address.substr(0, address.find('?')) +
             ", and the key is not sent there: --base-url gives the right address)";
    }
    if (outcome.status != 401 || !endpoint.key.empty()) return "";
    return endpoint.record.key_variable.empty()
               ? " (no key is sent; --key-variable names the environment variable that holds one)"
               : " (the environment variable " + endpoint.record.key_variable + " is not set)";
  }

  static std::string without_key(const Exchange& exchange, std::string text) {
    return masked(exchange.target->endpoint, std::move(text), Masking::messages);
  }

  const AskingOptions& options_;
  std::span<const ModelRequest> requests_;
  const Arrived& arrived_;
  std::vector<std::unique_ptr<Exchange>> waiting_;
  std::vector<std::unique_ptr<Exchange>> running_;
  HttpClient client_;  ///< ends before those that it works for
  std::optional<Interruption> failure_;
  bool stopped_ = false;
};

HttpModel::HttpModel(std::vector<Endpoint> endpoints, const ProtocolMaker& protocol_of,
                     AskingOptions options)
    : options_(std::move(options)) {
  for (Endpoint& endpoint : endpoints) {
    auto target = std::make_unique<Target>();
    target->endpoint = std::move(endpoint);
    target->protocol = protocol_of(target->endpoint, options_.reply_tokens);
    targets_[target->endpoint.record.name] = std::move(target);
  }
}

std::optional<Interruption> HttpModel::ask(std::span<const ModelRequest> requests,
                                           const Arrived& arrived) {
  for (const ModelRequest& request : requests) {
    if (!targets_.contains(request.model)) {
      return Interruption{Kind::failed, "model " + request.model + ": no endpoint is known"};
    }
  }
  return Batch(*this, requests, arrived).run();
}

}  // namespace rekernel
