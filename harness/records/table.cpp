#include "harness/records/table.h"

#include <algorithm>

#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/candidate/badge.h"
#include "harness/records/cell_text.h"

namespace rekernel {

namespace {

constexpr std::size_t gap = 2;              ///< blanks between columns
constexpr std::size_t narrowest_wrap = 24;  ///< a column that wraps does not get narrower
constexpr std::size_t longest_cell = 4000;  ///< bytes; more is cut off, on a terminal alone

constexpr const char* bold = "\x1b[1m";
constexpr const char* green = "\x1b[32m";
constexpr const char* red = "\x1b[31m";
constexpr const char* plain = "\x1b[0m";

/// A table with the columns that are shown and how wide they are.
struct Layout {
  std::vector<std::size_t> shown;   ///< indices of columns
  std::vector<std::size_t> widths;  ///< of those
  bool narrow = false;              ///< short headings, cut cells
};

std::string heading_of(const Table::Column& column, bool narrow) {
  return narrow && !column.short_heading.empty() ? column.short_heading : column.heading;
}

std::string cell_of(const Table& table, std::size_t row, std::size_t column, bool narrow) {
  std::string text = one_line(table.rows[row][column], longest_cell);
  if (narrow && table.columns[column].shortened) text = table.columns[column].shortened(text);
  return text;
}

std::size_t content_width(const Table& table, std::size_t column, bool narrow) {
  std::size_t widest = terminal_columns(heading_of(table.columns[column], narrow));
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    widest = std::max(widest, terminal_columns(cell_of(table, row, column, narrow)));
  }
  return widest;
}

std::size_t line_width(const std::vector<std::size_t>& widths) {
  std::size_t sum = widths.empty() ? 0 : gap * (widths.size() - 1);
  for (const std::size_t width : widths) sum += width;
  return sum;
}

/// The least widths of the columns that are shown.
std::vector<std::size_t> least_widths(const Table& table, const Layout& layout) {
  std::vector<std::size_t> least = layout.widths;
  for (std::size_t i = 0; i < least.size(); ++i) {
    const Table::Column& column = table.columns[layout.shown[i]];
    if (!column.wraps) continue;
    least[i] = std::min(
        least[i], std::max(narrowest_wrap, terminal_columns(heading_of(column, layout.narrow))));
  }
  return least;
}

/// Leaves out the column of the highest rank, of equal ones the last; false if all must stay.
bool leave_one_out(const Table& table, Layout& layout) {
  std::size_t worst = layout.shown.size();
  int rank = 1;
  for (std::size_t i = 0; i < layout.shown.size(); ++i) {
    if (table.columns[layout.shown[i]].rank >= rank) {
      worst = i;
      rank = table.columns[layout.shown[i]].rank;
    }
  }
  if (worst == layout.shown.size()) return false;
  layout.shown.erase(layout.shown.begin() + static_cast<std::ptrdiff_t>(worst));
  layout.widths.erase(layout.widths.begin() + static_cast<std::ptrdiff_t>(worst));
  return true;
}

/// Columns that wrap give up what is too much, the widest first.
void shrink(std::vector<std::size_t>& widths, const std::vector<std::size_t>& least,
            std::size_t width) {
  while (line_width(widths) > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] > least[i] && (widest == widths.size() || widths[i] > widths[widest])) {
        widest = i;
      }
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

Layout layout_of(const Table& table, const TextStyle& style) {
  Layout layout;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].readers == Readers::programs) continue;
    layout.shown.push_back(column);
    layout.widths.push_back(content_width(table, column, false));
  }
  if (style.width == 0 || line_width(layout.widths) <= style.width) return layout;
  layout.narrow = true;
  for (std::size_t i = 0; i < layout.shown.size(); ++i) {
    layout.widths[i] = content_width(table, layout.shown[i], true);
  }
  while (line_width(least_widths(table, layout)) > style.width) {
    if (!leave_one_out(table, layout)) break;
  }
  shrink(layout.widths, least_widths(table, layout), style.width);
  return layout;
}

const char* colour_of(const Table::Column& column, const std::string& cell) {
  if (column.good.empty() || cell.empty() || cell == column.neutral) return "";
  return cell.starts_with(column.good) ? green : red;
}

/// One row of cells, over as many lines as the longest of them needs.
std::string row_text(const Table& table, const Layout& layout,
                     const std::vector<std::string>& cells,
                     const std::vector<const char*>& colours) {
  std::vector<std::vector<std::string>> parts;
  std::size_t height = 1;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    parts.push_back(lines_within(cells[i], layout.widths[i]));
    height = std::max(height, parts.back().size());
  }
  std::string text;
  for (std::size_t line = 0; line < height; ++line) {
    std::size_t blanks = 0;  // not written before something follows: no line ends in blanks
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string part = line < parts[i].size() ? parts[i][line] : "";
      const std::size_t padding =
          layout.widths[i] - std::min(layout.widths[i], terminal_columns(part));
      const bool right = table.columns[layout.shown[i]].right_aligned;
      if (right) blanks += padding;
      if (!part.empty()) {
        const bool coloured = *colours[i] != '\0';
        text += std::string(blanks, ' ') + colours[i] + part + (coloured ? plain : "");
        blanks = 0;
      }
      blanks += right ? gap : padding + gap;
    }
    text += "\n";
  }
  return text;
}

