#include "replay/report/walk.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/code.h"
#include "harness/compile/compiler_message.h"
#include "replay/report/difference.h"
#include "replay/report/replay_report.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;

/// Models wrote most of what is shown: nothing of it may speak to a terminal.
std::string safe(std::string_view bytes) { return visible_lines(bytes, bytes.size()); }

std::string first_line(std::string_view text) {
  return shortened(safe(text.substr(0, text.find('\n'))), 400);
}

/// The page under construction, as text for a terminal or as Markdown.
class Page {
 public:
  explicit Page(bool markdown) : markdown_(markdown) {}

  void title(const std::string& text) { heading("# ", '=', text); }
  void round(const std::string& text) { heading("## ", '=', text); }
  void candidate(const std::string& text) { heading("### ", '-', text); }

  void paragraph(const std::string& text) {
    text_ += in_lines(without_last_newline(text)) + "\n\n";
  }

  /// Words of others, set off from ours.
  void quote(const std::string& text) {
    const std::string mark = markdown_ ? "> " : "  ";
    text_ += mark;
    for (const char one : in_lines(without_last_newline(text), mark.size())) {
      text_ += one;
      if (one == '\n') text_ += mark;
    }
    text_ += "\n\n";
  }

  void fact(const std::string& name, const std::string& value) {
    text_ += in_lines((markdown_ ? "- " : "") + name + ": " + value, 0, 2) + "\n";
  }
  void end_of_facts() { text_ += "\n"; }

  void code(const std::string& language, const std::string& text) {
    const std::string fence = markdown_ ? fence_for(text) : "";
    if (markdown_) text_ += fence + language + "\n";
    text_ += text;
    if (!text.ends_with('\n')) text_ += "\n";
    text_ += fence + (markdown_ ? "\n\n" : "\n");
  }

  std::string take() { return std::move(text_); }

 private:
  void heading(const char* mark, char line, const std::string& text) {
    if (markdown_) {
      text_ += mark + markdown_text(text) + "\n\n";
    } else {
      text_ += text + "\n" + std::string(columns_of(text), line) + "\n\n";
    }
  }

  /// For a terminal, in lines that leave room for `margin` columns; lines after the first begin
  /// with `indent` blanks. Markdown's are broken where it is shown.
  std::string in_lines(const std::string& text, std::size_t margin = 0,
                       std::size_t indent = 0) const {
    return markdown_ ? markdown_lines(text) : wrapped(text, page_columns - margin, indent);
  }

  static std::string without_last_newline(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  /// Longer than any row of backticks in the text, which could close it.
  static std::string fence_for(const std::string& text) {
    std::size_t longest = 2;
    std::size_t row = 0;
    for (const char one : text) {
      row = one == '`' ? row + 1 : 0;
      longest = std::max(longest, row);
    }
    return std::string(longest + 1, '`');
  }

  bool markdown_;
  std::string text_;
};

/// "1.234 ms, 72.5% of cudnn_fp32 (0.8948 ms)"
std::string time_text(const Outcome& outcome) {
  std::string text = milliseconds(*outcome.median_ns) + " ms";
  if (outcome.permille_of_reference() > 0) {
    text += ", " + percent_of_permille(outcome.permille_of_reference()) + " of " +
            outcome.reference + " (" + milliseconds(outcome.reference_ns) + " ms)";
  }
  return text;
}

std::string verdict_text(const Outcome& outcome) {
  std::string text = to_string(outcome.status);
  if (!outcome.message.empty()) text += ": " + headline(outcome.message);
  if (outcome.passed() && !outcome.badges.empty()) text += ": " + joined(outcome.badges.names());
  return text;
}

std::string published_text(const Header& header, const PublishedRound& there) {
  return milliseconds(there.time_ns) + " ms, " + there.percent + "% (these ms give " +
         percent_of_permille(published_permille(header, there)) + "): " + first_line(there.idea);
}

std::string resources_text(const Outcome& outcome) {
  return std::to_string(outcome.registers) + " registers, " +
         (outcome.spill_bytes > 0 ? std::to_string(outcome.spill_bytes) + " bytes of spills"
                                  : "no spills") +
         (outcome.stack_bytes > 0
              ? ", a stack of " + std::to_string(outcome.stack_bytes) + " bytes a thread"
              : "");
}

/// The first line of the compiler's that warns; empty if none does.
std::string first_warning(const Outcome& outcome) {
  const std::size_t at = outcome.compile_log.find("warning");
  if (at == std::string::npos) return "";
  const std::size_t feed = outcome.compile_log.rfind('\n', at);
  const std::string_view log = outcome.compile_log;
  return first_line(log.substr(feed == std::string::npos ? 0 : feed + 1));
}

const ReplayedCandidate* find_candidate(const ReplayedSearch& search, const std::string& id) {
  const auto found = std::find_if(search.candidates.begin(), search.candidates.end(),
                                  [&](const auto& one) { return one.id == id; });
  return found == search.candidates.end() ? nullptr : &*found;
}

/// The first that is itself of the search.
const ReplayedCandidate* parent_of(const ReplayedSearch& search,
                                   const ReplayedCandidate& candidate) {
  for (const std::string& id : candidate.parents) {
    const ReplayedCandidate* parent = find_candidate(search, id);
    if (parent && parent->candidate) return parent;
  }
  return nullptr;
}

class Walk {
 public:
  Walk(const ReplayedSearch& search, const WalkOptions& options, const Remeasurement* today)
      : search_(search), options_(options), today_(today), page_(options.markdown) {}

