#include "harness/dataset/rows.h"

#include <cmath>

#include "harness/base/files.h"

namespace rekernel {

namespace json = boost::json;

namespace {

constexpr std::size_t id_digits = 12;

}  // namespace

std::string row_id(const std::string& name, const std::vector<std::string>& content) {
  std::string text = name;
  for (const std::string& part : content) {
    text += '\0';
    text += part;
  }
  return name + ":" + sha256_hex(text).substr(0, id_digits);
}

json::object begin_row(const std::string& name, std::string_view problem,
                       const std::vector<std::string>& content) {
  return {{"id", row_id(name, content)},
          {"name", name},
          {"problem", problem},
          {"family", family_of(problem)},
          {"contamination_keys", json::value_from(contamination_keys(problem))}};
}

json::value number_column(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

json::object chat_turn(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace rekernel
