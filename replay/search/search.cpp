#include "replay/search/search.h"

#include <algorithm>
#include <boost/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "harness/base/parallel.h"
#include "harness/base/text.h"
#include "replay/search/candidate_memory.h"
#include "replay/search/ending.h"
#include "replay/search/evaluation_collector.h"
#include "replay/search/profile_collector.h"
#include "replay/search/prompt.h"
#include "replay/search/recording.h"
#include "replay/search/reply_collector.h"
#include "replay/search/wave.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;

struct IdeaInRound {
  std::string id;  ///< "r4.i2"
  Idea idea;
};

json::object request_event(int round, const char* kind, const ModelRequest& request,
                           const PromptParts& parts) {
  return {{"event", "request"},
          {"id", request.id},
          {"round", round},
          {"kind", kind},
          {"model", request.model},
          {"prompt_sha256", request.prompt.sha256()},
          {"prompt_bytes", request.prompt.size()},
          {"parents", json::value_from(ids_of(parts))}};
}

/// The rounds of a search.
class Search {
 public:
  Search(const Header& header, SearchSurroundings surroundings)
      : header_(header),
        settings_(header.settings),
        around_(std::move(surroundings)),
        recording_(around_.trajectory, around_.journal, header.settings.models),
        memory_(header),
        replies_(settings_, around_, recording_),
        evaluations_(header.problem, settings_, around_, recording_),
        profiles_(around_, recording_, memory_),
        ending_(header, settings_, around_, recording_, memory_, replies_.tokens()) {
    memory_.expect(settings_.round_plans);
  }
  Search(const Search&) = delete;  // its parts know each other
  Search& operator=(const Search&) = delete;

  SearchEnd run() {
    recording_.put(to_json(header_));
    evaluate_seeds();
    for (int round = settings_.first_round; recording_.going();) {
      while (round <= settings_.last_round() && recording_.going()) {
        if (run_round(round)) ++round;
      }
      if (recording_.going()) ending_.stop("rounds");
    }
    return recording_.close();
  }

