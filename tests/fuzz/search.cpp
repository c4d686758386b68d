#include "replay/search/search.h"

#include <boost/json.hpp>

#include "property.h"
#include "targets.h"
#include "tests/replay/fakes.h"

namespace rekernel::fuzz {
namespace {

/// What the surroundings of a search say, one after the other: parts of the input between lines of
/// "=====". Nothing once they are used up.
class Script {
 public:
  explicit Script(std::string_view text) : left_(text) {}

  std::string next() {
    constexpr std::string_view separator = "=====\n";
    const std::size_t end = left_.find(separator);
    const std::string part(left_.substr(0, end));
    left_.remove_prefix(end == std::string_view::npos ? left_.size() : end + separator.size());
    return part;
  }

 private:
  std::string_view left_;
};

/// Replies with what the script says; "!" before it makes it the reason for having no text.
class ScriptedModel : public Model {
 public:
  explicit ScriptedModel(Script& script) : script_(script) {}
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override {
    for (std::size_t i = 0; i < requests.size();) {
      ModelReply reply{script_.next()};
      if (reply.text.starts_with('!')) {
        reply.failure = reply.text.substr(1);
        reply.text.clear();
      }
      const Reception reception = arrived(i, std::move(reply));
      if (reception.next == Reception::Next::stop) break;
      if (reception.next == Reception::Next::go_on) ++i;
    }
    return std::nullopt;
  }

 private:
  Script& script_;
};

/// A kernel passes where the script says nothing; else that is what the compiler says.
class ScriptedEvaluator : public Evaluator {
 public:
  explicit ScriptedEvaluator(Script& script) : script_(script) {}
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      boost::json::object record = testing::fake_record(requests[i].id, *requests[i].candidate);
      if (const std::string text = script_.next(); !text.empty()) {
        Evaluation evaluation;
        evaluation.problem = requests[i].candidate->problem;
        evaluation.kernel = requests[i].candidate->name;
        evaluation.sha256 = candidate_sha256(*requests[i].candidate);
        evaluation.status = Status::compile_failed;
        evaluation.message = text;
        evaluation.compile_log = text;
        record = recorded_evaluation(evaluation, "", "compiler");
      }
      if (!arrived(i, std::move(record))) break;
    }
    return std::nullopt;
  }

 private:
  Script& script_;
};

/// Prompts are hashed, not read: short ones do.
Header short_header() {
  Header header = testing::small_header(2, 2, 1);
  header.settings.tries = 2;
  header.templates = {"{{problem}}{{device}}{{format}}{{seeds}}{{history}}{{idea_count}}",
                      "{{problem}}{{device}}{{format}}{{seeds}}{{history}}{{idea}}{{branch}}"};
  header.texts = {"problem", "device", "format"};
  return header;
}

}  // namespace

/// Whatever models and compilers say, a search comes to its end, and its file replays exactly.
void fuzz_search(std::string_view bytes) {
  static const TemporaryFolder folder;
  const std::filesystem::path path = folder / "t.jsonl";
  std::filesystem::remove(path);
  Script script(bytes);
  ScriptedModel model(script);
  ScriptedEvaluator evaluator(script);
  static const Header header = short_header();
  const SearchEnd end = testing::run_on_file(path, header, model, evaluator);
  require(!end.interruption, "a search ends", end.interruption ? end.interruption->message : "");
  const Replay replay = replay_exactly(path);
  require(!replay.interruption, "a search replays",
          replay.interruption ? replay.interruption->message : "");
  require(replay.search.stop_reason == end.reason, "a replay ends as the search did");
}

}  // namespace rekernel::fuzz