  Result<std::string> run() {
    if (options_.round && !has_round(*options_.round)) return no_such_round();
    page_.title(search_.header.name);
    page_.paragraph(replay_caption(search_));
    if (search_.header.published) page_.paragraph(published_run_caption(search_));
    if (!options_.candidates.empty()) return chosen_candidates();
    std::size_t next = 0;
    for (const int number : round_numbers()) {
      const std::size_t first = next;
      while (next < search_.candidates.size() && search_.candidates[next].round <= number) ++next;
      if (options_.round && *options_.round != number) continue;
      if (Result<Ok> shown = show_round(number, first, next); !shown) return shown.error();
    }
    return page_.take();
  }

 private:
  /// Those whose selection was made, and the one before that, if the search is in it.
  std::vector<int> round_numbers() const {
    std::vector<int> numbers;
    for (const ReplayedRound& round : search_.rounds) numbers.push_back(round.round);
    const bool more = !search_.candidates.empty() &&
                      (numbers.empty() || search_.candidates.back().round > numbers.back());
    if (more) numbers.push_back(search_.candidates.back().round);
    return numbers;
  }

  bool has_round(int number) const {
    const std::vector<int> numbers = round_numbers();
    return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
  }

  Error no_such_round() const {
    std::string there = "it has none";
    if (const std::vector<int> numbers = round_numbers(); !numbers.empty()) {
      there = "it has " + std::to_string(numbers.front()) + " to " + std::to_string(numbers.back());
    }
    return {search_.header.name + ": no round " + std::to_string(*options_.round) + "; " + there};
  }

  Result<Ok> show_round(int number, std::size_t first, std::size_t end) {
    page_.round(number < search_.header.settings.first_round ? "Seeds"
                                                             : "Round " + std::to_string(number));
    if (first == end) page_.paragraph("No candidate.");
    for (std::size_t i = first; i < end; ++i) {
      if (Result<Ok> shown = show_candidate(i); !shown) return shown;
    }
    const auto selected = std::find_if(search_.rounds.begin(), search_.rounds.end(),
                                       [&](const auto& one) { return one.round == number; });
    if (selected == search_.rounds.end()) {
      page_.paragraph("The round is not over.");
      return Ok{};
    }
    const std::vector<std::string>& survivors = selected->selection.survivors;
    page_.paragraph("Survivors: " + (survivors.empty() ? "none" : joined(survivors)) + ".");
    return Ok{};
  }

  Result<Ok> show_candidate(std::size_t index) {
    show_words(search_.candidates[index]);
    show_facts(index);
    return show_code(search_.candidates[index]);
  }

  Result<std::string> chosen_candidates() {
    for (const std::string& id : options_.candidates) {
      const ReplayedCandidate* const candidate = find_candidate(search_, id);
      if (!candidate) return Error{search_.header.name + ": no candidate " + first_line(id)};
      const auto index = static_cast<std::size_t>(candidate - search_.candidates.data());
      if (Result<Ok> shown = show_candidate(index); !shown) return shown.error();
    }
    return page_.take();
  }

  void show_words(const ReplayedCandidate& candidate) {
    page_.candidate(candidate.id + ": " + first_line(candidate.idea.title));
    if (!candidate.idea.text.empty()) page_.quote(safe(candidate.idea.text));
  }