 private:
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
    memory_.keep_as_seeds();
    select(round, "seeds", "");
  }

  /// False where nothing came of it: the search is over, or goes on with the same round.
  bool run_round(int round) {
    const std::string id = "r" + std::to_string(round);
    std::string note;
    replies_.begin_round();
    const std::vector<IdeaInRound> ideas = find_ideas(round, note);
    std::vector<WaveItem> wave;
    if (replies_.wants_replies()) wave = write_kernels(round, ideas);
    if (replies_.has_given_up()) {
      const ReplyKind kind = ideas.empty() ? ReplyKind::ideas : ReplyKind::kernel;
      ending_.stop(stop_for_unusable_replies, replies_.take_note(kind, round));
    }
    if (!replies_.wants_replies()) return false;
    evaluate(round, wave);
    select(round, id, note);
    return true;
  }

  // ── Ideas ────────────────────────────────────────────────────────────────────────────────────

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
    profiles_.collect(settings_, round);
    if (!recording_.going()) return {};
    const PromptParts parts = memory_.prompt_parts(settings_, round);
    const std::size_t turn = static_cast<std::size_t>(round - settings_.first_round);
    const std::vector<ModelRequest> requests{{"r" + std::to_string(round) + ".ideas",
                                              model_name(turn),
                                              PromptWriter(header_, parts).ideas(settings_.ideas)}};
    if (!ending_.may_ask(requests)) return {};
    // The search may have stopped here and gone on with a plan.
    if (std::vector<Idea> planned = planned_ideas(round); !planned.empty()) return planned;
    recording_.put(request_event(round, "ideas", requests[0], parts));
    tell_of_request({ReplyKind::ideas, round, requests.data(), &parts, nullptr});
    around_.observer.show("round " + std::to_string(round) + ": asking for ideas");
    std::vector<Idea> ideas;
    replies_.collect(ReplyKind::ideas, requests, [&](std::size_t, ReadReply& reply) {
      ideas = ideas_in(requests[0].id, reply, note);
    });
    if (!replies_.wants_replies()) return {};
    return ideas;
  }

  std::vector<Idea> ideas_in(const std::string& id, ReadReply& reply, std::string& note) const {
    if (!reply.content) {
      note = id + ": " + reply.content.error().message;
      around_.observer.tell(note + "; the round has no ideas");
      return {};
    }
    auto ideas = std::get<std::vector<Idea>>(std::move(*reply.content));
    const auto wanted = static_cast<std::size_t>(settings_.ideas);
    if (ideas.size() != wanted) {
      around_.observer.tell(
          id + ": the reply has " + counted(ideas.size(), "idea") + ", " + std::to_string(wanted) +
          " were asked for" +
          (ideas.size() > wanted ? "; the rest is left out" : "; the round goes on with fewer"));
    }
    if (ideas.size() > wanted) ideas.resize(wanted);
    return ideas;
  }

  /// Models take turns.
  const std::string& model_name(std::size_t turn) const {
    return settings_.models[turn % settings_.models.size()].name;
  }

  void tell_of_request(const RequestReport& report) const {
    if (recording_.going() && around_.observer.request) around_.observer.request(report);
  }

  // ── Kernels ──────────────────────────────────────────────────────────────────────────────────

  std::vector<WaveItem> write_kernels(int round, const std::vector<IdeaInRound>& ideas) {
    profiles_.collect(settings_, round);
    if (!recording_.going()) return {};
    const PromptParts parts = memory_.prompt_parts(settings_, round);
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
        item.parents = ids_of(parts);
        requests.push_back({item.id, item.model, writer.kernel(one.idea, branch)});
        wave.push_back(std::move(item));
      }
    }
    if (requests.empty() || !ending_.may_ask(requests)) return {};
    for (std::size_t i = 0; i < requests.size(); ++i) {
      json::object event = request_event(round, "kernel", requests[i], parts);
      event["idea"] = wave[i].idea.title;
      recording_.put(event);
      tell_of_request({ReplyKind::kernel, round, &requests[i], &parts, &wave[i].idea});
    }
    around_.observer.show("round " + std::to_string(round) + ": asking for " +
                          std::to_string(requests.size()) + " kernels");
    std::vector<std::optional<ReadReply>> replies(wave.size());
    replies_.collect(ReplyKind::kernel, requests,
                     [&](std::size_t i, ReadReply& reply) { replies[i] = std::move(reply); });
    if (!replies_.wants_replies()) return {};
    make_candidates(wave, replies);
    return wave;
  }

  /// A few are made in less time than a thread takes to begin.
  void make_candidates(std::vector<WaveItem>& wave,
                       std::vector<std::optional<ReadReply>>& replies) const {
    constexpr std::size_t worth_a_thread = 8;
    const std::size_t workers =
        std::min<std::size_t>(std::thread::hardware_concurrency(), wave.size() / worth_a_thread);
    for_each_in_parallel(wave.size(), static_cast<unsigned>(std::max<std::size_t>(workers, 1)),
                         [&](std::size_t i) { make_candidate(wave[i], replies[i].value()); });
  }

  void make_candidate(WaveItem& item, ReadReply& reply) const {
    if (!reply.content) {
      item.complaint = reply.content.error().message;
      return;
    }
    Result<Candidate> candidate = candidate_from_reply(
        std::get<KernelReply>(std::move(*reply.content)),
        {header_.problem, header_.name, item.id, item.idea.text, newest_arch(header_.device)});
    if (candidate) {
      item.candidate = std::make_shared<const Candidate>(std::move(*candidate));
    } else {
      item.complaint = complaint_about(reply.reply, candidate.error());
    }
  }

  // ── Evaluations and selection ────────────────────────────────────────────────────────────────

  void evaluate(int round, const std::vector<WaveItem>& wave) {
    evaluations_.collect(
        "round " + std::to_string(round) + ": candidates evaluated: ", wave,
        [&](const WaveItem& item, const Outcome& outcome, const json::object& event) {
          memory_.add(round, item, outcome, event, settings_.mixed_gpus);
          if (around_.observer.candidate) {
            around_.observer.candidate({item.id, round, item.idea, item.model, item.parents,
                                        item.candidate ? &*item.candidate : nullptr, &outcome,
                                        &event});
          }
        });
  }

  void select(int round, const std::string& id, const std::string& note) {
    if (!recording_.going()) return;
    const Selection& selection = memory_.select(settings_, round);
    recording_.put({{"event", "selection"},
                    {"id", id},
                    {"round", round},
                    {"survivors", json::value_from(selection.survivors)},
                    {"bank", json::value_from(selection.bank)},
                    {"note", printable(note, 1000)},
                    {"prompt_tokens", replies_.tokens().prompt},
                    {"completion_tokens", replies_.tokens().completion}});
    if (recording_.going() && around_.observer.selection) {
      around_.observer.selection({round, selection});
    }
  }

  const Header& header_;
  Settings settings_;  ///< the header's, or with what continuations changed
  const SearchSurroundings around_;
  SearchRecord recording_;
  CandidateMemory memory_;
  ReplyCollector replies_;
  EvaluationCollector evaluations_;
  ProfileCollector profiles_;
  Ending ending_;
};

}  // namespace

SearchEnd run_search(const Header& header, SearchSurroundings surroundings) {
  return Search(header, std::move(surroundings)).run();
}

}  // namespace rekernel
