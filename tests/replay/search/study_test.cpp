// The study of trajectories/ten, from its file to its results, with stand-ins for models and GPUs.

#include "replay/search/study.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>
#include <numeric>

#include "harness/evaluation/speed_of_light.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "replay/model/files_model.h"
#include "replay/report/study_results.h"
#include "replay/trajectory/event.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path study_file = fs::path(REKERNEL_SOURCE_DIR) / "trajectories/ten/study.json";

std::string study_error(const std::string& text) {
  const TemporaryFolder folder;
  testing::write_text(folder / "s.json", text);
  const auto study = load_study(folder / "s.json");
  return study ? "good" : study.error().message.substr(folder.path().string().size() + 1);
}

DeviceProperties h200() {
  const DeviceFacts facts = *known_device("h200");
  DeviceProperties device;
  device.name = facts.name;
  device.major = 9;
  device.multiprocessors = static_cast<int>(facts.multiprocessors);
  device.l2_bytes = facts.l2_bytes;
  device.clock_khz = facts.clock_khz;
  device.memory_clock_khz = facts.memory_clock_khz;
  device.memory_bus_bits = facts.memory_bus_bits;
  return device;
}

/// A time for a candidate, by its problem and its id: all pass, and later rounds are faster.
class StandIn : public Evaluator {
 public:
  explicit StandIn(const Problem& problem) : problem_(problem) {}

  std::optional<Interruption> evaluate(std::span<const EvaluationRequest> requests,
                                       const Arrived& arrived) override {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!arrived(i, record_of(requests[i].id, *requests[i].candidate))) break;
    }
    return std::nullopt;
  }
  std::optional<Interruption> profile(const EvaluationRequest& request,
                                      ProfileRecord& profile) override {
    profile = {"NVIDIA H200", "stand-in", std::string(2000, 'p') + request.id + "\n", ""};
    return std::nullopt;
  }

 private:
  json::object record_of(const std::string& id, const Candidate& candidate) const {
    Evaluation evaluation = testing::passing_evaluation(candidate, time_of(id));
    evaluation.resources.clear();
    evaluation.errors->max_abs = 1e-7;
    evaluation.speed_of_light_ns = speed_of_light_ns(problem_, h200());
    ReferenceResult reference;
    reference.id = "pytorch_eager";
    reference.timing = summarise({4'000'000});
    reference.percent_of_reference =
        percent_of_reference(reference.timing.samples_ns, evaluation.timing->samples_ns);
    if (problem_.id.starts_with("matmul_upper") || problem_.id.starts_with("conv")) {
      reference.id = "pytorch_eager_fp32";
    }
    evaluation.references = {reference};
    return recorded_evaluation(evaluation, "NVIDIA H200", "NVRTC 13.0");
  }
  std::int64_t time_of(const std::string& id) const {
    if (id.starts_with("seed")) return 40'000'000;
    const auto number = std::stoull(sha256_hex(problem_.id + id).substr(0, 8), nullptr, 16);
    return 9'000'000 - (id[1] - '0') * 1'000'000 + static_cast<std::int64_t>(number % 2'000'000);
  }

  const Problem& problem_;
};

TEST(Lot, DependsOnTheListAlone) {
  const std::vector<std::string> problems = {"a", "b", "c", "d"};
  const auto two = drawn(problems, 2);
  EXPECT_EQ(two.size(), 2u);
  EXPECT_EQ(drawn(problems, 2), two);
  const auto three = drawn(problems, 3);
  for (const std::string& one : two) {
    EXPECT_NE(std::find(three.begin(), three.end(), one), three.end());
  }
  EXPECT_EQ(drawn(problems, 9).size(), 4u);
  // printf 'a\nb\nc\nd\n' | sha256sum
  EXPECT_EQ(seed_of_lot(problems),
            "cf2c7f63055d2e84af6e3f01ac1bb7fce598d20cf213fab2b56b8e8047b46ced");
}

TEST(StudyOfTen, IsWhatItsPageSays) {
  const auto study = load_study(study_file);
  ASSERT_TRUE(study) << study.error().message;
  EXPECT_EQ(study->problems.size(), 10u);
  EXPECT_EQ(study->profiled.size(), 5u);
  const std::string page = testing::read_text(study_file.parent_path() / "STUDY.md");
  EXPECT_NE(page.find(seed_of_lot(study->problems)), std::string::npos);
  for (std::size_t i = 0; i < study->problems.size(); ++i) {
    const std::string& problem = study->problems[i];
    const std::string row = "| " + std::to_string(i + 1) + " | `" + problem + "` |";
    const std::size_t at = page.find(row);
    ASSERT_NE(at, std::string::npos) << row;
    const std::string line = page.substr(at, page.find('\n', at) - at);
    EXPECT_EQ(line.ends_with("| yes |"), study->is_profiled(problem)) << line;
    const auto file = search_of(*study, study->search_name(problem));
    ASSERT_TRUE(file);
    EXPECT_EQ(file->settings.profiles, study->is_profiled(problem));
  }
  EXPECT_FALSE(search_of(*study, "ten-softmax"));
}

