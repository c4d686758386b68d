#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Replies and evaluations that arrived while an earlier one was still awaited, so that a kill
/// loses none of them: `<trajectory>.pending`, one JSON object a line, in the order of arrival. The
/// file goes as soon as all of it is in the trajectory.
class PendingJournal {
 public:
  /// Reads what an interrupted run left; a line that a kill tore is ignored.
  static Result<PendingJournal> open(const std::filesystem::path& trajectory);

  /// The entry with this event name, id and attempt (0 where it has none) that an interrupted run
  /// left, or nullptr.
  const boost::json::object* find(const std::string& event, const std::string& id,
                                  int attempt = 0) const;
  /// What an interrupted run left, in no order.
  std::vector<const boost::json::object*> entries() const;
  /// Writes and syncs one entry; it must have "event" and "id". The file alone keeps it.
  Result<Ok> add(const boost::json::object& entry);
  /// Everything is in the trajectory: removes the file.
  void clear();

 private:
  std::filesystem::path path_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, boost::json::object> entries_;
  std::size_t good_bytes_ = 0;  ///< length of the file up to the last whole line
};

}  // namespace rekernel
