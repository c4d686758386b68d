#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/terminal/page.h"

namespace rekernel {

/// A term and what it means, for a list of two columns.
struct Item {
  std::string term;
  std::string text;
};

/// Items below each other, indented by two blanks, their texts in one column. Terms that are too
/// long for the first column have a line of their own.
std::string item_list(const std::vector<Item>& items, std::size_t columns);

/// The page of a command ("problem check") in lines of at most `columns` columns.
std::string help_text(const std::string& command, const std::string& summary, const Page& page,
                      std::size_t columns);

/// "--samples N", "--help, -h".
std::string term_of(const boost::program_options::option_description& option);

}  // namespace rekernel
