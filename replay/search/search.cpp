#include "replay/search/search.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/parallel.h"
#include "harness/base/time_left.h"
#include "replay/model/response.h"
#include "replay/search/in_turn.h"
#include "replay/search/prompt.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;
using Kind = Interruption::Kind;

/// Replies of no use, of a whole round, that are enough to end the search.
constexpr std::size_t enough_in_a_round = 3;
/// The same of a round's first ones, so that a long round is not asked to its end.
constexpr std::size_t enough_at_first = 12;

/// A candidate of the wave that is being evaluated.
struct WaveItem {
  std::string id;
  std::string idea_id;
  Idea idea;
  std::string model;
  std::vector<std::string> parents;
  std::shared_ptr<const Candidate> candidate;
  std::string complaint;  ///< why there is no candidate
};

/// A kernel that later prompts may show.
struct Kept {
  std::string caption;
  std::shared_ptr<const Candidate> candidate;
  std::string plan;  ///< candidate_json, once it was shown
};

struct IdeaInRound {
  std::string id;  ///< "r4.i2"
  Idea idea;
};

/// "1 idea", "2 ideas".
std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

ModelReply within_limits(ModelReply reply) {
  if (reply.text.size() > max_reply_bytes) {
    reply.failure = "the reply has " + std::to_string(reply.text.size()) + " bytes; at most " +
                    std::to_string(max_reply_bytes) + " are recorded";
    reply.text.clear();
  }
  return reply;
}

/// What the search itself says of an evaluation, before what the evaluator says.
json::object evaluation_title(const WaveItem& item) {
  json::object event{{"event", "evaluation"}, {"id", item.id}};
  if (item.candidate) event["sha256"] = candidate_sha256(*item.candidate);
  return event;
}

bool begins_with(const json::object& object, const json::object& first_members) {
  return object.size() >= first_members.size() &&
         std::equal(first_members.begin(), first_members.end(), object.begin(),
                    [](const auto& a, const auto& b) {
                      return a.key() == b.key() && a.value() == b.value();
                    });
}

json::object evaluation_event(const WaveItem& item, const json::object& record) {
  json::object event = evaluation_title(item);
  for (const auto& [key, value] : record) {
    if (key != "chain") event.emplace(key, value);
  }
  return event;
}

enum class ReplyKind { ideas, kernel };

/// Requests in a row whose replies were of no use: for ideas in this round and those before it, or
/// for kernels from the round's first on.
struct Useless {
  std::size_t asked = 0;  ///< requests of the wave that the last one is of
  std::size_t requests = 0;
  std::size_t replies = 0;  ///< to these requests
  std::string last;         ///< "to r1.ideas of model one: the reply is empty"
};

class Search {
 public:
  Search(const Header& header, SearchSurroundings surroundings)
      : header_(header),
        settings_(header.settings),
        endpoints_(header.settings.models),
        around_(std::move(surroundings)) {
    note_parents();
  }

  SearchEnd run() {
    put(to_json(header_));
    evaluate_seeds();
    for (int round = settings_.first_round; going();) {
      while (round <= settings_.last_round() && going()) {
        if (run_round(round)) ++round;
      }
      if (going()) stop("rounds");
    }
    if (!interruption_ && around_.journal) around_.journal->clear();
    return {std::move(interruption_), std::move(reason_), std::move(note_)};
  }

 private:
  bool going() const { return !interruption_ && reason_.empty(); }

  /// Whether the round still waits for replies, or for what comes of them.
  bool wants_replies() const { return going() && !given_up_; }

  void interrupt(Interruption interruption) {
    if (!interruption_) interruption_ = std::move(interruption);
  }

  void put(const json::object& event) {
    if (!going()) return;
    if (auto interruption = around_.trajectory.put(event)) interrupt(std::move(*interruption));
  }

  /// The next recorded event of the search itself; nullptr when there is none or something went
  /// wrong.
  const json::object* recorded() {
    while (true) {
      const Result<const json::object*> next = around_.trajectory.peek();
      if (!next) interrupt({Kind::bad_file, next.error().message});
      if (interruption_) return nullptr;
      if (!*next || !is_event(**next, "endpoints") || !going()) return *next;
      pass_endpoints(**next);
    }
  }

  void pass_endpoints(const json::object& event) {
    Result<std::vector<ModelSettings>> models =
        endpoints_from_json(event, settings_.models, where());
    if (!models) return interrupt({Kind::bad_file, models.error().message});
    put_endpoints(*models);
  }

  void put_endpoints(const std::vector<ModelSettings>& models) {
    put({{"event", "endpoints"}, {"models", to_json(models)}});
    endpoints_ = models;
  }

  /// The next recorded event, which must be of this kind and id if there is one.
  const json::object* recorded(const std::string& event, const std::string& id) {
    const json::object* next = recorded();
    if (next && !is_event(*next, event, id)) {
      interrupt(around_.trajectory.not_as_expected(event + " " + id));
      return nullptr;
    }
    return next;
  }

