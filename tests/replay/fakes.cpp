#include "tests/replay/fakes.h"

#include <boost/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "harness/base/files.h"
#include "harness/evaluation/statistics.h"
#include "harness/problems/catalog.h"
#include "replay/search/fixed_texts.h"
#include "replay/search/prompt.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/outcome.h"

namespace rekernel::testing {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

/// A number from an id, the same on every platform.
std::uint64_t number_of(const std::string& id) {
  return std::stoull(sha256_hex(id).substr(0, 12), nullptr, 16);
}

std::vector<std::size_t> shuffled(std::size_t count, unsigned seed, const std::string& salt) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  if (seed == 0) return order;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return number_of(std::to_string(seed) + salt + std::to_string(i));
    };
    return key(a) < key(b);
  });
  return order;
}

}  // namespace

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

Header small_header(int rounds, int ideas, int branches) {
  Header header;
  header.name = "fake";
  header.problem = "softmax";
  header.settings.rounds = rounds;
  header.settings.ideas = ideas;
  header.settings.branches = branches;
  header.settings.models = {{"one", "", ""}, {"two", "", ""}};
  header.settings.references = {"cudnn_softmax"};
  header.templates = default_templates();
  header.device = *known_device("h200");
  header.texts = {problem_text(*find_problem("softmax"), header.settings.references),
                  device_text(header.device), format_text(header.device.target)};
  header.toolchain = {{"NVRTC", "13.0"}};
  header.replies = "made up";
  return header;
}

std::string kernel_reply(const std::string& source_comment) {
  const SeedCandidate example = worked_example();
  return "Here it is.\n\n```cuda\n" + example.source + "// " + source_comment +
         "\n```\n\n```json\n" + example.plan + "```\n";
}

ModelReply fake_reply(const std::string& id) {
  ModelReply reply;
  if (id.ends_with(".ideas")) {
    reply.text = "Some thoughts.\n```json\n[{\"title\": \"Wider loads of " + id +
                 "\", \"idea\": \"Load four floats at once.\"}, {\"title\": \"Fewer passes\", "
                 "\"idea\": \"Keep the row on the chip.\"}]\n```\n";
    reply.prompt_tokens = 1000;
    reply.completion_tokens = 50;
    return reply;
  }
  switch (number_of(id) % 9) {
    case 0:
      reply.text = "I would rather talk about the weather.";
      break;
    case 1:
      reply.text = kernel_reply(id) + "\n```cuda\nint a;\n```\n";
      break;
    case 2:
      reply.text = "\xff\xfe" + kernel_reply(id);
      break;
    case 3:
      reply.text = kernel_reply(id).substr(0, 200);
      reply.truncated = true;
      break;
    default:
      reply.text = kernel_reply(id);
  }
  return reply;
}

Result<Candidate> candidate_from_text(std::string_view reply, const CandidateFrame& frame) {
  Result<KernelReply> parsed = parse_kernel_reply(reply);
  if (!parsed) return parsed.error();
  return candidate_from_reply(std::move(*parsed), frame);
}

Evaluation passing_evaluation(const Candidate& candidate, std::int64_t median_ns) {
  Evaluation evaluation;
  evaluation.problem = candidate.problem;
  evaluation.kernel = candidate.name;
  evaluation.sha256 = candidate_sha256(candidate);
  evaluation.target = "sm_90a";
  evaluation.seeds = {7, 8, 9, 10, 18446744073709551615u};
  evaluation.resources = {{"row_statistics", 40, 1024, 0, 0, 0, {}}};
  evaluation.status = Status::passed;
  evaluation.badges = {Badge::strict};
  evaluation.badge_notes = "robust: not tried; deterministic: repeated runs differ";
  evaluation.errors = ErrorStats{};
  evaluation.errors->max_abs = 9.2e-4;
  evaluation.errors->truth_rms = 1.0;
  evaluation.timing = summarise({median_ns});
  evaluation.speed_of_light_ns = 432'994;  // of softmax on an H200
  return evaluation;
}

