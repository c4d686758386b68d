#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/base/text.h"

namespace rekernel {

/// Rows of text cells under headings. What follows the alignment matters where a table is wider
/// than the page: there, short headings are taken, cells are cut or wrapped, and columns left out.
struct Table {
  struct Column {
    std::string heading;
    bool right_aligned = false;
    int rank = 0;               ///< the highest is left out first; 0 always stays
    bool wraps = false;         ///< long cells go over several lines
    bool cut = false;           ///< of a cell, what stands before the first ':' will do
    std::string short_heading;  ///< empty: the heading
    /// For a column of verdicts: how the good ones begin; the others stand out on a terminal.
    std::string good;
    std::string neutral;    ///< of such a column: the cell that is neither good nor bad
    bool markdown = false;  ///< the cells are Markdown that we made; others are shown as they are
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// How a table is laid out as text.
struct TextStyle {
  std::size_t width =
      page_columns;     ///< of a line at most, as far as the columns that stay allow; 0: any
  bool colour = false;  ///< by the escape sequences of terminals
};

/// Columns separated by two blanks. Whatever is in the cells, none can speak to a terminal.
std::string to_text(const Table& table, const TextStyle& style = {});
/// The headings that to_text leaves out.
std::vector<std::string> left_out(const Table& table, const TextStyle& style);
/// A GitHub-flavoured Markdown table. Cells are text: what is Markdown or HTML in them is escaped.
std::string to_markdown(const Table& table);
/// RFC 4180, with the headings as the first record and lines that end in "\n".
std::string to_csv(const Table& table);

}  // namespace rekernel