  std::string where() const {
    return around_.trajectory.path().string() + ": line " +
           std::to_string(around_.trajectory.line() + 1);
  }

  void show(const std::string& text) const {
    if (around_.observer.progress) around_.observer.progress(text);
  }

  void say(const std::string& text) const {
    if (around_.observer.say) around_.observer.say(text);
  }

  void stop(const std::string& reason, const std::string& note = "") {
    const bool was_recorded = recorded() != nullptr;
    json::object event{{"event", "stop"}, {"reason", reason}};
    if (!note.empty()) event["note"] = note;
    event["prompt_tokens"] = prompt_tokens_;
    event["completion_tokens"] = completion_tokens_;
    put(event);
    if (!going() || goes_on(reason, was_recorded) || interruption_) return;
    reason_ = reason;
    note_ = note;
    if (recorded()) interrupt(around_.trajectory.not_as_expected("nothing behind the stop"));
  }

  // ── Going on behind a stop ───────────────────────────────────────────────────────────────────

  void note_parents() {
    for (const RoundPlan& plan : settings_.round_plans) {
      for (const std::string& id : plan.parents.value_or(std::vector<std::string>{})) {
        needed_until_[id] = std::max(needed_until_[id], plan.round);
      }
    }
  }

  /// Whether a continuation is recorded behind the stop, or wanted where nothing is recorded. One
  /// that changes nothing is of use where a person or the clock ended the search, and no limit.
  bool goes_on(const std::string& reason, bool was_recorded) {
    const json::object* next = recorded();
    if (!going() || (next && !is_event(*next, "continue"))) return false;
    if (!next && !wants_to_go_on(reason, was_recorded)) return false;
    const Result<Continuation> continuation =
        next ? continuation_from_json(*next, settings_, where()) : wanted_continuation();
    if (!continuation) return refuse(continuation.error());
    const bool at_a_limit =
        reason != "stopped" && reason != "deadline" && reason != stop_for_unusable_replies;
    if (!next && at_a_limit && adds_nothing(*continuation, settings_)) return false;
    Result<Settings> longer = continued(settings_, *continuation, where());
    if (!longer) return refuse(longer.error());
    for (const RoundPlan& plan : continuation->round_plans) {
      Result<Ok> checked = check_round_plan(header_, plan, where());
      if (checked) checked = find_parents(plan);
      if (!checked) return refuse(checked.error());
    }
    // What was kept of requests that are made anew is not taken for their replies.
    if (!next && around_.journal) around_.journal->clear();
    put(to_json(*continuation));
    settings_ = std::move(*longer);
    note_parents();
    return going();
  }

  /// The run that got nothing of use ends; another one tries again.
  bool wants_to_go_on(const std::string& reason, bool was_recorded) const {
    if (reason == stop_for_unusable_replies) {
      return was_recorded && around_.resumed && !around_.stop_asked;
    }
    return around_.go_on && !went_on_;
  }

  Result<Continuation> wanted_continuation() {
    if (around_.go_on && !went_on_) {
      went_on_ = true;
      return around_.go_on(settings_);
    }
    return Continuation{settings_.rounds, settings_.token_budget, {}, ""};
  }

  bool refuse(const Error& error) {
    interrupt({Kind::bad_file, error.message});
    return false;
  }

  /// A plan made behind a stop can show what the search still remembers, and its seeds.
  Result<Ok> find_parents(const RoundPlan& plan) {
    for (const std::string& id : plan.parents.value_or(std::vector<std::string>{})) {
      if (kept_.contains(id)) continue;
      const auto seed = seeds_.find(id);
      if (seed == seeds_.end()) {
        return Error{where() + ": round_plans: round " + std::to_string(plan.round) +
                     ": parents: expected a seed, a survivor or a kernel of the bank, got \"" +
                     one_line(id, 64) + "\""};
      }
      kept_[id] = seed->second;
    }
    return Ok{};
  }

  // ── Rounds ───────────────────────────────────────────────────────────────────────────────────

  void evaluate_seeds() {
    if (header_.seeds.empty()) return;
    std::vector<WaveItem> wave;
    for (std::size_t i = 0; i < header_.seeds.size(); ++i) {
      WaveItem item;
      item.id = item.idea_id = "seed." + std::to_string(i + 1);
      Result<Candidate> candidate =
          parse_candidate(header_.seeds[i].plan, header_.seeds[i].source, item.id + "/kernel.json");
      if (candidate) {
        item.idea = idea_from_text(candidate->idea);
        item.candidate = std::make_shared<const Candidate>(std::move(*candidate));
      } else {
        item.complaint = candidate.error().message;
      }
      wave.push_back(std::move(item));
    }
    const int round = settings_.first_round - 1;
    evaluate(round, wave);
    seeds_ = kept_;
    select(round, "seeds", "");
  }

