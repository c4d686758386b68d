#include "harness/dataset/atif.h"

#include <boost/json.hpp>

#include "harness/base/harness_digest.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/dataset/round_memory.h"
#include "replay/playback/replayer.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

class AtifWriter {
 public:
  AtifWriter(const Header& header, const std::function<bool(std::string_view)>& write)
      : header_(header), write_(write) {
    json::object agent{{"name", "rekernel"}, {"version", harness_digests().judge}};
    if (!header.settings.models.empty()) agent["model_name"] = header.settings.models.front().name;
    json::object beginning{{"schema_version", atif_version},
                           {"session_id", header.name},
                           {"trajectory_id", header.name},
                           {"agent", std::move(agent)},
                           {"notes", notes()},
                           {"extra",
                            {{"problem", header.problem},
                             {"device", header.device.name},
                             {"replies", header.replies}}}};
    std::string text = json::serialize(beginning);
    text.back() = ',';
    put(text + "\"steps\":[");
  }

  SearchObserver observer() {
    SearchObserver observer;
    observer.request = [this](const RequestReport& report) { round_.note(report); };
    observer.reply = [this](const ReplyReport& report) { round_.note(report); };
    observer.candidate = [this](const CandidateReport& report) {
      outcomes_[report.id] = *report.outcome;
      if (report.parents.empty() && report.model.empty()) put_seed(report);
    };
    observer.selection = [this](const SelectionReport& report) { end_round(report); };
    return observer;
  }

  void finish() {
    put_replies();
    json::object totals{{"total_prompt_tokens", prompt_tokens_},
                        {"total_completion_tokens", completion_tokens_},
                        {"total_steps", steps_}};
    put("],\"final_metrics\":" + json::serialize(totals) + "}\n");
  }

  std::size_t steps() const { return steps_; }
  bool written() const { return written_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  std::string notes() const {
    return header_.notes + (header_.notes.empty() ? "" : " ") +
           "Requests of a round were asked at once; here they stand one after the other.";
  }

  void put(std::string_view text) { written_ = written_ && write_(text); }

  void put_step(const json::object& step) {
    json::object whole{{"step_id", ++steps_}};
    for (const auto& [key, value] : step) whole[key] = value;
    put((steps_ > 1 ? "," : "") + json::serialize(whole));
  }

  void put_seed(const CandidateReport& report) {
    put_step({{"source", "system"},
              {"message", report.id + ": " + outcome_line(*report.outcome)},
              {"extra", {{"candidate", report.id}, {"idea", report.idea.text}}}});
  }

  void put_replies() {
    for (const KeptRequest& request : round_.requests) {
      for (const KeptReply& reply : request.replies) put_reply(request, reply);
    }
    round_ = {};
    outcomes_.clear();
  }

  void put_reply(const KeptRequest& request, const KeptReply& reply) {
    if (!is_utf8(reply.text) && !error_) {
      error_ = Error{header_.name + ": the reply to " + request.id + " is not UTF-8"};
    }
    if (error_) return;
    put_step({{"source", "user"},
              {"message", request.prompt.text()},
              {"extra",
               {{"request", request.id},
                {"parents", json::value_from(request.parents)},
                {"prompt_sha256", request.prompt.sha256()}}}});
    json::object step{{"source", "agent"},
                      {"model_name", request.model},
                      {"message", reply.text},
                      {"llm_call_count", 1},
                      {"metrics",
                       {{"prompt_tokens", reply.prompt_tokens},
                        {"completion_tokens", reply.completion_tokens},
                        {"extra", {{"counted", reply.counted}}}}}};
    std::string seen = reply.unusable.empty() ? "" : "The reply cannot be used: " + reply.unusable;
    if (const auto outcome = outcomes_.find(request.id);
        seen.empty() && outcome != outcomes_.end()) {
      seen = outcome_line(outcome->second);
    }
    if (!seen.empty()) {
      step["observation"] = {{"results", json::array{{{"content", seen}}}}};
    }
    put_step(step);
    prompt_tokens_ += reply.prompt_tokens;
    completion_tokens_ += reply.completion_tokens;
  }

  void end_round(const SelectionReport& report) {
    put_replies();
    put_step({{"source", "system"},
              {"message", "round " + std::to_string(report.round) + ": survivors " +
                              joined(report.selection.survivors) + "; bank " +
                              joined(report.selection.bank)},
              {"extra", {{"round", report.round}}}});
  }

  const Header& header_;
  const std::function<bool(std::string_view)>& write_;
  RoundMemory round_;
  std::map<std::string, Outcome> outcomes_;
  std::size_t steps_ = 0;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t completion_tokens_ = 0;
  bool written_ = true;
  std::optional<Error> error_;
};

}  // namespace

Result<std::size_t> write_atif(const fs::path& trajectory,
                               const std::function<bool(std::string_view)>& write) {
  std::optional<AtifWriter> writer;
  const Replay replay = replay_observed(trajectory, [&](const Header& header) {
    writer.emplace(header, write);
    return writer->observer();
  });
  if (replay.interruption) return Error{replay.interruption->message};
  writer->finish();
  if (writer->error()) return *writer->error();
  if (!writer->written()) return Error{"the trajectory could not be written"};
  return writer->steps();
}

}  // namespace rekernel