TEST(Study, NamesWhatIsWrong) {
  const auto with = [](const std::string& problems, const std::string& profiled,
                       const std::string& search) {
    return study_error(R"({"schema": 1, "name": "s", "problems": )" + problems +
                       ", \"profiled\": " + profiled + ", \"search\": " + search + "}");
  };
  EXPECT_EQ(with(R"(["gelu", "relu"])", "[]", "{}"), "good");
  EXPECT_NE(with(R"(["gelu", "gelu"])", "[]", "{}").find("\"gelu\" appears twice"),
            std::string::npos);
  EXPECT_NE(with(R"(["gellu"])", "[]", "{}").find("unknown problem 'gellu'"), std::string::npos);
  EXPECT_NE(with("[]", "[]", "{}").find("at least one problem"), std::string::npos);
  EXPECT_NE(with(R"(["gelu"])", "[]", R"({"problem": "gelu"})").find("the study has a list"),
            std::string::npos);
  EXPECT_NE(with(R"(["gelu"])", "[]", R"({"settings": {"profiles": true}})").find("profiles"),
            std::string::npos);
  const std::string first = drawn({"gelu", "relu"}, 1).front();
  const std::string other = first == "gelu" ? "relu" : "gelu";
  EXPECT_EQ(with(R"(["gelu", "relu"])", "[\"" + first + "\"]", "{}"), "good");
  EXPECT_NE(
      with(R"(["gelu", "relu"])", "[\"" + other + "\"]", "{}").find("what the lot draws: " + first),
      std::string::npos);
}

/// One of the searches, answered through files, round after round.
class StudiedFiles {
 public:
  StudiedFiles(const Study& study, const std::string& problem, const fs::path& folder)
      : problem_(*find_problem(problem)),
        path_(folder / (study.search_name(problem) + ".jsonl")),
        exchange_(folder / (study.search_name(problem) + ".exchange")) {
    SearchFile file = *search_of(study, study.search_name(problem));
    file.settings.references = {reference()};
    auto header = new_header(study.search_name(problem), file, REKERNEL_SOURCE_DIR, {});
    if (!header) throw std::runtime_error(header.error().message);
    header_ = std::move(*header);
  }

  /// Goes as far as it can. False: it waits for replies.
  bool advance() {
    StandIn evaluator(problem_);
    FilesModel model(exchange_);
    const SearchEnd end = testing::run_on_file(path_, header_, model, evaluator);
    if (!end.interruption) return true;
    EXPECT_EQ(end.interruption->kind, Interruption::Kind::waiting) << end.interruption->message;
    return end.interruption->kind != Interruption::Kind::waiting;
  }

  /// Answers each prompt that has no reply: ideas, or the slow kernel with another comment.
  int answer() const {
    int answered = 0;
    for (const auto& entry : fs::directory_iterator(exchange_)) {
      const std::string name = entry.path().filename().string();
      const std::string id = name.substr(0, name.find(".prompt.md"));
      const fs::path reply = exchange_ / (id + ".reply.md");
      if (!name.ends_with(".prompt.md") || fs::exists(reply)) continue;
      testing::write_text(reply,
                          id.ends_with(".ideas") ? testing::fake_reply(id).text : kernel_reply(id));
      ++answered;
    }
    return answered;
  }

  const fs::path& path() const { return path_; }
  std::string prompt(const std::string& id) const {
    return testing::read_text(exchange_ / (id + ".prompt.md"));
  }

 private:
  std::string reference() const {
    return problem_.id.starts_with("matmul_upper") || problem_.id.starts_with("conv")
               ? "pytorch_eager_fp32"
               : "pytorch_eager";
  }
  std::string kernel_reply(const std::string& id) const {
    const SeedCandidate& seed = header_.seeds.front();
    std::string plan = seed.plan;
    if (sha256_hex(id)[0] < '3') plan.replace(plan.find("sm_80"), 5, "sm_70");  // no such arch
    return "```cuda\n" + seed.source + "\n// " + id + "\n```\n```json\n" + plan + "```\n";
  }

  const Problem& problem_;
  fs::path path_;
  fs::path exchange_;
  Header header_;
};

TEST(StudyOfTen, RunsToItsEndByFileExchange) {
  const TemporaryFolder folder;
  const auto study = load_study(study_file);
  ASSERT_TRUE(study) << study.error().message;
  std::vector<StudiedSearch> searches;
  int passes = 0;
  std::vector<StudiedFiles> files;
  for (const std::string& problem : study->problems) {
    files.emplace_back(*study, problem, folder.path());
  }
  // As `rekernel study` does: each search as far as it goes, then all replies at once.
  for (bool over = false; !over && passes < 20; ++passes) {
    over = true;
    for (StudiedFiles& one : files) over = one.advance() && over;
    for (const StudiedFiles& one : files) {
      if (!over) one.answer();
    }
  }
  EXPECT_EQ(passes, 11);  // two for each round, and the end
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Replay replay = replay_exactly(files[i].path());
    ASSERT_FALSE(replay.interruption) << replay.interruption->message;
    const bool profiled = study->is_profiled(study->problems[i]);
    EXPECT_EQ(!replay.search.profiles.empty(), profiled);
    EXPECT_EQ(files[i].prompt("r2.i1.b1").find("What a profiler (stand-in)") != std::string::npos,
              profiled);
    EXPECT_LE(estimated_tokens(files[i].prompt("r5.i2.b2").size()), 32000);
    searches.push_back(studied(replay.search, profiled));
    EXPECT_TRUE(searches.back().whole);
    EXPECT_EQ(searches.back().candidates, 20);
    EXPECT_EQ(searches.back().seed_ns, 40'000'000);
    EXPECT_EQ(searches.back().line.best->round == 0, searches.back().line.rounds == 0);
  }
  const StudyFigures figures = figures_of(searches);
  EXPECT_EQ(figures.candidates, 200);
  EXPECT_EQ(figures.correct, 140);  // six of each twenty have a plan for another arch
  EXPECT_EQ(std::accumulate(figures.first_found.begin(), figures.first_found.end(), 0), 10);
}

}  // namespace
}  // namespace rekernel
