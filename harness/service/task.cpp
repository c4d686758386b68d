#include "harness/service/task.h"

#include <boost/json.hpp>

#include "harness/base/base64.h"
#include "harness/candidate/code.h"
#include "harness/service/own_problem.h"
#include "replay/search/reply.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

constexpr std::size_t max_text_bytes = 4u << 20;
constexpr int max_samples = 10'000;
constexpr int max_text_tokens = 100'000;

std::optional<Tier> tier_from(std::string_view text) {
  for (const Tier tier : {Tier::compile, Tier::correct, Tier::timed}) {
    if (text == to_string(tier)) return tier;
  }
  return std::nullopt;
}

void read_problem(JsonReader problem, Task& task) {
  if (!problem.is_object()) {
    task.problem = problem.identifier();
    return;
  }
  task.definition = problem.raw().as_object();
  Result<std::string> id = own_problem(task.definition);
  if (!id) return problem.fail(id.error().message);
  task.problem = std::move(*id);
}

void read_code(JsonReader& reader, Task& task) {
  if (auto source = reader.optional("source")) task.source = source->string(max_text_bytes);
  if (auto ptx = reader.optional("ptx")) task.ptx = ptx->string(max_text_bytes);
  if (auto reply = reader.optional("reply")) task.reply = reply->string(max_text_bytes);
  if (auto cubin = reader.optional("cubin")) {
    const std::optional<std::string> bytes = from_base64(cubin->string(2 * max_text_bytes));
    if (!bytes) cubin->expect("base64");
    task.cubin = bytes.value_or("");
  }
  const int given =
      !task.source.empty() + !task.ptx.empty() + !task.cubin.empty() + !task.reply.empty();
  if (given != 1) reader.fail("expected exactly one of source, ptx, cubin and reply");
  if (auto plan = reader.optional("plan")) {
    if (!plan->is_object()) return plan->expect("an object, as kernel.json holds it");
    if (!task.reply.empty()) return plan->fail("a reply has its plan in itself");
    task.plan = plan->raw().as_object();
  } else if (task.reply.empty()) {
    reader.fail("expected a plan (kernel.json) beside the code");
  }
}

}  // namespace

const char* to_string(Tier tier) {
  switch (tier) {
    case Tier::compile:
      return "compile";
    case Tier::correct:
      return "correct";
    case Tier::timed:
      return "timed";
  }
  return "";
}

const char* to_string(Priority priority) {
  switch (priority) {
    case Priority::high:
      return "high";
    case Priority::normal:
      return "normal";
    case Priority::low:
      return "low";
  }
  return "";
}

const char* to_string(Stage stage) {
  switch (stage) {
    case Stage::queued:
      return "queued";
    case Stage::compiling:
      return "compiling";
    case Stage::ready:
      return "ready";
    case Stage::judging:
      return "judging";
  }
  return "";
}

Task read_task(JsonReader& reader) {
  Task task;
  read_problem(reader.required("problem"), task);
  if (auto name = reader.optional("name")) task.name = name->identifier();
  read_code(reader, task);
  if (auto tier = reader.optional("tier")) {
    if (const auto known = tier_from(tier->string(64))) {
      task.tier = *known;
    } else {
      tier->expect("compile, correct or timed");
    }
  }
  if (auto target = reader.optional("target")) {
    task.target = target->string(64);
    if (!capability_of(task.target)) target->expect("a target like sm_90a");
    if (task.tier != Tier::compile) target->fail("only tier compile has a target of its own");
  }
  if (auto references = reader.optional("references")) {
    const std::string which = references->string(64);
    if (which != "headline" && which != "all") references->expect("headline or all");
    task.all_references = which == "all";
  }
  if (auto samples = reader.optional("samples")) {
    task.samples = static_cast<int>(samples->integer(10, max_samples));
  }
  if (auto sizes = reader.optional("other_sizes")) {
    task.other_sizes = sizes->boolean();
    if (task.tier != Tier::timed) sizes->fail("only tier timed judges at other sizes");
  }
  if (auto tokens = reader.optional("text_tokens")) {
    task.text_tokens = static_cast<int>(tokens->integer(0, max_text_tokens));
  }
  if (auto profile = reader.optional("profile")) {
    task.profile = profile->boolean();
    if (task.profile && task.tier != Tier::timed) profile->fail("only tier timed has a profile");
  }
  if (auto record = reader.optional("record")) task.record = record->boolean();
  return task;
}

std::string task_text(const Task& task) {
  json::object text{{"name", task.name}, {"tier", to_string(task.tier)}};
  if (task.definition.empty()) {
    text["problem"] = task.problem;
  } else {
    text["problem"] = task.definition;
  }
  if (!task.source.empty()) text["source"] = task.source;
  if (!task.ptx.empty()) text["ptx"] = task.ptx;
  if (!task.cubin.empty()) text["cubin"] = base64(task.cubin);
  if (!task.reply.empty()) text["reply"] = task.reply;
  if (task.reply.empty()) text["plan"] = task.plan;
  if (!task.target.empty()) text["target"] = task.target;
  text["references"] = task.all_references ? "all" : "headline";
  text["samples"] = task.samples;
  if (!task.other_sizes) text["other_sizes"] = false;
  text["text_tokens"] = task.text_tokens;
  if (task.profile) text["profile"] = true;
  text["record"] = task.record;
  return json::serialize(text);
}

Result<Task> task_from_text(const std::string& text) {
  const Result<json::value> value = parse_json(text, "stored request");
  if (!value) return value.error();
  JsonReader reader("stored request", *value);
  Task task = read_task(reader);
  reader.no_other_keys();
  if (const auto error = reader.error()) return *error;
  return task;
}

Result<Candidate> candidate_of(const Task& task) {
  if (!task.reply.empty()) {
    Result<KernelReply> reply = parse_kernel_reply(task.reply);
    if (!reply) return reply.error();
    CandidateFrame frame;
    frame.problem = task.problem;
    frame.trajectory = "none";
    frame.id = task.name;
    frame.idea = "submitted as a reply";
    frame.arch = "sm_80";
    return candidate_from_reply(std::move(*reply), frame);
  }
  json::object plan = task.plan;
  plan["schema"] = 1;
  plan["problem"] = task.problem;
  plan["name"] = task.name;
  if (!plan.contains("idea")) plan["idea"] = "submitted to the service";
  if (!plan.contains("arch")) plan["arch"] = "sm_80";
  if (!plan.contains("origin")) plan["origin"] = {{"note", "submitted to the service"}};
  Code code;
  code.language = !task.source.empty() ? Language::cuda
                  : !task.ptx.empty()  ? Language::ptx
                                       : Language::cubin;
  code.text = !task.source.empty() ? task.source : !task.ptx.empty() ? task.ptx : task.cubin;
  return parse_candidate(json::serialize(plan), {std::move(code)}, "plan");
}

}  // namespace rekernel::service