  void show_facts(std::size_t index) {
    const ReplayedCandidate& candidate = search_.candidates[index];
    const Outcome& outcome = candidate.outcome;
    if (!candidate.model.empty()) page_.fact("model", first_line(candidate.model));
    page_.fact("verdict", verdict_text(outcome));
    if (outcome.passed()) {
      page_.fact("time", time_text(outcome) + ", on " + first_line(candidate.device));
    }
    if (today_ && today_->today[index]) show_today(index);
    if (const PublishedRound* there = published_round(search_.header, candidate.round)) {
      page_.fact("published", published_text(search_.header, *there));
    }
    if (outcome.registers >= 0) page_.fact("resources", resources_text(outcome));
    if (const std::string warning = first_warning(outcome); !warning.empty()) {
      page_.fact("the compiler warned", warning);
    }
    page_.fact("started from", started_from(candidate));
    page_.end_of_facts();
  }

  void show_today(std::size_t index) {
    const Outcome& now = *today_->today[index];
    page_.fact("measured again", now.passed()
                                     ? time_text(now) + ", on " + first_line(today_->devices[index])
                                     : verdict_text(now));
  }

  static bool is_seed(const ReplayedCandidate& candidate) {
    return candidate.id.starts_with("seed.");
  }

  std::string started_from(const ReplayedCandidate& candidate) const {
    if (is_seed(candidate)) return "nothing: it was given to the search";
    std::vector<std::string> names;
    for (const std::string& id : candidate.parents) {
      const LibraryKernel* kernel =
          find_candidate(search_, id) ? nullptr : search_.header.find_library_kernel(id);
      names.push_back(kernel ? "the library's kernel " + id + " (" + first_line(kernel->note) + ")"
                             : id);
    }
    return names.empty() ? "no kernel, only the problem" : joined(names);
  }

  Result<Ok> show_code(const ReplayedCandidate& candidate) {
    if (!candidate.candidate) {
      page_.paragraph("The reply held no candidate.");
      return Ok{};
    }
    if (!options_.whole_code) {
      const Result<std::optional<ChangeOfParent>> change = change_of_parent(search_, candidate);
      if (!change) return change.error();
      if (*change) {
        show_difference(code_file(Language::cuda), **change, (*change)->source);
        show_difference("kernel.json", **change, (*change)->plan);
        return Ok{};
      }
    }
    page_.paragraph(candidate.id + "/" + code_file(Language::cuda) + ", whole:");
    page_.code("cuda", safe(candidate.candidate->program.source));
    page_.paragraph(candidate.id + "/kernel.json, whole:");
    page_.code("json", safe(candidate_json(*candidate.candidate)));
    return Ok{};
  }

  void show_difference(const std::string& file, const ChangeOfParent& change,
                       const std::string& difference) {
    if (difference.empty()) {
      page_.paragraph(file + ": as in " + change.parent + ".");
    } else {
      page_.paragraph(file + ", the difference to " + change.parent + ":");
      page_.code("diff", safe(difference));
    }
  }

  const ReplayedSearch& search_;
  const WalkOptions& options_;
  const Remeasurement* today_;
  Page page_;
};

}  // namespace

std::string plan_that_runs(const Candidate& candidate) {
  const json::value whole = json::parse(candidate_json(candidate));
  json::object plan;
  for (const auto& [key, value] : whole.get_object()) {
    if (key != "name" && key != "idea" && key != "origin") plan[key] = value;
  }
  return pretty_json(plan);
}

Result<std::optional<ChangeOfParent>> change_of_parent(const ReplayedSearch& search,
                                                       const ReplayedCandidate& candidate) {
  const ReplayedCandidate* parent = candidate.candidate ? parent_of(search, candidate) : nullptr;
  if (!parent) return std::optional<ChangeOfParent>();
  const auto difference = [&](const std::string& file, const std::string& before,
                              const std::string& after) {
    return unified_difference({parent->id + "/" + file, before},
                              {candidate.id + "/" + file, after});
  };
  Result<std::string> source =
      difference(code_file(Language::cuda), parent->candidate->program.source,
                 candidate.candidate->program.source);
  if (!source) return source.error();
  Result<std::string> plan = difference("kernel.json", plan_that_runs(*parent->candidate),
                                        plan_that_runs(*candidate.candidate));
  if (!plan) return plan.error();
  return std::optional(ChangeOfParent{parent->id, std::move(*source), std::move(*plan)});
}

Result<std::string> walk(const ReplayedSearch& search, const WalkOptions& options,
                         const Remeasurement* today) {
  return Walk(search, options, today).run();
}

}  // namespace rekernel
