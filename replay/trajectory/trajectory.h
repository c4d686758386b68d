#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "ops/result.h"
#include "replay/trajectory/interruption.h"

namespace rekernel {

/// A trajectory file as the search sees it: a sequence of events that it produces one by one. As
/// long as recorded events remain, each must equal the next recorded line byte for byte; past them,
/// events are appended, each written and synced as one line before the next. So resuming and exact
/// replay are the same search over the same file. Reads one line at a time.
class Trajectory {
 public:
  enum class Access {
    read,             ///< nothing is written; the file must end with a whole line
    read_unfinished,  ///< nothing is written; a last line that is not whole is not there yet
    append,  ///< makes the file if there is none; cuts off a line that a kill tore; locks the file
  };
  static Result<Trajectory> open(const std::filesystem::path& path, Access access);

  Trajectory(Trajectory&&) noexcept;
  Trajectory& operator=(Trajectory&&) noexcept;
  ~Trajectory();

  /// The next recorded event, or nullptr behind the last. An error if its line cannot be
  /// understood. That it says everything once only is seen when it is passed. Stays until the next
  /// one is looked at.
  Result<const boost::json::object*> peek();
  /// The event that peek() gave, if this is it.
  const boost::json::value* recorded_value(const boost::json::object& event) const;

  /// Passes the next recorded event without comparing it; for those who only read.
  Result<Ok> skip();

  /// Hands over the next event of the search.
  std::optional<Interruption> put(const boost::json::object& event);
  /// The same of an event that the search takes over from the recording, all but its chain value.
  std::optional<Interruption> put_recorded();

  /// The error for a recorded event that is not the expected one ("response r1.i1.b1"), or for the
  /// lack of one.
  Interruption not_as_expected(const std::string& expected_title);

  /// Whether every recorded event was passed.
  Result<bool> at_end();
  /// The number of the last line that was passed.
  std::size_t line() const { return line_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  class EventParser;

  Trajectory();
  Result<Ok> read_next();
  Result<Ok> check_strictly() const;
  bool is_next_line(const std::string& canonical, const std::string& chain) const;
  std::string where() const { return path_.string() + ": line " + std::to_string(line_ + 1); }
  std::optional<Interruption> put(const boost::json::object& event, const std::string& canonical);
  Interruption difference(const boost::json::object& expected, const std::string& canonical);
  std::optional<Interruption> append(const std::string& line);

  std::filesystem::path path_;
  std::ifstream input_;
  int output_ = -1;  ///< file descriptor, −1 when only reading
  std::string chain_;
  std::size_t line_ = 0;
  bool has_next_ = false;
  std::string next_line_;                ///< as recorded, without its newline
  std::unique_ptr<EventParser> parser_;  ///< holds what `next_event_` is made of
  const boost::json::object* next_event_ = nullptr;
};

/// The last event of this name in a trajectory, if it has any; without a look at what else is in
/// it.
Result<std::optional<boost::json::object>> last_event(const std::filesystem::path& path,
                                                      const std::string& event);

/// The GPU that the first times in a trajectory are of; empty if it has none.
Result<std::string> timed_on(const std::filesystem::path& path);

/// Whether a search is writing the file now.
bool is_being_written(const std::filesystem::path& path);

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