  /// False where nothing came of it: the search is over, or goes on with the same round.
  bool run_round(int round) {
    const std::string id = "r" + std::to_string(round);
    std::string note;
    given_up_ = false;
    const std::vector<IdeaInRound> ideas = find_ideas(round, note);
    std::vector<WaveItem> wave;
    if (wants_replies()) wave = write_kernels(round, prompt_parts(round), ideas);
    if (given_up_) give_up(round, ideas.empty() ? ReplyKind::ideas : ReplyKind::kernel);
    if (!wants_replies()) return false;
    evaluate(round, wave);
    select(round, id, note);
    return true;
  }

  std::vector<IdeaInRound> find_ideas(int round, std::string& note) {
    const std::string prefix = "r" + std::to_string(round);
    std::vector<Idea> ideas = planned_ideas(round);
    if (ideas.empty()) ideas = ask_for_ideas(round, note);
    std::vector<IdeaInRound> result;
    for (Idea& idea : ideas) {
      result.push_back({prefix + ".i" + std::to_string(result.size() + 1), std::move(idea)});
    }
    return result;
  }

  std::vector<Idea> planned_ideas(int round) const {
    std::vector<Idea> ideas;
    const RoundPlan* plan = settings_.plan_of(round);
    if (!plan) return ideas;
    for (const std::string& text : plan->ideas) ideas.push_back(idea_from_text(text));
    return ideas;
  }

  std::vector<Idea> ask_for_ideas(int round, std::string& note) {
    const PromptParts parts = prompt_parts(round);
    const std::size_t turn = static_cast<std::size_t>(round - settings_.first_round);
    const std::vector<ModelRequest> requests{{"r" + std::to_string(round) + ".ideas",
                                              model_name(turn),
                                              PromptWriter(header_, parts).ideas(settings_.ideas)}};
    if (!may_ask(requests)) return {};
    // The search may have stopped here and gone on with a plan.
    if (std::vector<Idea> planned = planned_ideas(round); !planned.empty()) return planned;
    put(request_event(round, "ideas", requests[0], parts));
    show("round " + std::to_string(round) + ": asking for ideas");
    std::vector<Idea> ideas;
    obtain_replies(ReplyKind::ideas, requests, [&](std::size_t, const ModelReply& reply) {
      ideas = read_ideas(requests[0].id, reply, note);
    });
    if (!wants_replies()) return {};
    return ideas;
  }

  std::vector<Idea> read_ideas(const std::string& id, const ModelReply& reply,
                               std::string& note) const {
    Result<std::vector<Idea>> ideas = parse_ideas(reply.text);
    if (!ideas) {
      note = id + ": " + complaint_about(reply, ideas.error());
      say(note + "; the round has no ideas");
      return {};
    }
    const auto wanted = static_cast<std::size_t>(settings_.ideas);
    if (ideas->size() != wanted) {
      say(id + ": the reply has " + counted(ideas->size(), "idea") + ", asked for were " +
          std::to_string(wanted) +
          (ideas->size() > wanted ? "; the rest is left out" : "; the round goes on with fewer"));
    }
    if (ideas->size() > wanted) ideas->resize(wanted);
    return std::move(*ideas);
  }

  std::vector<WaveItem> write_kernels(int round, const PromptParts& parts,
                                      const std::vector<IdeaInRound>& ideas) {
    std::vector<WaveItem> wave;
    std::vector<ModelRequest> requests;
    PromptWriter writer(header_, parts);
    for (const IdeaInRound& one : ideas) {
      for (int branch = 1; branch <= settings_.branches; ++branch) {
        WaveItem item;
        item.id = one.id + ".b" + std::to_string(branch);
        item.idea_id = one.id;
        item.idea = one.idea;
        item.model = model_name(requests.size());
        item.parents = parent_ids(parts);
        requests.push_back({item.id, item.model, writer.kernel(one.idea, branch)});
        wave.push_back(std::move(item));
      }
    }
    if (requests.empty() || !may_ask(requests)) return {};
    for (std::size_t i = 0; i < requests.size(); ++i) {
      json::object event = request_event(round, "kernel", requests[i], parts);
      event["idea"] = wave[i].idea.title;
      put(event);
    }
    show("round " + std::to_string(round) + ": asking for " + std::to_string(requests.size()) +
         " kernels");
    std::vector<ModelReply> replies(wave.size());
    obtain_replies(ReplyKind::kernel, requests,
                   [&](std::size_t i, const ModelReply& reply) { replies[i] = reply; });
    if (!wants_replies()) return {};
    read_candidates(wave, replies);
    return wave;
  }

