#include "harness/profile/ncu_pages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace rekernel {

namespace {

using Row = std::vector<std::string>;
constexpr std::size_t none = static_cast<std::size_t>(-1);
constexpr std::uint64_t instruction_bytes = 16;

std::size_t column_of(const Row& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? none : static_cast<std::size_t>(found - names.begin());
}

const std::string& cell(const Row& row, std::size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column] : empty;
}

/// "1,234.5" or "12"; nothing for what is no number.
std::optional<double> number_in(std::string text) {
  std::erase(text, ',');
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (text.empty() || !whole || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// 0 for what is no count.
std::int64_t whole_number_in(const std::string& text) {
  constexpr double largest = 1e15;
  const double value = number_in(text).value_or(0);
  return value > 0 && value < largest ? std::llround(value) : 0;
}

/// By what a value in this unit is multiplied: metrics come in base units, unless somebody's
/// configuration says otherwise.
double factor_of(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, double>, 10> factors = {{{"usecond", 1e3},
                                                                            {"us", 1e3},
                                                                            {"msecond", 1e6},
                                                                            {"ms", 1e6},
                                                                            {"second", 1e9},
                                                                            {"s", 1e9},
                                                                            {"Kbyte", 1e3},
                                                                            {"Mbyte", 1e6},
                                                                            {"Gbyte", 1e9},
                                                                            {"Tbyte", 1e12}}};
  // "Kbyte/block" is a count of bytes as well.
  const std::string_view first = unit.substr(0, unit.find('/'));
  for (const auto& [name, factor] : factors) {
    if (first == name) return factor;
  }
  return 1;
}

std::uint64_t address_in(const std::string& text) {
  const bool hexadecimal = text.starts_with("0x");
  std::uint64_t value = 0;
  std::from_chars(text.data() + (hexadecimal ? 2 : 0), text.data() + text.size(), value,
                  hexadecimal ? 16 : 10);
  return value;
}

/// Without the spaces that lay instructions out in columns.
std::string compact(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, text.find_last_not_of(" \t;") + 1)) {
    const bool space = c == ' ' || c == '\t';
    if (!space) {
      result += c;
    } else if (!result.empty() && result.back() != ' ') {
      result += ' ';
    }
  }
  return result;
}

/// From the row of names on: what is printed before it may hold anything.
std::string_view from_names(std::string_view raw_page) {
  constexpr std::string_view names = "\"ID\",";
  if (raw_page.starts_with(names)) return raw_page;
  const std::size_t at = raw_page.find("\n" + std::string(names));
  return at == std::string_view::npos ? "" : raw_page.substr(at + 1);
}

/// Where the samples of all kinds stand; the name has changed between versions.
std::size_t samples_column(const Row& names) {
  for (const char* name : {"Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)",
                           "# Samples", "Samples"}) {
    if (const std::size_t column = column_of(names, name); column != none) return column;
  }
  return none;
}

/// "stall_long_sb", and not the same of samples in which nothing was issued.
std::vector<std::pair<std::size_t, std::string>> stall_columns(const Row& names) {
  constexpr std::string_view prefix = "stall_";
  std::vector<std::pair<std::size_t, std::string>> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i].starts_with(prefix) || names[i].find('(') != std::string::npos) continue;
    if (names[i].find("not_issued") != std::string::npos) continue;
    columns.emplace_back(i, names[i].substr(prefix.size()));
  }
  return columns;
}

/// `selected` is no stall: the warp issued.
std::string main_stall(const Row& row,
                       const std::vector<std::pair<std::size_t, std::string>>& columns) {
  std::string main;
  double most = 0;
  for (const auto& [column, name] : columns) {
    const double samples = number_in(cell(row, column)).value_or(0);
    if (name == "selected" || !(samples > most)) continue;
    most = samples;
    main = name;
  }
  return main;
}

}  // namespace

Result<std::vector<std::vector<std::string>>> csv_rows(std::string_view text) {
  std::vector<Row> rows;
  Row row;
  std::string field;
  bool quoted = false, begun = false;
  const auto end_field = [&] { row.push_back(std::exchange(field, {})); };
  const auto end_row = [&] {
    if (begun || !row.empty()) {
      end_field();
      rows.push_back(std::exchange(row, {}));
    }
    begun = false;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      const bool doubled = c == '"' && i + 1 < text.size() && text[i + 1] == '"';
      if (c == '"' && !doubled) {
        quoted = false;
      } else {
        field += c;
        if (doubled) ++i;
      }
    } else if (c == '"' && field.empty()) {
      quoted = begun = true;
    } else if (c == ',') {
      begun = true;
      end_field();
    } else if (c == '\n') {
      end_row();
    } else if (c != '\r') {
      begun = true;
      field += c;
    }
  }
  if (quoted) return Error{"a quote that is not closed"};
  end_row();
  return rows;
}

Result<std::vector<LaunchMetrics>> launches_in(std::string_view raw_page) {
  const auto rows = csv_rows(from_names(raw_page));
  if (!rows) return Error{"page raw: " + rows.error().message};
  const auto names = std::find_if(rows->begin(), rows->end(), [](const Row& row) {
    return cell(row, 0) == "ID" && column_of(row, "Kernel Name") != none;
  });
  if (names == rows->end()) {
    return Error{
        "page raw: no row of names: expected one that begins with \"ID\" and has \"Kernel Name\""};
  }
  const std::size_t kernel = column_of(*names, "Kernel Name");
  const std::size_t grid = column_of(*names, "Grid Size");
  const std::size_t block = column_of(*names, "Block Size");
  Row units;
  std::vector<LaunchMetrics> launches;
  for (auto row = names + 1; row != rows->end(); ++row) {
    if (cell(*row, 0).empty() && units.empty()) {
      units = *row;
      continue;
    }
    if (!number_in(cell(*row, 0))) continue;
    LaunchMetrics launch{cell(*row, kernel), cell(*row, grid), cell(*row, block), {}};
    for (std::size_t i = 0; i < names->size(); ++i) {
      if ((*names)[i].find("__") == std::string::npos) continue;
      if (const auto value = number_in(cell(*row, i))) {
        launch.values[(*names)[i]] = *value * factor_of(cell(units, i));
      }
    }
    launches.push_back(std::move(launch));
  }
  return launches;
}

Result<std::vector<SampledInstruction>> instructions_in(std::string_view source_page) {
  const auto rows = csv_rows(source_page);
  if (!rows) return Error{"page source: " + rows.error().message};
  const auto names = std::find_if(rows->begin(), rows->end(), [](const Row& row) {
    return column_of(row, "Source") != none && samples_column(row) != none;
  });
  if (names == rows->end()) {
    return Error{
        "page source: no row of names: expected \"Source\" and \"Warp Stall Sampling (All "
        "Samples)\""};
  }
  const std::size_t address = column_of(*names, "Address");
  const std::size_t source = column_of(*names, "Source");
  const std::size_t samples = samples_column(*names);
  const auto stalls = stall_columns(*names);
  std::vector<SampledInstruction> instructions;
  std::uint64_t first = 0;
  for (auto row = names + 1; row != rows->end(); ++row) {
    if (row->size() != names->size()) break;  // the next launch's words
    const std::uint64_t at = address_in(cell(*row, address));
    if (instructions.empty()) first = at;
    const std::uint64_t in_order = instructions.size() * instruction_bytes;
    instructions.push_back({at > first ? at - first : in_order, compact(cell(*row, source)),
                            whole_number_in(cell(*row, samples)), main_stall(*row, stalls)});
  }
  return instructions;
}

}  // namespace rekernel
