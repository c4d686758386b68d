#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "replay/evaluator/evaluator.h"
#include "replay/model/model.h"
#include "replay/playback/replayer.h"
#include "replay/search/reply.h"
#include "replay/search/search.h"
#include "replay/trajectory/header.h"
#include "tests/temporary.h"

namespace rekernel::testing {

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

/// A search for softmax kernels by two models.
Header small_header(int rounds = 3, int ideas = 2, int branches = 2);

/// The reply that the fake model gives to a request, by its id alone: ideas are a list, kernels are
/// good except for some that are prose, hold two code blocks or are not UTF-8.
ModelReply fake_reply(const std::string& id);
/// A reply with this source and the worked example's plan.
std::string kernel_reply(const std::string& source_comment);
/// The candidate that a reply's text describes.
Result<Candidate> candidate_from_text(std::string_view reply, const CandidateFrame& frame);

/// An evaluation without references, for sm_90a, that does not contradict itself.
Evaluation passing_evaluation(const Candidate& candidate, std::int64_t median_ns);
struct FakeGpu {
  std::string name = "NVIDIA H200";
  std::int64_t reference_ns = 1000000;
};

/// The record that the fake evaluator gives, by the candidate's id alone: most pass.
/// `median_ns`: its time, if it passes; it does where its GPU is given.
boost::json::object fake_record(const std::string& id, const Candidate& candidate,
                                std::optional<std::int64_t> median_ns = std::nullopt,
                                const std::optional<FakeGpu>& gpu = std::nullopt);

/// Answers in an order that `seed` shuffles; writes each id to `log`, if there is one, as it is
/// asked.
class FakeModel : public Model {
 public:
  explicit FakeModel(unsigned seed = 0) : seed_(seed) {}
  std::optional<Interruption> ask(std::span<const ModelRequest> requests,
                                  const Arrived& arrived) override;
  std::vector<std::string> asked;
  std::map<std::string, std::string> prompts;
  std::map<std::string, std::string> replies;  ///< instead of fake_reply
  /// Before the reply: those that come first, if they are asked for again.
  std::map<std::string, std::vector<std::string>> first_replies;
  /// Called before a reply is handed over.
  std::function<void(const std::string& id)> before;

 private:
  unsigned seed_;
};

class FakeEvaluator : public Evaluator {
 public:
  explicit FakeEvaluator(unsigned seed = 0) : seed_(seed) {}
  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override;
  /// A text by the candidate's id alone; none for ids in `unprofiled`.
  std::optional<Interruption> profile(const EvaluationRequest& request,
                                      ProfileRecord& profile) override;
  std::vector<std::string> evaluated;
  std::vector<std::string> profiled;
  std::set<std::string> unprofiled;
  std::optional<Interruption> no_profiler;  ///< in place of any profile
  std::function<void(const std::string& id)> before;
  /// Times by id, instead of fake_record's.
  std::map<std::string, std::int64_t> times;
  /// The GPU of an id, instead of fake_record's.
  std::function<FakeGpu(const std::string& id)> gpu_of;

 private:
  unsigned seed_;
};

/// Runs or resumes a search on a file.
SearchEnd run_on_file(const std::filesystem::path& path, const Header& header, Model& model,
                      Evaluator& evaluator, SearchObserver observer = {},
                      std::function<bool()> deadline = {}, bool stop_asked = false,
                      std::optional<Continuation> continuation = {}, bool resumed = false);

/// Runs a whole search with the fakes and gives the file's text.
std::string recorded_search(const std::filesystem::path& path, const Header& header,
                            unsigned seed = 0);

/// The lines with their newlines.
std::vector<std::string> lines_of(const std::string& text);
std::string joined(const std::vector<std::string>& lines);
/// The same events with the chain values that belong to them.
std::string with_fresh_chain(const std::string& text);

}  // namespace rekernel::testing
