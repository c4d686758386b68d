#include "replay/search/prompt.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "harness/base/placeholders.h"
#include "replay/trajectory/templates.h"

namespace rekernel {
namespace {

std::string kernel_section(const ShownKernel& kernel, const char* what) {
  std::string text = std::string("### ") + what + " " + kernel.id + "\n" + kernel.caption + "\n";
  text += kernel.profile;
  if (!kernel.plan.empty()) text += "```json\n" + kernel.plan + "```\n";
  text += "```cuda\n" + kernel.source;
  if (!kernel.source.ends_with('\n')) text += "\n";
  return text + "```\n\n";
}

std::string history_line(const HistoryEntry& entry) {
  return "- " + entry.id + " (" + entry.idea_title + "): " + entry.outcome + "\n";
}

std::string log_lines(const HistoryEntry& entry) {
  if (entry.log.empty()) return "";
  std::string text = "  compiler: ";
  for (const char c : entry.log) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
  return text + "\n";
}

std::size_t bytes_of(const std::vector<std::string>& texts) {
  std::size_t sum = 0;
  for (const std::string& text : texts) sum += text.size();
  return sum;
}

/// The sums of the texts' sizes from the last backwards: of the last i, sums[i].
std::vector<std::size_t> sums_from_the_end(const std::vector<std::string>& texts) {
  std::vector<std::size_t> sums{0};
  for (auto text = texts.rbegin(); text != texts.rend(); ++text) {
    sums.push_back(sums.back() + text->size());
  }
  return sums;
}

/// How many of a kind must go, the sum of the first i of which is sums[i], until `size` is at most
/// `limit`; takes them from `size`.
std::size_t drop(const std::vector<std::size_t>& sums, std::size_t limit, std::size_t& size) {
  if (size <= limit) return 0;
  const auto enough = std::lower_bound(sums.begin(), sums.end(), size - limit);
  const auto count =
      static_cast<std::size_t>((enough == sums.end() ? enough - 1 : enough) - sums.begin());
  size -= sums[count];
  return count;
}

const PromptHistory& no_history() {
  static const PromptHistory none(0);
  return none;
}

}  // namespace

std::size_t most_prompt_bytes(const Settings& settings) {
  return static_cast<std::size_t>(settings.prompt_tokens) * 4;
}

void PromptHistory::Lines::add(std::size_t candidate, std::string text, std::size_t most_bytes) {
  const std::size_t bytes_before = bytes;
  bytes += text.size();
  kept.push_back({candidate, bytes_before, std::move(text)});
  while (!kept.empty() && kept_bytes() > most_bytes) {
    kept.pop_front();
    ++gone;
  }
}

std::size_t PromptHistory::Lines::kept_bytes() const { return bytes_without(gone); }

std::size_t PromptHistory::Lines::bytes_without(std::size_t left_out) const {
  const std::size_t first = left_out - gone;
  return first == kept.size() ? 0 : bytes - kept[first].bytes_before;
}

std::size_t PromptHistory::Lines::drop(std::size_t limit, std::size_t& size) const {
  if (size <= limit) return 0;  // then none is gone
  const std::size_t excess = size - limit;
  const auto stays =
      std::lower_bound(kept.begin(), kept.end(), excess,
                       [](const Line& line, std::size_t most) { return line.bytes_before < most; });
  const std::size_t left_out = gone + static_cast<std::size_t>(stays - kept.begin());
  size -= bytes - bytes_without(left_out);
  return left_out;
}

void PromptHistory::add(const HistoryEntry& entry) {
  (entry.passed ? passed_ : failed_).add(added_, history_line(entry), most_bytes_);
  if (!entry.log.empty()) logs_.add(added_, log_lines(entry), most_bytes_);
  ++added_;
}

std::size_t PromptHistory::kept_bytes() const {
  return logs_.kept_bytes() + failed_.kept_bytes() + passed_.kept_bytes();
}

std::vector<std::string> ids_of(const PromptParts& parts) {
  std::vector<std::string> ids;
  for (const auto* kernels : {&parts.survivors, &parts.bank, &parts.library}) {
    for (const ShownKernel& kernel : *kernels) ids.push_back(kernel.id);
  }
  return ids;
}

PromptWriter::PromptWriter(const Header& header, const PromptParts& parts)
    : header_(header), history_(parts.history ? *parts.history : no_history()) {
  for (const auto& kernel : parts.survivors) survivors_.push_back(kernel_section(kernel, "Kernel"));
  for (const auto& kernel : parts.bank) bank_.push_back(kernel_section(kernel, "Kernel"));
  for (const auto& kernel : parts.library) {
    library_.push_back(kernel_section(kernel, "Given kernel"));
  }
  kernel_bytes_ = filled_template(header.templates.kernel, fixed_values(header.texts)).size();
}

PromptWriter::LeftOut PromptWriter::left_out(std::size_t other_bytes) const {
  const std::size_t most = most_prompt_bytes(header_.settings);
  const std::size_t fixed = other_bytes + prompt_reserve_bytes;
  const std::size_t limit = most > fixed ? most - fixed : 0;
  std::size_t size = bytes_of(survivors_) + bytes_of(bank_) + bytes_of(library_) +
                     history_.logs_.bytes + history_.failed_.bytes + history_.passed_.bytes;
  LeftOut out;
  out.logs = history_.logs_.drop(limit, size);
  out.failed = history_.failed_.drop(limit, size);
  out.bank = drop(sums_from_the_end(bank_), limit, size);
  out.passed = history_.passed_.drop(limit, size);
  if (survivors_.size() > 1) {
    out.survivors =
        drop(sums_from_the_end(std::vector<std::string>(survivors_.begin() + 1, survivors_.end())),
             limit, size);
  }
  out.library = drop(sums_from_the_end(library_), limit, size);
  out.fastest = size > limit && !survivors_.empty();
  return out;
}

std::string PromptWriter::seeds_text(const LeftOut& left_out) const {
  std::string text;
  const auto show = [&](const std::vector<std::string>& sections, std::size_t begin,
                        std::size_t dropped) {
    for (std::size_t i = begin; i + dropped < sections.size(); ++i) text += sections[i];
  };
  show(survivors_, left_out.fastest ? 1 : 0, left_out.survivors);
  show(bank_, 0, left_out.bank);
  show(library_, 0, left_out.library);
  const std::size_t dropped =
      left_out.survivors + left_out.bank + left_out.library + (left_out.fastest ? 1 : 0);
  if (dropped > 0) text += "(" + std::to_string(dropped) + " more left out for length)\n";
  return text.empty() ? "None: start from scratch.\n" : text;
}

std::string PromptWriter::history_text(const LeftOut& left_out) const {
  std::string text;
  const auto& [logs, failed, passed] = std::tie(history_.logs_, history_.failed_, history_.passed_);
  text.reserve(prompt_reserve_bytes + logs.bytes_without(left_out.logs) +
               failed.bytes_without(left_out.failed) + passed.bytes_without(left_out.passed));
  const std::size_t dropped = left_out.failed + left_out.passed;
  if (dropped > 0) text += "(" + std::to_string(dropped) + " more left out for length)\n";
  std::size_t f = left_out.failed - failed.gone;
  std::size_t p = left_out.passed - passed.gone;
  std::size_t l = left_out.logs - logs.gone;
  while (f < failed.kept.size() || p < passed.kept.size()) {
    const bool next_failed =
        p == passed.kept.size() ||
        (f < failed.kept.size() && failed.kept[f].candidate < passed.kept[p].candidate);
    const PromptHistory::Line& line = next_failed ? failed.kept[f++] : passed.kept[p++];
    text += line.text;
    while (l < logs.kept.size() && logs.kept[l].candidate < line.candidate) ++l;
    if (l < logs.kept.size() && logs.kept[l].candidate == line.candidate) text += logs.kept[l].text;
  }
  return text.empty() ? "Nothing yet.\n" : text;
}

PromptText PromptWriter::ideas(int idea_count) const {
  PlaceholderValues values = fixed_values(header_.texts);
  values["idea_count"] = std::to_string(idea_count);
  const LeftOut out = left_out(filled_template(header_.templates.ideas, values).size());
  values["seeds"] = seeds_text(out);
  values["history"] = history_text(out);
  return filled_template(header_.templates.ideas, values);
}

PromptText PromptWriter::kernel(const Idea& idea, int branch) {
  const PlaceholderValues values{
      {"idea", idea.title == idea.text ? idea.text : idea.title + "\n" + idea.text},
      {"branch", std::to_string(branch) + " of " + std::to_string(header_.settings.branches)}};
  const LeftOut out =
      left_out(kernel_bytes_ + values.at("idea").size() + values.at("branch").size());
  const auto [frame, is_new] = frames_.try_emplace(out);
  if (is_new) frame->second = make_frame(out);
  std::string rest;
  for (const Piece& piece : frame->second.rest) {
    rest += piece.is_placeholder ? values.at(piece.text) : piece.text;
  }
  return {frame->second.beginning, std::move(rest)};
}

/// Everything but the idea and the branch is filled in.
PromptWriter::Frame PromptWriter::make_frame(const LeftOut& out) const {
  PlaceholderValues values = fixed_values(header_.texts);
  values["seeds"] = seeds_text(out);
  values["history"] = history_text(out);
  std::string beginning;
  Frame frame;
  const auto add = [&](std::string_view text) {
    if (frame.rest.empty()) {
      beginning += text;
    } else {
      frame.rest.push_back({std::string(text), false});
    }
  };
  walk_template(header_.templates.kernel, add, [&](std::string_view name) {
    const auto value = values.find(name);
    if (value != values.end()) {
      add(value->second);
    } else {
      frame.rest.push_back({std::string(name), true});
    }
  });
  frame.beginning = std::make_shared<PromptText::Beginning>(std::move(beginning));
  return frame;
}

}  // namespace rekernel