  /// A few are read in less time than a thread takes to begin.
  void read_candidates(std::vector<WaveItem>& wave, const std::vector<ModelReply>& replies) const {
    constexpr std::size_t worth_a_thread = 8;
    const std::size_t workers =
        std::min<std::size_t>(std::thread::hardware_concurrency(), wave.size() / worth_a_thread);
    for_each_in_parallel(wave.size(), static_cast<unsigned>(std::max<std::size_t>(workers, 1)),
                         [&](std::size_t i) { read_candidate(wave[i], replies[i]); });
  }

  void read_candidate(WaveItem& item, const ModelReply& reply) const {
    Result<Candidate> candidate = parse_kernel_reply(
        reply.text,
        {header_.problem, header_.name, item.id, item.idea.text, newest_arch(header_.device)});
    if (candidate) {
      item.candidate = std::make_shared<const Candidate>(std::move(*candidate));
    } else {
      item.complaint = complaint_about(reply, candidate.error());
    }
  }

  static std::string complaint_about(const ModelReply& reply, const Error& error) {
    if (!reply.failure.empty()) return reply.failure;
    return error.message + (reply.truncated ? " (the model stopped at its limit of length)" : "");
  }

  // ── Prompts ──────────────────────────────────────────────────────────────────────────────────

  /// Models take turns.
  const std::string& model_name(std::size_t turn) const {
    return settings_.models[turn % settings_.models.size()].name;
  }

  PromptParts prompt_parts(int round) {
    PromptParts parts;
    parts.history = &history_;
    const RoundPlan* plan = settings_.plan_of(round);
    if (plan && plan->parents) {
      parts.survivors = shown(*plan->parents);
    } else {
      parts.survivors = shown(selection_.survivors);
      parts.bank = shown(selection_.bank);
    }
    for (const std::string& name : plan ? plan->bank_kernels : std::vector<std::string>{}) {
      const LibraryKernel& kernel = *header_.find_library_kernel(name);
      parts.library.push_back({kernel.name, kernel.note, kernel.plan, kernel.source});
    }
    return parts;
  }

  /// A planned parent whose reply held no candidate has nothing to show.
  std::vector<ShownKernel> shown(const std::vector<std::string>& ids) {
    std::vector<ShownKernel> kernels;
    for (const std::string& id : ids) {
      const auto found = kept_.find(id);
      if (found == kept_.end()) continue;
      Kept& kept = found->second;
      if (kept.plan.empty()) kept.plan = candidate_json(*kept.candidate);
      kernels.push_back({id, kept.caption, kept.plan, kept.candidate->program.source});
    }
    return kernels;
  }

  /// In the order in which the prompt shows them.
  static std::vector<std::string> parent_ids(const PromptParts& parts) {
    std::vector<std::string> ids;
    for (const auto* kernels : {&parts.survivors, &parts.bank, &parts.library}) {
      for (const ShownKernel& kernel : *kernels) ids.push_back(kernel.id);
    }
    return ids;
  }

  static json::object request_event(int round, const char* kind, const ModelRequest& request,
                                    const PromptParts& parts) {
    return {{"event", "request"},
            {"id", request.id},
            {"round", round},
            {"kind", kind},
            {"model", request.model},
            {"prompt_sha256", request.prompt.sha256()},
            {"prompt_bytes", request.prompt.size()},
            {"parents", json::value_from(parent_ids(parts))}};
  }

  // ── Limits ───────────────────────────────────────────────────────────────────────────────────

  /// Stops the search where the requests would exceed the token budget or the deadline has passed,
  /// and looks again where a continuation lets it go on.
  bool may_ask(const std::vector<ModelRequest>& requests) {
    std::int64_t tokens = prompt_tokens_ + completion_tokens_;
    for (const ModelRequest& request : requests) tokens += estimated_tokens(request.prompt.size());
    while (going()) {
      const bool beyond = settings_.token_budget > 0 && tokens > settings_.token_budget;
      const auto reason = beyond ? std::optional<std::string>("token_budget") : outside_reason();
      if (!reason) break;
      stop(*reason);
    }
    return going();
  }

  /// Why the clock or a person ends the search here. They decide only where nothing is recorded
  /// yet.
  std::optional<std::string> outside_reason() {
    const json::object* next = recorded();
    if (!going()) return std::nullopt;
    if (!next) {
      if (around_.stop_asked) return "stopped";
      if (around_.deadline_reached && around_.deadline_reached()) return "deadline";
      return std::nullopt;
    }
    if (!is_event(*next, "stop")) return std::nullopt;
    const json::value* reason = next->if_contains("reason");
    for (const char* known : {"stopped", "deadline"}) {
      if (reason && *reason == known) return known;
    }
    return std::nullopt;
  }

  // ── Replies ──────────────────────────────────────────────────────────────────────────────────

  /// A reply that was of no use.
  struct Refused {
    ModelReply reply;
    std::string reason;
  };
  /// What one request brought.
  struct Answer {
    std::vector<Refused> refused;
    ModelReply reply;
  };
  /// What is known of a request whose reply has not come.
  struct Asking {
    int recorded = 0;  ///< replies that were of no use and are in the trajectory
    std::vector<Refused> refused;
  };

