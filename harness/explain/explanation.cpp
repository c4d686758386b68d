#include "harness/explain/explanation.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/known_problem.h"
#include "harness/compile/compiler_message.h"
#include "harness/terminal/labelled.h"

namespace rekernel {

namespace {

const Problem* problem_of(const Explanation& explanation) {
  if (!explanation.subject.candidate) return nullptr;
  const Result<const Problem*> known = known_problem(explanation.subject.candidate->problem);
  return known ? *known : nullptr;
}

std::string compile_part(const Explanation& explanation, const TableFormat& format) {
  if (!explanation.not_compiled.empty()) {
    return "compiled: no, " + one_line(explanation.not_compiled, 1000) + "\n";
  }
  std::string text;
  for (const CompilerWords& failure : compile_failures(explanation.checks)) {
    text += to_string(failure.status) + (" for " + joined(failure.targets)) + ": " +
            told_message(failure.text);
  }
  for (const CompilerWords& warnings : compile_warnings(explanation.checks)) {
    text += "warnings for " + joined(warnings.targets) + ":\n" + quoted_lines(warnings.text);
  }
  if (!explanation.uses.empty()) text += format.shown(launch_table(explanation.uses));
  for (const std::string& line : chip_lines(explanation.uses)) {
    text += wrapped(line, page_columns, 2) + "\n";
  }
  for (const std::string& line : launch_refusals(explanation.uses)) {
    text += wrapped("cannot be launched: " + line, page_columns, 2) + "\n";
  }
  for (const std::string& line : launch_notes(explanation.uses)) {
    text += wrapped("note: " + line, page_columns, 2) + "\n";
  }
  return text + skipped_text(explanation.checks);
}

std::string candidate_part(const ExplainedCandidate& subject) {
  if (!subject.candidate) return "";
  const Candidate& candidate = *subject.candidate;
  std::string text = labelled("problem", candidate.problem);
  text += labelled("arch", to_string(candidate.arch));
  return text + labelled("idea", visible_lines(candidate.idea, 4000));
}

std::string advice_part(const Explanation& explanation) {
  std::string text;
  for (const Advice* advice : advice_in(explanation)) {
    text += "what to change (" + std::string(to_string(advice->status)) + ")\n";
    text += labelled("meaning", std::string(advice->meaning));
    text += labelled("cause", std::string(advice->cause));
    text += labelled("try", std::string(advice->change));
  }
  return text;
}

}  // namespace

bool Explanation::refused() const {
  const auto failed = [](const Verdict& one) { return one.status != Status::passed; };
  return !subject.refusal.empty() || !all_compile(checks) || !launch_refusals(uses).empty() ||
         std::any_of(subject.verdicts.begin(), subject.verdicts.end(), failed);
}

Explanation explain(ExplainedCandidate subject, const Result<Compiler>& compiler) {
  Explanation explanation;
  explanation.subject = std::move(subject);
  const std::optional<Candidate>& candidate = explanation.subject.candidate;
  if (!candidate) return explanation;
  if (!compiler) {
    explanation.not_compiled = compiler.error().message;
    return explanation;
  }
  explanation.checks = compile_all(*compiler, {*candidate});
  explanation.uses = launch_uses(*candidate, explanation.checks);
  return explanation;
}

std::vector<const Advice*> advice_in(const Explanation& explanation) {
  std::vector<const Advice*> found;
  const auto add = [&](Status status, const std::string& check, const std::string& message) {
    const Advice* advice = &advice_for(status, check, message);
    if (std::find(found.begin(), found.end(), advice) == found.end()) found.push_back(advice);
  };
  const ExplainedCandidate& subject = explanation.subject;
  if (!subject.refusal.empty()) add(Status::invalid_plan, "", subject.refusal);
  for (const CompilerWords& failure : compile_failures(explanation.checks)) {
    add(failure.status, "", failure.text);
  }
  for (const std::string& line : launch_refusals(explanation.uses)) {
    add(Status::invalid_plan, "", line);
  }
  for (const Verdict& verdict : subject.verdicts) {
    if (verdict.status != Status::passed) add(verdict.status, verdict.check, verdict.message);
  }
  return found;
}

std::string explanation_text(const Explanation& explanation, const TableFormat& format) {
  const ExplainedCandidate& subject = explanation.subject;
  std::string text = one_line(subject.name + ": " + subject.place, 1000) + "\n";
  text += candidate_part(subject);
  const bool recorded =
      std::any_of(subject.verdicts.begin(), subject.verdicts.end(),
                  [&](const Verdict& one) { return one.message == subject.refusal; });
  if (!subject.refusal.empty() && !recorded) {
    text += "invalid_plan: " + told_message(subject.refusal);
  }
  text += compile_part(explanation, format);
  for (const Verdict& verdict : subject.verdicts) {
    text += verdict_text(verdict, problem_of(explanation));
    // What compiling says today is told in full already.
    if (explanation.checks.empty() && verdict.message.find('\n') != std::string::npos) {
      text += quoted_lines(visible_lines(verdict.message, 64u << 10));
    }
  }
  if (subject.verdicts.empty() && subject.candidate) {
    text += "verdict: none is recorded; `--evaluate` makes one on this machine's GPU\n";
  }
  return text + advice_part(explanation);
}

boost::json::object to_json(const Explanation& explanation) {
  const ExplainedCandidate& subject = explanation.subject;
  boost::json::array verdicts, advice;
  for (const Verdict& verdict : subject.verdicts) {
    verdicts.push_back(to_json(verdict, problem_of(explanation)));
  }
  for (const Advice* one : advice_in(explanation)) {
    advice.push_back({{"status", to_string(one->status)},
                      {"meaning", one->meaning},
                      {"cause", one->cause},
                      {"change", one->change}});
  }
  boost::json::object json{
      {"schema", 1},
      {"name", subject.name},
      {"place", subject.place},
      {"refused", explanation.refused()},
      {"plan_error", subject.refusal},
      {"not_compiled", explanation.not_compiled},
      {"compiled", compile_json(explanation.checks)},
      {"launches", to_json(explanation.uses)},
      {"launch_errors", boost::json::value_from(launch_refusals(explanation.uses))},
      {"notes", boost::json::value_from(launch_notes(explanation.uses))},
      {"verdicts", std::move(verdicts)},
      {"advice", std::move(advice)}};
  if (subject.candidate) {
    json["problem"] = subject.candidate->problem;
    json["arch"] = to_string(subject.candidate->arch);
    json["idea"] = subject.candidate->idea;
    json["sha256"] = candidate_sha256(*subject.candidate);
  }
  return json;
}

}  // namespace rekernel
