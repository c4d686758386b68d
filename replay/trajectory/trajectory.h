#pragma once

#include <boost/json/object.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

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

  /// The next recorded event, or nullptr after the last. An error if its line cannot be
  /// understood. Keys that appear twice are found only when it is passed. Stays until the next
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

}  // namespace rekernel
