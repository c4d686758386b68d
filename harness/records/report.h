#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/records/published.h"
#include "harness/records/record.h"
#include "ops/result.h"

namespace rekernel {

/// Rows of text cells under headings. Numbers are right-aligned.
struct Table {
  struct Column {
    std::string heading;
    bool right_aligned = false;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

/// Columns separated by two blanks, for terminals.
std::string to_text(const Table& table);
/// A GitHub-flavoured Markdown table; pipes in cells are escaped.
std::string to_markdown(const Table& table);

/// Replaces what stands between `<!-- name:start -->` and `<!-- name:end -->`. The error names
/// `path` and the markers that are missing.
Result<Ok> replace_section(std::string& page, const std::string& name, const std::string& content,
                           const std::filesystem::path& path);

/// "% of reference": every kernel beside its headline reference, the strongest library
/// configuration, PyTorch, the published figures and the floor.
Table bench_table(const Bench& bench, const std::map<std::string, PublishedFigures>& published);

/// One line on what was measured, where and when: device, ceilings, library versions, dates.
std::string bench_caption(const Bench& bench);

/// "0.518" from nanoseconds, in milliseconds with three significant digits or more.
std::string milliseconds(std::int64_t nanoseconds);
/// "179.9%"
std::string percent_text(double percent);

}  // namespace rekernel
