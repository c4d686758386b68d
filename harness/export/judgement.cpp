#include "harness/export/judgement.h"

#include <algorithm>

#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/export/templates.h"

namespace rekernel {

namespace {

std::string in_words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string one(const std::string& text) { return one_line(text, text.size()); }

const JudgedOn& best(const RecordedJudgement& judgement) {
  static const JudgedOn nothing = nothing_recorded();
  return judgement.devices.empty() ? nothing : judgement.devices.front();
}

/// What is known of the kernel and, after it, of a device.
std::vector<JudgementFact> all_facts(const std::vector<JudgementFact>& kernel,
                                     const RecordedJudgement& judgement, const JudgedOn& judged) {
  std::vector<JudgementFact> facts = kernel;
  facts.emplace_back("tolerance", judgement.tolerance);
  const std::vector<JudgementFact> of_device = facts_of(judged);
  facts.insert(facts.end(), of_device.begin(), of_device.end());
  return facts;
}

std::string verdict_with_badges(const JudgedOn& judged) {
  return judged.verdict + " (" + judged.badges + ")";
}

}  // namespace

std::vector<JudgementFact> facts_of(const JudgedOn& judged) {
  return {{"verdict", judged.verdict},
          {"badges", judged.badges},
          {"errors", judged.errors},
          {"time", judged.time},
          {"percent_of_reference", judged.percent_of_reference},
          {"device", judged.device},
          {"driver", judged.driver},
          {"judge", judged.judge},
          {"measured", judged.measured},
          {"measured_by", judged.measured_by}};
}

JudgedOn nothing_recorded() {
  const std::string no = not_judged;
  return {no, no, no, no, no, no, no, no, no, no};
}

std::string judgement_in_short(const RecordedJudgement& judgement) {
  if (judgement.devices.empty()) return not_judged;
  return verdict_with_badges(best(judgement)) + " on " + best(judgement).device;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : one(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string quoted_lines_of(const std::string& text, std::size_t indent) {
  constexpr std::size_t least = 30;
  const std::size_t columns = std::max(least, page_columns - std::min(page_columns, indent + 4));
  const std::string lines = wrapped(one(text), columns);
  std::string result;
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    // The blank at which the line was broken.
    const std::string line = lines.substr(begin, end - begin) + (end < lines.size() ? " " : "");
    result += (begin > 0 ? "\n" + std::string(indent, ' ') : "") + quoted(line);
    begin = end + 1;
  }
  return result;
}

std::string judgement_comment(const RecordedJudgement& judgement) {
  std::string text;
  if (judgement.devices.empty()) {
    text =
        comment("Not judged: nothing is recorded of exactly this source and plan.", "// ") + "\n";
  } else {
    text = "// What the judge said of exactly this source and plan:\n";
    for (const auto& [name, said] : facts_of(best(judgement))) {
      text += comment("- " + in_words(name) + ": " + said, "// ") + "\n";
    }
  }
  text += comment("- tolerance: " + judgement.tolerance, "// ");
  for (std::size_t i = 1; i < judgement.devices.size(); ++i) {
    const JudgedOn& other = judgement.devices[i];
    text += "\n" + comment("- also recorded: " + other.device + ", " + other.measured + ": " +
                               verdict_with_badges(other) + ", " + other.time + ", " +
                               other.percent_of_reference + ", judge " + other.judge,
                           "// ");
  }
  return text;
}

std::string judgement_constants(const std::vector<JudgementFact>& kernel,
                                const RecordedJudgement& judgement) {
  std::string text;
  for (const auto& [name, said] : all_facts(kernel, judgement, best(judgement))) {
    const std::string start = "inline constexpr char " + name + "[] =";
    const std::string line = start + " " + quoted(said) + ";";
    const bool fits = columns_of(line) <= page_columns;
    text += (fits ? line : start + "\n    " + quoted_lines_of(said, 4) + ";") + "\n";
  }
  return text;
}

std::string judgement_list(const std::vector<JudgementFact>& kernel,
                           const RecordedJudgement& judgement) {
  constexpr std::size_t indent = 8;
  std::vector<JudgedOn> devices = judgement.devices;
  if (devices.empty()) devices.push_back(nothing_recorded());
  std::string text = "[\n";
  for (const JudgedOn& judged : devices) {
    text += "    {\n";
    for (const auto& [name, said] : all_facts(kernel, judgement, judged)) {
      const std::string key = "\"" + name + "\": ";
      text += std::string(indent, ' ') + key + quoted_lines_of(said, indent + key.size()) + ",\n";
    }
    text += "    },\n";
  }
  return text + "]";
}

std::string judgement_keys(const std::vector<JudgementFact>& kernel,
                           const RecordedJudgement& judgement) {
  std::string text;
  for (const auto& [name, said] : all_facts(kernel, judgement, best(judgement))) {
    text += name + " = " + quoted(said) + "\n";
  }
  return text;
}

std::string judgement_table(const RecordedJudgement& judgement) {
  if (judgement.devices.empty()) {
    return "**Not judged**: nothing is recorded of exactly this source and plan. Tolerance: " +
           markdown_text(judgement.tolerance) + ".\n";
  }
  std::string heading = "|  |";
  std::string line = "|---|";
  std::vector<std::vector<JudgementFact>> columns;
  for (const JudgedOn& judged : judgement.devices) {
    heading += " " + markdown_text(judged.device) + " |";
    line += "---|";
    columns.push_back(facts_of(judged));
  }
  std::string text =
      "What the judge said of exactly this source and plan, as it was recorded:\n\n" + heading +
      "\n" + line;
  for (std::size_t fact = 0; fact < columns.front().size(); ++fact) {
    if (columns.front()[fact].first == "device") continue;
    text += "\n| " + in_words(columns.front()[fact].first) + " |";
    for (const auto& column : columns) text += " " + markdown_text(column[fact].second) + " |";
  }
  return text + "\n\nTolerance: " + markdown_text(judgement.tolerance) + ".\n";
}

}  // namespace rekernel