  /// Why a reply should be asked for again; empty if it is of use.
  static std::string why_unusable(ReplyKind kind, const ModelReply& reply) {
    if (!reply.failure.empty()) return reply.failure;
    if (kind == ReplyKind::ideas) {
      const Result<std::vector<Idea>> ideas = parse_ideas(reply.text);
      return ideas ? "" : complaint_about(reply, ideas.error());
    }
    const Result<Ok> form = check_kernel_reply(reply.text);
    return form ? "" : complaint_about(reply, form.error());
  }

  /// Gets one reply for every request and hands them to `taken` in their order: recorded ones, then
  /// those that a killed run had already got, then those that are asked for now.
  void obtain_replies(ReplyKind kind, const std::vector<ModelRequest>& requests,
                      const std::function<void(std::size_t, const ModelReply&)>& taken) {
    std::vector<Asking> asking(requests.size());
    InTurn<Answer> turn(
        requests.size(),
        [&](std::size_t i, const Answer& answer) {
          put_answer(requests[i], asking[i].recorded, answer);
          const auto refused = static_cast<std::size_t>(asking[i].recorded);
          if (going()) judge(kind, requests, i, refused + answer.refused.size() + 1, answer.reply);
          if (wants_replies()) taken(i, answer.reply);
        },
        [&] { return wants_replies(); });
    std::vector<std::size_t> missing;
    bool anything_new = false;
    for (std::size_t i = 0; i < requests.size() && wants_replies(); ++i) {
      std::optional<Answer> answer;
      if (turn.is_next(i)) answer = recorded_answer(kind, requests[i], asking[i]);
      if (!answer && going()) {
        anything_new = true;
        answer = answer_in_journal(requests[i], asking[i]);
      }
      if (answer) {
        turn.arrive(i, std::move(*answer));
      } else {
        missing.push_back(i);
      }
    }
    if (wants_replies() && !missing.empty()) ask(kind, requests, missing, asking, turn);
    if (anything_new) forget_journal();
  }

  void ask(ReplyKind kind, const std::vector<ModelRequest>& requests,
           const std::vector<std::size_t>& missing, std::vector<Asking>& asking,
           InTurn<Answer>& turn) {
    if (!around_.endpoints.empty() && around_.endpoints != endpoints_) {
      put_endpoints(around_.endpoints);
    }
    std::vector<ModelRequest> asked;
    for (const std::size_t i : missing) asked.push_back(requests[i]);
    std::int64_t spent = prompt_tokens_ + completion_tokens_;
    auto interruption = around_.model.ask(asked, [&](std::size_t index, ModelReply reply) {
      const std::size_t i = missing[index];
      const ModelRequest& request = requests[i];
      reply = within_limits(std::move(reply));
      const json::object event = response_event(request, reply);
      spent += tokens_of(event, "prompt_tokens") + tokens_of(event, "completion_tokens");
      std::string reason = why_unusable(kind, reply);
      if (!reason.empty() && may_ask_again(asking[i], spent)) {
        return ask_again(request, asking[i], {std::move(reply), std::move(reason)});
      }
      if (!turn.is_next(i)) keep(request, event);
      turn.arrive(i, {std::move(asking[i].refused), std::move(reply)});
      return reception();
    });
    if (interruption) interrupt(std::move(*interruption));
  }

  Reception reception() const {
    return {wants_replies() ? Reception::Next::go_on : Reception::Next::stop, ""};
  }

  /// Once a reply was refused so often, or the tokens are used up, it counts as it is.
  bool may_ask_again(const Asking& asking, std::int64_t spent) const {
    const auto attempts = asking.recorded + static_cast<int>(asking.refused.size()) + 1;
    const bool affordable = settings_.token_budget == 0 || spent < settings_.token_budget;
    return attempts < settings_.tries && !around_.as_is && affordable;
  }

  Reception ask_again(const ModelRequest& request, Asking& asking, Refused refused) {
    std::string reason = refused.reason;
    if (!around_.model.keeps_replies()) {
      asking.refused.push_back(std::move(refused));
      const int attempt = asking.recorded + static_cast<int>(asking.refused.size());
      say(request.id + ": " + reason + "; asking again (" + std::to_string(attempt + 1) + " of " +
          std::to_string(settings_.tries) + ")");
      keep(request, unusable_event(request, asking.refused.back().reply, attempt, reason));
    }
    return {going() ? Reception::Next::ask_again : Reception::Next::stop, std::move(reason)};
  }