json::object fake_record(const std::string& id, const Candidate& candidate,
                         std::optional<std::int64_t> median_ns, const std::optional<FakeGpu>& gpu) {
  const std::uint64_t number = number_of("evaluation of " + id);
  const auto drawn_ns = 500000 + static_cast<std::int64_t>(number % 300000);
  Evaluation evaluation = passing_evaluation(candidate, median_ns.value_or(drawn_ns));
  if (!gpu && number % 5 == 0) {
    Evaluation failed;
    failed.problem = evaluation.problem;
    failed.kernel = evaluation.kernel;
    failed.sha256 = evaluation.sha256;
    failed.target = evaluation.target;
    failed.status = Status::compile_failed;
    failed.message = "kernel.cu(3): error: expected a ;\n1 error";
    return recorded_evaluation(failed, "", "NVRTC 13.0");
  }
  ReferenceResult reference;
  reference.id = "cudnn_softmax";
  reference.timing = summarise({gpu.value_or(FakeGpu{}).reference_ns});
  reference.percent_of_reference =
      percent_of_reference(reference.timing.samples_ns, evaluation.timing->samples_ns);
  evaluation.references = {reference};
  return recorded_evaluation(evaluation, gpu.value_or(FakeGpu{}).name, "NVRTC 13.0");
}

std::optional<Interruption> FakeModel::ask(std::span<const ModelRequest> requests,
                                           const Arrived& arrived) {
  for (const std::size_t i : shuffled(requests.size(), seed_, requests.front().id)) {
    const std::string& id = requests[i].id;
    asked.push_back(id);
    prompts[id] = requests[i].prompt.text();
    if (before) before(id);
    std::vector<ModelReply> sequence;
    for (const std::string& text : first_replies[id]) sequence.push_back({text});
    sequence.push_back(replies.contains(id) ? ModelReply{replies[id]} : fake_reply(id));
    Reception reception{Reception::Next::ask_again, ""};
    for (std::size_t k = 0; reception.next == Reception::Next::ask_again; ++k) {
      if (k > 0) asked.push_back(id);
      if (k > 0 && before) before(id);
      reception = arrived(i, sequence[std::min(k, sequence.size() - 1)]);
    }
    if (reception.next == Reception::Next::stop) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Interruption> FakeEvaluator::evaluate(std::span<const EvaluationRequest> requests,
                                                    const Arrived& arrived) {
  for (const std::size_t i : shuffled(requests.size(), seed_, requests.front().id)) {
    const std::string& id = requests[i].id;
    evaluated.push_back(id);
    if (before) before(id);
    std::optional<std::int64_t> median_ns;
    if (times.contains(id)) median_ns = times[id];
    std::optional<FakeGpu> gpu;
    if (gpu_of) gpu = gpu_of(id);
    json::object record = fake_record(id, *requests[i].candidate, median_ns, gpu);
    if (!arrived(i, std::move(record))) return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Interruption> FakeEvaluator::profile(const EvaluationRequest& request,
                                                   ProfileRecord& profile) {
  if (no_profiler) return no_profiler;
  profiled.push_back(request.id);
  profile = {"NVIDIA H200", "made up", "memory at 12% of its peak, as of " + request.id + "\n", ""};
  if (unprofiled.contains(request.id)) profile.unavailable = "it hung";
  return std::nullopt;
}

SearchEnd run_on_file(const fs::path& path, const Header& header, Model& model,
                      Evaluator& evaluator, SearchObserver observer, std::function<bool()> deadline,
                      bool stop_asked, std::optional<Continuation> continuation, bool resumed) {
  Result<Trajectory> trajectory = Trajectory::open(path, Trajectory::Access::append);
  if (!trajectory)
    return {Interruption{Interruption::Kind::bad_file, trajectory.error().message}, ""};
  Result<PendingJournal> journal = PendingJournal::open(path);
  if (!journal) return {Interruption{Interruption::Kind::bad_file, journal.error().message}, ""};
  std::function<Result<Continuation>(const Settings&)> go_on;
  if (continuation) go_on = [&](const Settings&) { return *continuation; };
  return run_search(header, {*trajectory,
                             &*journal,
                             model,
                             evaluator,
                             std::move(deadline),
                             std::move(observer),
                             std::move(go_on),
                             stop_asked,
                             {},
                             false,
                             resumed});
}

std::string recorded_search(const fs::path& path, const Header& header, unsigned seed) {
  FakeModel model(seed);
  FakeEvaluator evaluator(seed);
  const SearchEnd end = run_on_file(path, header, model, evaluator);
  if (end.interruption) throw std::runtime_error(end.interruption->message);
  return read_text(path);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
    lines.push_back(text.substr(begin, end - begin + 1));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

std::string with_fresh_chain(const std::string& text) {
  std::string result;
  std::string chain = chain_start();
  for (const std::string& line : lines_of(text)) {
    json::object event = json::parse(line).as_object();
    event.erase("chain");
    const std::string canonical = canonical_json(event);
    chain = next_chain(chain, canonical);
    result += event_line(canonical, chain);
  }
  return result;
}

}  // namespace rekernel::testing
