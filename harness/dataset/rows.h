#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/dataset/families.h"

namespace rekernel {

/// The tables of a data set, as Hugging Face calls them.
namespace config {
inline constexpr std::string_view candidates = "candidates";
inline constexpr std::string_view messages = "messages";
inline constexpr std::string_view preferences = "preferences";
inline constexpr std::string_view repairs = "repairs";
inline constexpr std::string_view cheats = "cheats";
inline constexpr std::string_view mutants = "mutants";
inline constexpr std::string_view profiles = "profiles";
}  // namespace config

/// Where rows go, one by one. A row's members are columns of its config, which
/// harness/dataset_parquet/columns.py describes; a column that is not there is null.
class RowStream {
 public:
  virtual ~RowStream() = default;
  virtual void put(std::string_view config, Split split, const boost::json::object& row) = 0;
};

/// What every row of a problem begins with: its id, its name and the problem's columns. An id is
/// the name, a colon, and twelve hexadecimal digits of a SHA-256 over the name and `content`: it
/// stays as long as what the row tells stays, whatever else is recorded.
boost::json::object begin_row(const std::string& name, std::string_view problem,
                              const std::vector<std::string>& content);

/// The id alone.
std::string row_id(const std::string& name, const std::vector<std::string>& content);

/// A number as JSON can hold it: what is not finite as text, "inf" or "nan".
boost::json::value number_column(double value);

/// Chat turns: {"role": "user", "content": …}, and the assistant's where there is an answer.
boost::json::object chat_turn(std::string_view role, std::string_view content);

}  // namespace rekernel