  /// What the trajectory holds of a request: replies that were of no use, which are passed at once,
  /// and the one that was taken, if it is there.
  std::optional<Answer> recorded_answer(ReplyKind kind, const ModelRequest& request,
                                        Asking& asking) {
    while (const json::object* event = recorded()) {
      const bool refused = is_event(*event, "unusable", request.id);
      if ((!refused && !is_event(*event, "response", request.id)) ||
          (refused && asking.recorded + 1 >= settings_.tries)) {
        interrupt(around_.trajectory.not_as_expected("response " + request.id));
        break;
      }
      std::optional<ModelReply> reply = reply_in(*event, request);
      if (!reply) break;
      if (!refused) return Answer{{}, std::move(*reply)};
      const std::string reason = why_unusable(kind, *reply);
      put_reply(request, unusable_event(request, *reply, ++asking.recorded, reason), reason);
      if (!going()) break;
    }
    return std::nullopt;
  }

  std::optional<Answer> answer_in_journal(const ModelRequest& request, Asking& asking) {
    const std::string hash = request.prompt.sha256();
    for (int attempt = asking.recorded + 1; attempt < settings_.tries; ++attempt) {
      const json::object* entry =
          journal_entry("unusable", request.id, "prompt_sha256", hash, attempt);
      std::optional<ModelReply> reply = entry ? reply_in(*entry, request) : std::nullopt;
      if (!reply) break;
      const json::value* reason = entry->if_contains("reason");
      asking.refused.push_back({std::move(*reply), reason && reason->is_string()
                                                       ? std::string(reason->get_string())
                                                       : ""});
    }
    const json::object* entry = journal_entry("response", request.id, "prompt_sha256", hash);
    std::optional<ModelReply> reply = entry ? reply_in(*entry, request) : std::nullopt;
    if (!reply) return std::nullopt;
    return Answer{std::move(asking.refused), std::move(*reply)};
  }

  std::optional<ModelReply> reply_in(const json::object& event, const ModelRequest& request) {
    const json::value* recorded = around_.trajectory.recorded_value(event);
    const json::value kept = recorded ? json::value() : json::value(event);
    Result<ModelReply> taken =
        reply_from_event(recorded ? *recorded : kept, where() + ": response " + request.id);
    if (taken) return std::move(*taken);
    interrupt({Kind::bad_file, taken.error().message});
    return std::nullopt;
  }

  void put_answer(const ModelRequest& request, int recorded, const Answer& answer) {
    for (const Refused& refused : answer.refused) {
      put_reply(request, unusable_event(request, refused.reply, ++recorded, refused.reason),
                refused.reason);
    }
    put_reply(request, response_event(request, answer.reply), "");
  }

  static std::int64_t tokens_of(const json::object& event, const char* key) {
    return event.at(key).as_int64();
  }

  // ── Models that give nothing of use ──────────────────────────────────────────────────────────

  /// Looks at the replies to a request, in the order of the trajectory, the one that counts last.
  /// Ends the round where it is plain that there will be nothing of use.
  void judge(ReplyKind kind, const std::vector<ModelRequest>& requests, std::size_t index,
             std::size_t replies, const ModelReply& reply) {
    Useless& row = useless_[kind];
    if (kind == ReplyKind::kernel && index == 0) row = {};
    if (kind == ReplyKind::kernel && row.requests < index) return;  // an earlier one was of use
    const std::string reason = why_unusable(kind, reply);
    if (reason.empty()) {
      row = {};
      return;
    }
    row.asked = requests.size();
    ++row.requests;
    row.replies += replies;
    row.last = "to " + requests[index].id + " of model " + requests[index].model +
               beginning_of(reply.text) + ": " + reason;
    const bool at_end = index + 1 == requests.size();
    // Those whose turn comes later may do better.
    const bool all_models = row.requests >= settings_.models.size();
    const bool enough =
        kind == ReplyKind::kernel && at_end
            ? row.replies >= enough_in_a_round
            : all_models && row.replies >= (at_end ? enough_in_a_round : enough_at_first);
    if (enough) given_up_ = gives_up();
  }

  /// What a model says that does not do what it is asked, in its words.
  static std::string beginning_of(const std::string& text) {
    constexpr std::size_t shown_bytes = 80;
    std::string words = text.substr(0, 4 * shown_bytes);
    std::replace(words.begin(), words.end(), '\n', ' ');
    return words.empty() ? "" : ", which begins \"" + one_line(words, shown_bytes) + "\"";
  }

  void give_up(int round, ReplyKind kind) {
    const Useless row = std::exchange(useless_[kind], {});
    const std::string asked = kind == ReplyKind::ideas ? "ideas" : counted(row.asked, "kernel");
    const std::string which = row.asked > row.requests ? "the first " : "";
    stop(
        stop_for_unusable_replies,
        printable("round " + std::to_string(round) + ": asked for " + asked + ", none of " + which +
                      std::to_string(row.replies) + " replies was of use; the last, " + row.last,
                  1000));
  }

