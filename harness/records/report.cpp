#include "harness/records/report.h"

#include <algorithm>
#include <set>

#include "harness/base/text.h"

namespace rekernel {

namespace {

const char* const missing = "–";

/// Display width of UTF-8 text: one column a code point is right for everything printed here.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t target, bool right_aligned) {
  const std::string blanks(target - std::min(target, width(text)), ' ');
  return right_aligned ? blanks + text : text + blanks;
}

/// The library's configurations that were timed beside the kernel, PyTorch left out.
std::vector<const RecordedReference*> libraries(const BenchRow& row) {
  std::vector<const RecordedReference*> found;
  for (const RecordedReference& reference : row.references) {
    if (!reference.unavailable.empty() || reference.id.starts_with("pytorch_")) continue;
    found.push_back(&reference);
  }
  return found;
}

/// The one with the shortest time; none where the problem's other rows were timed beside more of
/// them (a search times few), since the strongest may be missing.
const RecordedReference* strongest_library(const Bench& bench, const BenchRow& row) {
  const std::vector<const RecordedReference*> timed = libraries(row);
  for (const BenchRow& other : bench.rows) {
    if (other.problem == row.problem && libraries(other).size() > timed.size()) return nullptr;
  }
  const auto strongest =
      std::min_element(timed.begin(), timed.end(),
                       [](const auto* a, const auto* b) { return a->median_ns < b->median_ns; });
  return strongest == timed.end() ? nullptr : *strongest;
}

std::string named_percent(const RecordedReference* reference) {
  if (!reference) return missing;
  return percent_text(reference->percent.value) + " (" + reference->id + " " +
         milliseconds(reference->median_ns) + ")";
}

std::string plain_percent(const RecordedReference* reference) {
  return reference ? percent_text(reference->percent.value) + " (" +
                         milliseconds(reference->median_ns) + ")"
                   : missing;
}

std::string headline_percent(const RecordedReference* reference) {
  if (!reference) return missing;
  const double half_width = (reference->percent.high - reference->percent.low) / 2.0;
  return percent_text(reference->percent.value) + " ± " + printed("%.1f", half_width);
}

std::string published_percent(const std::string& problem,
                              const std::map<std::string, PublishedFigures>& published) {
  const auto found = published.find(problem);
  if (found == published.end() || !found->second.percent_of_pytorch_eager) return missing;
  return percent_text(*found->second.percent_of_pytorch_eager);
}

std::string floor_share(const BenchRow& row) {
  if (row.median_ns <= 0) return missing;
  return percent_text(100.0 * static_cast<double>(row.floor_ns) /
                      static_cast<double>(row.median_ns));
}

}  // namespace

std::string to_text(const Table& table) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    std::size_t widest = width(table.columns[column].heading);
    for (const auto& row : table.rows) widest = std::max(widest, width(row[column]));
    widths.push_back(widest);
  }
  auto line = [&](auto cell_of) {
    std::string text;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      if (column > 0) text += "  ";
      text += padded(cell_of(column), widths[column], table.columns[column].right_aligned);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  std::string text = line([&](std::size_t column) { return table.columns[column].heading; });
  for (const auto& row : table.rows) {
    text += line([&](std::size_t column) { return row[column]; });
  }
  return text;
}

std::string to_markdown(const Table& table) {
  auto escaped = [](const std::string& cell) {
    std::string text;
    for (char character : cell) {
      if (character == '|') text += '\\';
      text += character == '\n' ? ' ' : character;
    }
    return text;
  };
  std::string text = "|";
  for (const Table::Column& column : table.columns) text += " " + column.heading + " |";
  text += "\n|";
  for (const Table::Column& column : table.columns) text += column.right_aligned ? "---:|" : "---|";
  text += "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::string& cell : row) text += " " + escaped(cell) + " |";
    text += "\n";
  }
  return text;
}

Result<Ok> replace_section(std::string& page, const std::string& name, const std::string& content,
                           const std::filesystem::path& path) {
  const std::string start = "<!-- " + name + ":start -->\n";
  const std::string end = "<!-- " + name + ":end -->";
  const std::size_t from = page.find(start);
  const std::size_t to = from == std::string::npos ? from : page.find(end, from);
  if (to == std::string::npos) {
    return Error{path.string() + ": expected the markers '" + start.substr(0, start.size() - 1) +
                 "' and '" + end + "'"};
  }
  page.replace(from + start.size(), to - from - start.size(), content);
  return Ok{};
}

Table bench_table(const Bench& bench, const std::map<std::string, PublishedFigures>& published) {
  Table table;
  table.columns = {{"problem"},
                   {"kernel"},
                   {"ms", true},
                   {"reference"},
                   {"ms", true},
                   {"% of reference", true},
                   {"% of strongest library", true},
                   {"% of PyTorch", true},
                   {"% of torch.compile", true},
                   {"published %", true},
                   {"% of floor", true},
                   {"verdict"}};
  for (const BenchRow& row : bench.rows) {
    const RecordedReference* headline = row.headline();
    std::string verdict = to_string(row.status);
    if (!row.badges.empty()) verdict += ": " + joined(row.badges, ", ");
    table.rows.push_back(
        {row.problem, row.kernel, row.median_ns > 0 ? milliseconds(row.median_ns) : missing,
         headline ? headline->id : missing, headline ? milliseconds(headline->median_ns) : missing,
         headline_percent(headline), named_percent(strongest_library(bench, row)),
         plain_percent(row.find("pytorch_eager")), plain_percent(row.find("pytorch_compile")),
         published_percent(row.problem, published), floor_share(row), verdict});
  }
  return table;
}

std::string bench_caption(const Bench& bench) {
  std::set<std::string> dates;
  for (const BenchRow& row : bench.rows) dates.insert(row.measured);
  std::vector<std::string> versions;
  for (const auto& [component, version] : bench.toolchain) {
    versions.push_back(component + " " + version);
  }
  std::string text = bench.device_name + " (sm " + bench.sm + ", " +
                     std::to_string(bench.multiprocessors) + " SMs)";
  if (!dates.empty()) {
    text += ", measured " + *dates.begin();
    if (dates.size() > 1) text += " to " + *dates.rbegin();
  }
  // A record that a search's evaluation began has no ceilings: only a bench run measures them.
  if (bench.ceilings.copy_bytes_per_s > 0) {
    text += "; copy " +
            printed("%.2f TB/s", static_cast<double>(bench.ceilings.copy_bytes_per_s) / 1e12);
  }
  if (bench.ceilings.fp16_flops_per_s > 0) {
    text += ", FP16 product " +
            printed("%.0f TFLOP/s", static_cast<double>(bench.ceilings.fp16_flops_per_s) / 1e12);
  }
  if (!versions.empty()) text += "; " + joined(versions, ", ");
  return text;
}

std::string milliseconds(std::int64_t nanoseconds) {
  const double value = static_cast<double>(nanoseconds) / 1e6;
  return printed(value < 1.0 ? "%.4f" : "%.3f", value);
}

std::string percent_text(double percent) { return printed("%.1f%%", percent); }

}  // namespace rekernel
