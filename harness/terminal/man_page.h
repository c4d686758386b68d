#pragma once

#include <string>
#include <vector>

#include "harness/terminal/help_text.h"
#include "harness/terminal/page.h"

namespace rekernel {

/// What stands in the corners of every manual page.
struct ManualEdition {
  std::string version;  ///< "0.1.0"
  std::string date;     ///< "2026-11-23"; may be empty
};

/// The page of a command ("problem check") in roff, for man(1): rekernel-problem-check.1.
std::string man_page(const std::string& command, const std::string& summary, const Page& page,
                     const ManualEdition& edition);

/// Commands under a title.
struct CommandGroup {
  std::string title;
  std::vector<Item> commands;
};

/// rekernel.1: what the program is, and its commands.
std::string man_overview(const std::string& description, const std::vector<CommandGroup>& groups,
                         const std::vector<Item>& statuses, const ManualEdition& edition);

}  // namespace rekernel
