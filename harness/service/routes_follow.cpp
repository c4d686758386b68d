#include <algorithm>
#include <charconv>
#include <set>

#include "harness/service/responses.h"
#include "harness/service/routes.h"

namespace rekernel::service {

namespace {

constexpr std::size_t most_listed = 1000;

/// A response that waits for answers. Its watches hold it, and it holds them, until it is given.
struct Pending {
  std::shared_ptr<HttpExchange> exchange;
  std::vector<Service::Watch> watches;
  std::size_t left = 0;  ///< evaluations without an answer
  bool responded = false;

  /// Whether it is time to respond, which happens once.
  bool take() {
    if (std::exchange(responded, true)) return false;
    watches.clear();
    return true;
  }
};

}  // namespace

void Routes::respond_when_answered(const std::string& client, const View& view,
                                   std::chrono::seconds wait, const Exchange& exchange) {
  if (view.answered || wait.count() == 0) return exchange->respond(view_response(view));
  const auto pending = std::make_shared<Pending>();
  pending->exchange = exchange;
  const auto respond_now = [this, client, id = view.id](const std::shared_ptr<Pending>& waiting) {
    if (!waiting->take()) return;
    service_.find(client, id, [exchange = waiting->exchange](const Views& views) {
      if (const auto refusal = refusal_in(views)) {
        return exchange->respond(problem_response(*refusal));
      }
      exchange->respond(view_response(std::get<0>(views).front()));
    });
  };
  Service::Watch watch = service_.watch(client, view.id, [pending](const View& now) {
    if (now.answered && pending->take()) pending->exchange->respond(view_response(now));
  });
  if (!watch) return respond_now(pending);  // answered meanwhile
  pending->watches.push_back(std::move(watch));
  loop_.after(wait, [weak = std::weak_ptr(pending), respond_now] {
    if (const auto waiting = weak.lock()) respond_now(waiting);
  });
}

void Routes::find(const HttpRequest& request, const std::string& id, const Exchange& exchange) {
  const Result<std::chrono::seconds> wait = wait_of(request);
  if (!wait) return exchange->respond(bad_request(wait.error().message));
  service_.find(request.client, id,
                [this, exchange, client = request.client, wait = *wait](const Views& views) {
                  if (const auto refusal = refusal_in(views)) {
                    return exchange->respond(problem_response(*refusal));
                  }
                  respond_when_answered(client, std::get<0>(views).front(), wait, exchange);
                });
}

void Routes::list(const HttpRequest& request, const std::string&, const Exchange& exchange) {
  const auto value = [&](const char* name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? std::string() : found->second;
  };
  std::size_t limit = 100;
  if (const std::string text = value("limit"); !text.empty()) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (code != std::errc() || end != text.data() + text.size() || limit < 1 ||
        limit > most_listed) {
      return exchange->respond(bad_request("limit: expected 1 to 1000"));
    }
  }
  service_.list(
      request.client, std::nullopt, value("after"), limit, [exchange](const Views& views) {
        if (const auto refusal = refusal_in(views)) {
          return exchange->respond(problem_response(*refusal));
        }
        exchange->respond(
            json_response(200, "{\"evaluations\":" + views_json(std::get<0>(views)) + "}"));
      });
}

void Routes::cancel(const HttpRequest& request, const std::string& id, const Exchange& exchange) {
  service_.cancel(request.client, id, [exchange](const Views& views) {
    if (const auto refusal = refusal_in(views)) {
      return exchange->respond(problem_response(*refusal));
    }
    exchange->respond(view_response(std::get<0>(views).front()));
  });
}

namespace {

/// A stream of several evaluations' changes, which ends with the last answer.
struct Following {
  std::shared_ptr<HttpExchange> exchange;
  std::set<std::string> left;  ///< ids without an answer
  std::vector<Service::Watch> watches;

  /// False once nothing is left.
  void tell(const View& view) {
    if (!exchange->is_open()) return watches.clear();
    exchange->send_event("evaluation", view.json);
    if (!view.answered) return;
    left.erase(view.id);
    if (left.empty()) exchange->end_events();
  }
};

}  // namespace

