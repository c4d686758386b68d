#include "replay/search/reply_collector.h"

#include <boost/json.hpp>
#include <utility>

#include "replay/model/response.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;

ModelReply within_limits(ModelReply reply) {
  if (reply.text.size() > max_reply_bytes) {
    reply.failure = "the reply has " + std::to_string(reply.text.size()) + " bytes; at most " +
                    std::to_string(max_reply_bytes) + " are recorded";
    reply.text.clear();
  }
  return reply;
}

TokenCount tokens_in(const json::object& event) {
  return {event.at("prompt_tokens").as_int64(), event.at("completion_tokens").as_int64()};
}

}  // namespace

ReplyCollector::ReplyCollector(const Settings& settings, const SearchSurroundings& around,
                               SearchRecord& recording)
    : settings_(settings),
      around_(around),
      recording_(recording),
      unusable_(settings.models.size()) {}

void ReplyCollector::collect(ReplyKind kind, const std::vector<ModelRequest>& requests,
                             const Taken& taken) {
  std::vector<Asking> asking(requests.size());
  InTurn<Answer> turn(
      requests.size(),
      [&](std::size_t i, const Answer& answer) {
        put_answer(requests[i], asking[i].recorded, answer);
        const auto refused = static_cast<std::size_t>(asking[i].recorded) + answer.refused.size();
        if (recording_.going() &&
            unusable_.are_enough(kind, requests, i, refused + 1, *answer.reply)) {
          given_up_ = gives_up();
        }
        if (wants_replies()) taken(i, *answer.reply);
      },
      [&] { return wants_replies(); });
  std::vector<std::size_t> missing;
  bool anything_new = false;
  for (std::size_t i = 0; i < requests.size() && wants_replies(); ++i) {
    std::optional<Answer> answer;
    if (turn.is_next(i)) answer = recorded_answer(kind, requests[i], asking[i]);
    if (!answer && recording_.going()) {
      anything_new = true;
      answer = pending_answer(kind, requests[i], asking[i]);
    }
    if (answer) {
      turn.arrive(i, std::move(*answer));
    } else {
      missing.push_back(i);
    }
  }
  if (wants_replies() && !missing.empty()) ask(kind, requests, missing, asking, turn);
  // The requests were completed by this run, so that all of the journal is in the trajectory. After
  // those that were wholly recorded, the journal may already belong to the next ones.
  if (anything_new) recording_.forget_pending();
}

// ── What is there already ──────────────────────────────────────────────────────────────────────

ReplyCollector::Answer ReplyCollector::answer_of(std::vector<Refused> refused, ReadReply reply) {
  return {std::move(refused), std::make_shared<ReadReply>(std::move(reply))};
}

/// What the trajectory holds of a request: replies that could not be used, which are passed at
/// once, and the one that was taken, if it is there.
std::optional<ReplyCollector::Answer> ReplyCollector::recorded_answer(ReplyKind kind,
                                                                      const ModelRequest& request,
                                                                      Asking& asking) {
  while (const json::object* event = recording_.next()) {
    const bool refused = is_event(*event, "unusable", request.id);
    if ((!refused && !is_event(*event, "response", request.id)) ||
        (refused && asking.recorded + 1 >= settings_.tries)) {
      recording_.refuse_next("response " + request.id);
      break;
    }
    std::optional<ModelReply> reply = reply_in(*event, request);
    if (!reply) break;
    ReadReply read = read_reply(kind, std::move(*reply));
    if (!refused) return answer_of({}, std::move(read));
    const std::string reason = read.unusable();
    put_reply(request, read.reply, unusable_event(request, read.reply, ++asking.recorded, reason),
              reason);
    if (!recording_.going()) break;
  }
  return std::nullopt;
}

std::optional<ReplyCollector::Answer> ReplyCollector::pending_answer(ReplyKind kind,
                                                                     const ModelRequest& request,
                                                                     Asking& asking) {
  const std::string hash = request.prompt.sha256();
  for (int attempt = asking.recorded + 1; attempt < settings_.tries; ++attempt) {
    const json::object* entry =
        recording_.pending("unusable", request.id, "prompt_sha256", hash, attempt);
    std::optional<ModelReply> reply = entry ? reply_in(*entry, request) : std::nullopt;
    if (!reply) break;
    const json::value* reason = entry->if_contains("reason");
    asking.refused.push_back({std::move(*reply), reason && reason->is_string()
                                                     ? std::string(reason->get_string())
                                                     : ""});
  }
  const json::object* entry = recording_.pending("response", request.id, "prompt_sha256", hash);
  std::optional<ModelReply> reply = entry ? reply_in(*entry, request) : std::nullopt;
  if (!reply) return std::nullopt;
  return answer_of(std::move(asking.refused), read_reply(kind, std::move(*reply)));
}