/// Headings of the columns for people that the layout has not.
std::vector<std::string> left_out_of(const Table& table, const Layout& layout) {
  std::vector<std::string> headings;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    if (table.columns[column].readers != Readers::programs &&
        std::find(layout.shown.begin(), layout.shown.end(), column) == layout.shown.end()) {
      headings.push_back(table.columns[column].heading);
    }
  }
  return headings;
}

/// Indices of the columns that all or these read.
std::vector<std::size_t> columns_for(Readers readers, const Table& table) {
  std::vector<std::size_t> columns;
  for (std::size_t column = 0; column < table.columns.size(); ++column) {
    const Readers of = table.columns[column].readers;
    if (of == Readers::all || of == readers) columns.push_back(column);
  }
  return columns;
}

}  // namespace

std::string shortened_verdict(const std::string& cell) {
  const std::size_t colon = std::min(cell.find(':'), cell.size());
  std::string letters;
  std::vector<std::string> names;
  for (const BadgeDescription& one : badge_table) {
    if (cell.find(one.name, colon) == std::string::npos) continue;
    letters += one.name.front();
    names.emplace_back(one.name);
  }
  const std::string status = cell.substr(0, colon);
  // Only a list of badges is one: a message may have those words too.
  return names.empty() || cell != status + ": " + joined(names) ? status : status + ": " + letters;
}

std::string badge_legend() {
  std::vector<std::string> words;
  for (const BadgeDescription& one : badge_table) {
    words.push_back(std::string(1, one.name.front()) + " " + std::string(one.name));
  }
  return joined(words);
}

TableText laid_out(const Table& table, const TextStyle& style) {
  const Layout layout = layout_of(table, style);
  std::vector<std::string> cells;
  std::vector<const char*> colours;
  for (const std::size_t column : layout.shown) {
    cells.push_back(heading_of(table.columns[column], layout.narrow));
    colours.push_back(style.colour ? bold : "");
  }
  TableText result{row_text(table, layout, cells, colours), left_out_of(table, layout), false};
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    for (std::size_t i = 0; i < layout.shown.size(); ++i) {
      cells[i] = cell_of(table, row, layout.shown[i], layout.narrow);
      colours[i] = style.colour ? colour_of(table.columns[layout.shown[i]], cells[i]) : "";
      result.shortened |= cells[i] != cell_of(table, row, layout.shown[i], false);
    }
    result.text += row_text(table, layout, cells, colours);
  }
  return result;
}

std::string to_text(const Table& table, const TextStyle& style) {
  return laid_out(table, style).text;
}

std::string to_markdown(const Table& table) {
  const std::vector<std::size_t> columns = columns_for(Readers::people, table);
  const auto cell_text = [&](const std::string& cell, std::size_t column) {
    if (!table.columns[column].markdown) return markdown_text(cell);
    std::string text;
    for (const char character : visible_lines(cell, cell.size())) {
      if (character == '|') text += '\\';
      text += character == '\n' ? ' ' : character;
    }
    return text;
  };
  std::string text = "|";
  for (const std::size_t i : columns) text += " " + table.columns[i].heading + " |";
  text += "\n|";
  for (const std::size_t i : columns) text += table.columns[i].right_aligned ? "---:|" : "---|";
  text += "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const std::size_t i : columns) text += " " + cell_text(row[i], i) + " |";
    text += "\n";
  }
  return text;
}

std::string to_csv(const Table& table) {
  const std::vector<std::size_t> columns = columns_for(Readers::programs, table);
  const auto field = [](const std::string& raw) {
    const std::string cell = raw == no_cell ? "" : visible_lines(raw, raw.size());
    if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
    std::string text = "\"";
    for (const char character : cell) {
      if (character == '"') text += '"';
      text += character;
    }
    return text + "\"";
  };
  std::string text;
  const auto add = [&](std::size_t column, std::string cell) {
    // The unit stands in the column's name.
    if (table.columns[column].is_percentage() && cell.ends_with('%')) cell.pop_back();
    text += (column == columns.front() ? "" : ",") + field(cell);
  };
  for (const std::size_t i : columns) {
    add(i, table.columns[i].csv.empty() ? table.columns[i].heading : table.columns[i].csv);
  }
  text += "\n";
  for (const auto& row : table.rows) {
    for (const std::size_t i : columns) add(i, row[i]);
    text += "\n";
  }
  return text;
}

}  // namespace rekernel
