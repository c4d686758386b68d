#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/base/text.h"

namespace rekernel {

/// Whom a column is for. People read "57.4% ± 0.2 (cublas_tf32 0.3490)", programs one number a
/// cell.
enum class Readers { all, people, programs };

/// Rows of text cells under headings. What follows the alignment matters where a table is wider
/// than the page: there, short headings are taken, cells are shortened or wrapped, and columns left
/// out.
struct Table {
  struct Column {
    std::string heading;
    bool right_aligned = false;
    int rank = 0;        ///< how little it is needed: the highest is left out first; 0 always stays
    bool wraps = false;  ///< long cells go over several lines
    /// Of a cell, what will do where room is short; null: all of it.
    std::string (*shortened)(const std::string& cell) = nullptr;
    std::string short_heading;  ///< empty: the heading
    /// For a column of verdicts: how the good ones begin; the others stand out on a terminal.
    std::string good;
    std::string neutral;    ///< of such a column: the cell that is neither good nor bad
    bool markdown = false;  ///< the cells are Markdown that we made; others are shown as they are
    /// Its name in CSV, with the unit, unique in the table: "time_ms". Empty: the heading.
    std::string csv;
    Readers readers = Readers::all;

    /// Cells are "57.4%", of which CSV has the number alone.
    bool is_percentage() const { return csv.find("percent") != std::string::npos; }
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
  std::string legend = {};  ///< what shortened cells mean
};

/// What stands in a cell that has nothing to say. Empty in CSV.
inline constexpr const char* no_cell = "–";

/// Of "passed: strict, robust" the status and the badges' first letters ("passed:
/// sr"), of any other text what stands before the first ':'.
std::string shortened_verdict(const std::string& cell);
/// What those letters mean: "s strict, r robust, d deterministic".
std::string badge_legend();

/// How a table is laid out as text.
struct TextStyle {
  std::size_t width =
      page_columns;     ///< of a line at most, as far as the columns that stay allow; 0: any
  bool colour = false;  ///< by the escape sequences of terminals
};

/// A table as text.
struct TableText {
  std::string text;                   ///< columns separated by two blanks
  std::vector<std::string> left_out;  ///< headings of columns for which there was no room
  bool shortened = false;             ///< cells were: the table's legend says how to read them
};
/// Whatever is in the cells, none can speak to a terminal.
TableText laid_out(const Table& table, const TextStyle& style = {});
/// The text of that alone.
std::string to_text(const Table& table, const TextStyle& style = {});
/// A GitHub-flavoured Markdown table. Cells are text: what is Markdown or HTML in them is escaped.
std::string to_markdown(const Table& table);
/// RFC 4180, with the columns' names as the first record and lines that end in "\n".
std::string to_csv(const Table& table);

}  // namespace rekernel