std::optional<ModelReply> ReplyCollector::reply_in(const json::object& event,
                                                   const ModelRequest& request) {
  const json::value* recorded = recording_.recorded_value(event);
  const json::value kept = recorded ? json::value() : json::value(event);
  Result<ModelReply> taken = reply_from_event(recorded ? *recorded : kept,
                                              recording_.where() + ": response " + request.id);
  if (taken) return std::move(*taken);
  recording_.interrupt({Interruption::Kind::bad_file, taken.error().message});
  return std::nullopt;
}

// ── What is asked for ──────────────────────────────────────────────────────────────────────────

void ReplyCollector::ask(ReplyKind kind, const std::vector<ModelRequest>& requests,
                         const std::vector<std::size_t>& missing, std::vector<Asking>& asking,
                         InTurn<Answer>& turn) {
  if (!around_.endpoints.empty()) recording_.note_endpoints(around_.endpoints);
  std::vector<ModelRequest> asked;
  for (const std::size_t i : missing) asked.push_back(requests[i]);
  std::int64_t spent = tokens_.sum();
  auto interruption = around_.model.ask(asked, [&](std::size_t index, ModelReply reply) {
    const std::size_t i = missing[index];
    const ModelRequest& request = requests[i];
    ReadReply read = read_reply(kind, within_limits(std::move(reply)));
    const json::object event = response_event(request, read.reply);
    spent += tokens_in(event).sum();
    std::string reason = read.unusable();
    if (!reason.empty() && may_ask_again(asking[i], spent)) {
      return ask_again(request, asking[i], {std::move(read.reply), std::move(reason)});
    }
    if (!turn.is_next(i)) keep(request, event);
    turn.arrive(i, answer_of(std::move(asking[i].refused), std::move(read)));
    return Reception{wants_replies() ? Reception::Next::go_on : Reception::Next::stop, ""};
  });
  if (interruption) recording_.interrupt(std::move(*interruption));
}

/// Once a reply was refused so often, or the tokens are used up, it counts as it is.
bool ReplyCollector::may_ask_again(const Asking& asking, std::int64_t spent) const {
  const auto attempts = asking.recorded + static_cast<int>(asking.refused.size()) + 1;
  const bool affordable = settings_.token_budget == 0 || spent < settings_.token_budget;
  return attempts < settings_.tries && !around_.as_is && affordable;
}

Reception ReplyCollector::ask_again(const ModelRequest& request, Asking& asking, Refused refused) {
  std::string reason = refused.reason;
  if (!around_.model.keeps_replies()) {
    asking.refused.push_back(std::move(refused));
    const int attempt = asking.recorded + static_cast<int>(asking.refused.size());
    around_.observer.tell(request.id + ": " + reason + "; asking again (" +
                          std::to_string(attempt + 1) + " of " + std::to_string(settings_.tries) +
                          ")");
    keep(request, unusable_event(request, asking.refused.back().reply, attempt, reason));
  }
  return {recording_.going() ? Reception::Next::ask_again : Reception::Next::stop,
          std::move(reason)};
}

/// A reply that waits for its turn, or cannot be used.
void ReplyCollector::keep(const ModelRequest& request, json::object event) {
  if (around_.model.keeps_replies()) return;
  event["prompt_sha256"] = request.prompt.sha256();
  recording_.add_pending(event);
}

// ── What is recorded ───────────────────────────────────────────────────────────────────────────

void ReplyCollector::put_answer(const ModelRequest& request, int recorded, const Answer& answer) {
  for (const Refused& refused : answer.refused) {
    put_reply(request, refused.reply,
              unusable_event(request, refused.reply, ++recorded, refused.reason), refused.reason);
  }
  put_reply(request, answer.reply->reply, response_event(request, answer.reply->reply), "");
}

void ReplyCollector::put_reply(const ModelRequest& request, const ModelReply& reply,
                               const json::object& event, const std::string& unusable) {
  recording_.put(event);
  if (!recording_.going()) return;
  const TokenCount tokens = tokens_in(event);
  tokens_.prompt += tokens.prompt;
  tokens_.completion += tokens.completion;
  if (around_.observer.reply) {
    around_.observer.reply(
        {request.id, request.model, &reply, unusable, tokens.prompt, tokens.completion});
  }
}

/// A person's wish, and a model that costs nothing, decide only where nothing is recorded yet.
bool ReplyCollector::gives_up() {
  const json::object* next = recording_.next();
  if (!recording_.going()) return false;
  if (!next) return !around_.as_is && !around_.model.keeps_replies();
  const json::value* reason = next->if_contains("reason");
  return is_event(*next, "stop") && reason && *reason == stop_for_unusable_replies;
}

}  // namespace rekernel