  /// A person's wish, and a model that costs nothing, decide only where nothing is recorded yet.
  bool gives_up() {
    const json::object* next = recorded();
    if (!going()) return false;
    if (!next) return !around_.as_is && !around_.model.keeps_replies();
    const json::value* reason = next->if_contains("reason");
    return is_event(*next, "stop") && reason && *reason == stop_for_unusable_replies;
  }

  void put_reply(const ModelRequest& request, const json::object& event,
                 const std::string& unusable) {
    put(event);
    if (!going()) return;
    const ReplyReport report{request.id, request.model, unusable, tokens_of(event, "prompt_tokens"),
                             tokens_of(event, "completion_tokens")};
    prompt_tokens_ += report.prompt_tokens;
    completion_tokens_ += report.completion_tokens;
    if (around_.observer.reply) around_.observer.reply(report);
  }

  /// A reply that waits for its turn, or was of no use.
  void keep(const ModelRequest& request, json::object event) {
    if (around_.model.keeps_replies()) return;
    event["prompt_sha256"] = request.prompt.sha256();
    add_to_journal(event);
  }

  // ── Evaluations ──────────────────────────────────────────────────────────────────────────────

  void evaluate(int round, const std::vector<WaveItem>& wave) {
    InTurn<json::object> turn(
        wave.size(),
        [&](std::size_t i, const json::object& record) { put_evaluation(round, wave[i], record); },
        [&] { return going(); });
    std::vector<std::size_t> missing;
    bool anything_new = false;
    for (std::size_t i = 0; i < wave.size() && going(); ++i) {
      if (!wave[i].candidate) {
        turn.arrive(i, recorded_invalid_reply(header_.problem, wave[i].complaint));
        continue;
      }
      const json::object* record = turn.is_next(i) ? recorded("evaluation", wave[i].id) : nullptr;
      if (!record && going()) {
        anything_new = true;
        record =
            journal_entry("evaluation", wave[i].id, "sha256", candidate_sha256(*wave[i].candidate));
      }
      if (record && turn.is_next(i)) {
        turn.pass_next(*record);
      } else if (record) {
        turn.arrive(i, *record);
      } else {
        missing.push_back(i);
      }
    }
    if (going() && !missing.empty()) evaluate_missing(round, wave, missing, turn);
    if (anything_new) forget_journal();
  }

  void evaluate_missing(int round, const std::vector<WaveItem>& wave,
                        const std::vector<std::size_t>& missing, InTurn<json::object>& turn) {
    const std::string what = "round " + std::to_string(round) + ": candidates evaluated: ";
    const TimeLeft left(missing.size());
    std::size_t done = 0;
    show(what + left.text(done));
    std::vector<EvaluationRequest> asked;
    for (const std::size_t i : missing) asked.push_back({wave[i].id, &*wave[i].candidate});
    auto interruption =
        around_.evaluator.evaluate(asked, [&](std::size_t index, json::object record) {
          const std::size_t i = missing[index];
          refuse_other_gpu(wave[i].id, device_in(record));
          if (!going()) return false;
          if (!turn.is_next(i)) add_to_journal(evaluation_event(wave[i], record));
          turn.arrive(i, std::move(record));
          show(what + left.text(++done));
          return going();
        });
    if (interruption) interrupt(std::move(*interruption));
  }

  /// Nothing is recorded that a replay would refuse.
  void refuse_other_gpu(const std::string& id, const std::string& device) {
    if (settings_.mixed_gpus || device.empty()) return;
    if (device_.empty()) device_ = device;
    if (device == device_) return;
    interrupt(
        {Kind::failed, "the evaluation of " + id + " was made on an " + device +
                           ", the others on an " + device_ +
                           ": their times cannot be compared, and it is not recorded. Go on with " +
                           "GPUs of that kind; --mixed-gpus lets a search begin that takes both"});
  }

  void put_evaluation(int round, const WaveItem& item, const json::object& record) {
    // A recorded event that begins as it should is what would be made of it.
    const json::value* recorded = begins_with(record, evaluation_title(item))
                                      ? around_.trajectory.recorded_value(record)
                                      : nullptr;
    const json::value made = recorded ? json::value() : evaluation_event(item, record);
    const json::value& value = recorded ? *recorded : made;
    const json::object& event = value.get_object();
    Result<Outcome> outcome = outcome_from_record(value, where() + ": evaluation " + item.id);
    if (!outcome) return interrupt({Kind::bad_file, outcome.error().message});
    auto interruption =
        recorded ? around_.trajectory.put_recorded() : around_.trajectory.put(event);
    if (interruption) return interrupt(std::move(*interruption));
    remember(round, item, *outcome, event);
    if (around_.observer.candidate) {
      around_.observer.candidate({item.id, round, item.idea, item.model, item.parents,
                                  item.candidate ? &*item.candidate : nullptr, &*outcome, &event});
    }
  }