void Routes::follow(const HttpRequest& request, const std::string& id, const Exchange& exchange) {
  service_.find(request.client, id, [this, exchange, client = request.client](const Views& views) {
    if (const auto refusal = refusal_in(views)) {
      return exchange->respond(problem_response(*refusal));
    }
    exchange->begin_events();
    const View& view = std::get<0>(views).front();
    auto following = std::make_shared<Following>();
    following->exchange = exchange;
    following->left.insert(view.id);
    following->tell(view);
    if (view.answered) return;
    const auto keep = std::make_shared<Service::Watch>();
    *keep = service_.watch(client, view.id, [following, keep](const View& now) {
      following->tell(now);
      if (now.answered || !following->exchange->is_open()) keep->reset();
    });
    if (*keep) return;
    // Answered between the two: once more.
    service_.find(client, view.id, [following](const Views& again) {
      if (!refusal_in(again)) following->tell(std::get<0>(again).front());
    });
  });
}

void Routes::respond_with_batch(const std::string& client, const std::string& batch,
                                std::chrono::seconds wait, const Exchange& exchange) {
  const auto respond_now = [this, client, batch](const Exchange& waiting) {
    service_.list(client, batch, "", options_.most_in_batch, [batch, waiting](const Views& views) {
      if (const auto refusal = refusal_in(views)) {
        return waiting->respond(problem_response(*refusal));
      }
      const std::vector<View>& all = std::get<0>(views);
      if (all.empty()) {
        return waiting->respond(
            problem_response({404, "unknown_batch", "this client has no batch of that id", {}}));
      }
      waiting->respond(batch_response(batch, all));
    });
  };
  if (wait.count() == 0) return respond_now(exchange);
  service_.list(client, batch, "", options_.most_in_batch,
                [this, client, respond_now, wait, exchange](const Views& views) {
                  if (refusal_in(views)) return respond_now(exchange);
                  const auto pending = std::make_shared<Pending>();
                  pending->exchange = exchange;
                  for (const View& view : std::get<0>(views)) {
                    if (view.answered) continue;
                    Service::Watch watch =
                        service_.watch(client, view.id, [pending, respond_now](const View& now) {
                          if (!now.answered || --pending->left > 0) return;
                          if (pending->take()) respond_now(pending->exchange);
                        });
                    if (!watch) continue;  // answered meanwhile
                    ++pending->left;
                    pending->watches.push_back(std::move(watch));
                  }
                  if (pending->left == 0) return respond_now(exchange);
                  loop_.after(wait, [weak = std::weak_ptr(pending), respond_now] {
                    const auto waiting = weak.lock();
                    if (waiting && waiting->take()) respond_now(waiting->exchange);
                  });
                });
}

void Routes::find_batch(const HttpRequest& request, const std::string& id,
                        const Exchange& exchange) {
  const Result<std::chrono::seconds> wait = wait_of(request);
  if (!wait) return exchange->respond(bad_request(wait.error().message));
  respond_with_batch(request.client, id, *wait, exchange);
}

void Routes::follow_batch(const HttpRequest& request, const std::string& id,
                          const Exchange& exchange) {
  service_.list(request.client, id, "", options_.most_in_batch,
                [this, exchange, client = request.client](const Views& views) {
                  if (const auto refusal = refusal_in(views)) {
                    return exchange->respond(problem_response(*refusal));
                  }
                  const std::vector<View>& all = std::get<0>(views);
                  if (all.empty()) {
                    return exchange->respond(problem_response(
                        {404, "unknown_batch", "this client has no batch of that id", {}}));
                  }
                  exchange->begin_events();
                  auto following = std::make_shared<Following>();
                  following->exchange = exchange;
                  for (const View& view : all) following->left.insert(view.id);
                  for (const View& view : all) {
                    following->tell(view);
                    if (view.answered) continue;
                    const auto keep = std::make_shared<Service::Watch>();
                    *keep = service_.watch(client, view.id, [following, keep](const View& now) {
                      following->tell(now);
                      if (now.answered || !following->exchange->is_open()) keep->reset();
                    });
                    if (*keep) continue;
                    service_.find(client, view.id, [following](const Views& again) {
                      if (!refusal_in(again)) following->tell(std::get<0>(again).front());
                    });
                  }
                });
}

}  // namespace rekernel::service
