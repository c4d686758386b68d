#pragma once

#include <array>
#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string>

#include "harness/dataset/rows.h"

namespace rekernel {

/// Counts rows as they go by: what a data set is made of. Memory does not grow with rows.
class MakeUp : public RowStream {
 public:
  void put(std::string_view config, Split split, const boost::json::object& row) override;

  std::int64_t rows() const { return rows_; }

  /// "rows": by config, problem and split; of candidates "statuses" and "devices", how often each,
  /// "lengths" of code in bytes and "times" in nanoseconds, by the power of two from which on; how
  /// many are near duplicates, and the "newest" date of a measurement, empty without any.
  boost::json::object json() const;

 private:
  using Counts = std::map<std::string, std::int64_t>;
  /// By the power of two that a positive number is not below.
  using Powers = std::array<std::int64_t, 64>;

  void put_candidate(const boost::json::object& row);

  std::int64_t rows_ = 0;
  std::map<std::array<std::string, 3>, std::int64_t> of_;
  Counts statuses_, devices_;
  Powers lengths_{}, times_{};
  std::int64_t near_duplicates_ = 0;
  std::string newest_;
};

}  // namespace rekernel