  void remember(int round, const WaveItem& item, const Outcome& outcome,
                const json::object& event) {
    std::string line = outcome_line(outcome);
    if (const std::string device = device_in(event); !device.empty()) {
      if (device_.empty()) device_ = device;
      if (settings_.mixed_gpus) line += ", on " + device;
    }
    history_.add({item.id, item.idea.title, outcome.passed(), line, prompt_log(outcome)});
    if (!item.candidate) return;
    if (outcome.passed()) {
      correct_.push_back({item.id, item.idea_id, round, outcome.cost(settings_.mixed_gpus),
                          std::string(event.at("sha256").as_string())});
    }
    if (outcome.passed() || needed_until_.contains(item.id)) {
      kept_[item.id] = {std::move(line), item.candidate, ""};
    }
  }

  // ── Selection ────────────────────────────────────────────────────────────────────────────────

  void select(int round, const std::string& id, const std::string& note) {
    if (!going()) return;
    selection_ = select_seeds(settings_, correct_, round, selection_.survivors);
    put({{"event", "selection"},
         {"id", id},
         {"round", round},
         {"survivors", json::value_from(selection_.survivors)},
         {"bank", json::value_from(selection_.bank)},
         {"note", printable(note, 1000)},
         {"prompt_tokens", prompt_tokens_},
         {"completion_tokens", completion_tokens_}});
    forget_kernels(round);
    if (going() && around_.observer.selection) {
      around_.observer.selection({round, selection_});
    }
  }

  /// Keeps the sources that a later prompt can show, and no others: memory does not grow with
  /// rounds.
  void forget_kernels(int round) {
    std::set<std::string> used(selection_.survivors.begin(), selection_.survivors.end());
    used.insert(selection_.bank.begin(), selection_.bank.end());
    std::erase_if(kept_, [&](const auto& entry) {
      const auto needed = needed_until_.find(entry.first);
      const bool later = needed != needed_until_.end() && needed->second > round;
      return !used.contains(entry.first) && !later;
    });
  }

  // ── Journal ──────────────────────────────────────────────────────────────────────────────────

  /// An entry counts only if it belongs to the same prompt or candidate.
  const json::object* journal_entry(const char* event, const std::string& id, const char* key,
                                    const std::string& hash, int attempt = 0) const {
    const json::object* entry =
        around_.journal ? around_.journal->find(event, id, attempt) : nullptr;
    const json::value* kept = entry ? entry->if_contains(key) : nullptr;
    return kept && kept->is_string() && kept->get_string() == hash ? entry : nullptr;
  }

  void add_to_journal(const json::object& entry) {
    if (!around_.journal) return;
    if (Result<Ok> added = around_.journal->add(entry); !added) {
      interrupt({Kind::failed, added.error().message});
    }
  }

  /// A wave was completed by this run, so that all of the journal is in the trajectory. Behind a
  /// wave that was wholly recorded, the journal may already belong to the next one.
  void forget_journal() {
    if (around_.journal && going()) around_.journal->clear();
  }

  const Header& header_;
  Settings settings_;                     ///< the header's, or with what continuations changed
  std::vector<ModelSettings> endpoints_;  ///< as far as they are recorded
  SearchSurroundings around_;
  std::optional<Interruption> interruption_;
  std::string reason_;
  std::string note_;

  PromptHistory history_;
  std::vector<Ranked> correct_;
  Selection selection_;
  std::map<std::string, Kept> kept_;
  std::map<std::string, Kept> seeds_;  ///< the correct ones
  std::string device_;                 ///< that the first times are of
  bool went_on_ = false;               ///< by this run's wish
  std::map<ReplyKind, Useless> useless_;
  bool given_up_ = false;                    ///< this round, for want of replies of use
  std::map<std::string, int> needed_until_;  ///< last round whose plan names this candidate
  std::int64_t prompt_tokens_ = 0;
  std::int64_t completion_tokens_ = 0;
};

}  // namespace

Result<std::vector<ModelSettings>> endpoints_from_json(const json::object& event,
                                                       const std::vector<ModelSettings>& models,
                                                       const std::string& where) {
  const json::value value = event;
  JsonReader reader(where, value);
  for (const char* key : {"event", "chain"}) reader.optional(key);
  JsonReader entries = reader.required("models");
  std::vector<ModelSettings> endpoints = read_models(entries);
  reader.no_other_keys();
  const auto same_name = [](const ModelSettings& a, const ModelSettings& b) {
    return a.name == b.name;
  };
  if (!std::equal(endpoints.begin(), endpoints.end(), models.begin(), models.end(), same_name)) {
    entries.fail("expected the models of the search");
  }
  if (auto error = reader.error()) return *error;
  return endpoints;
}

SearchEnd run_search(const Header& header, SearchSurroundings surroundings) {
  return Search(header, std::move(surroundings)).run();
}

}  // namespace rekernel
