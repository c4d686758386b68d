#include "replay/trajectory/trajectory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t max_line_bytes = std::size_t{128} << 20;
constexpr std::size_t shown_bytes = 400;
constexpr std::array known_events = {"header", "request",  "response",  "evaluation", "selection",
                                     "stop",   "continue", "endpoints", "unusable",   "profile"};

/// The length of the file up to and with its last newline.
Result<std::int64_t> whole_lines_length(int file, const fs::path& path) {
  std::int64_t end = ::lseek(file, 0, SEEK_END);
  std::array<char, 4096> buffer;
  while (end > 0) {
    const auto count = std::min<std::int64_t>(end, buffer.size());
    if (::pread(file, buffer.data(), count, end - count) != count) {
      return system_error(path, "cannot be read");
    }
    for (std::int64_t i = count; i > 0; --i) {
      if (buffer[i - 1] == '\n') return end - count + i;
    }
    end -= count;
  }
  if (end < 0) return system_error(path, "cannot be examined");
  return end;
}

/// Opens for appending, alone, with a torn last line cut off.
Result<int> open_for_append(const fs::path& path) {
  if (path.has_parent_path()) {
    std::error_code ignored;  // opening the file reports what matters
    fs::create_directories(path.parent_path(), ignored);
  }
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return system_error(path, "cannot be opened for writing");
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    const Error error = errno == EWOULDBLOCK
                            ? Error{path.string() + ": another search is writing this file"}
                            : system_error(path, "cannot be locked");
    ::close(file);
    return error;
  }
  const Result<std::int64_t> length = whole_lines_length(file, path);
  const bool cut = length && ::ftruncate(file, *length) == 0;
  if (!cut) {
    const Error error = length ? system_error(path, "cannot be shortened") : length.error();
    ::close(file);
    return error;
  }
  return file;
}

Result<Ok> check_last_line(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return system_error(path, "cannot be opened");
  const Result<std::int64_t> whole = whole_lines_length(file, path);
  const std::int64_t size = ::lseek(file, 0, SEEK_END);
  ::close(file);
  if (!whole) return whole.error();
  if (size == 0) return Error{path.string() + ": empty; expected a trajectory's events"};
  if (*whole != size) {
    return Error{path.string() +
                 ": truncated: the last line is incomplete. `rekernel search "
                 "--resume` cuts it off and goes on"};
  }
  return Ok{};
}

bool holds_floating_point(const json::value& value) {
  if (const auto* object = value.if_object()) {
    return std::any_of(object->begin(), object->end(),
                       [](const auto& member) { return holds_floating_point(member.value()); });
  }
  if (const auto* array = value.if_array()) {
    return std::any_of(array->begin(), array->end(), holds_floating_point);
  }
  return value.is_double();
}

/// Whether nothing speaks against it but perhaps a key that appears twice.
bool is_known_event(const json::object& event) {
  const json::value* name = event.if_contains("event");
  const json::value* chain = event.if_contains("chain");
  if (!name || !chain || !name->is_string() || !chain->is_string()) return false;
  const auto known = [&](const char* one) { return name->get_string() == one; };
  return !known("header") && std::any_of(known_events.begin(), known_events.end(), known) &&
         std::none_of(event.begin(), event.end(),
                      [](const auto& member) { return holds_floating_point(member.value()); });
}

json::object without_chain(json::object event) {
  event.erase("chain");
  return event;
}

/// Two texts around the first byte in which they differ.
std::pair<std::string, std::string> around_difference(const std::string& a, const std::string& b) {
  std::size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  constexpr std::size_t context = 60;
  const std::size_t begin = at > context ? at - context : 0;
  const auto part = [&](const std::string& text) {
    const std::string tail = begin < text.size() ? text.substr(begin, 4 * shown_bytes) : "";
    return (begin > 0 ? "…" : "") + one_line(tail, shown_bytes);
  };
  return {part(a), part(b)};
}

}  // namespace

/// Reads one event after the other into the same memory.
class Trajectory::EventParser {
 public:
  EventParser() : room_(std::size_t{1} << 16), memory_(room_.data(), room_.size()) {}

  /// Valid until the next call; nullptr where the line is no object. If a key appears twice,
  /// the last value counts.
  const json::object* parse(std::string_view line) {
    event_.reset();
    memory_.release();
    parser_.reset(&memory_);
    boost::system::error_code status;
    parser_.write(line.data(), line.size(), status);
    if (status) return nullptr;
    event_.emplace(parser_.release());  // an assignment would copy it out of the memory
    return event_->if_object();
  }
  const json::value* event() const { return event_ ? &*event_ : nullptr; }

 private:
  std::vector<unsigned char> room_;
  json::monotonic_resource memory_;
  json::parser parser_;
  std::optional<json::value> event_;
};

Result<Trajectory> Trajectory::open(const fs::path& path, Access access) {
  Trajectory trajectory;
  trajectory.path_ = path;
  trajectory.chain_ = chain_start();
  if (access == Access::append) {
    const Result<int> file = open_for_append(path);
    if (!file) return file.error();
    trajectory.output_ = *file;
  } else if (access == Access::read) {
    if (const Result<Ok> whole = check_last_line(path); !whole) return whole.error();
  }
  trajectory.input_.open(path, std::ios::binary);
  if (!trajectory.input_) return system_error(path, "cannot be opened");
  return trajectory;
}

Trajectory::Trajectory() : parser_(std::make_unique<EventParser>()) {}

Trajectory::Trajectory(Trajectory&& other) noexcept { *this = std::move(other); }

Trajectory& Trajectory::operator=(Trajectory&& other) noexcept {
  path_ = std::move(other.path_);
  input_ = std::move(other.input_);
  std::swap(output_, other.output_);
  chain_ = std::move(other.chain_);
  line_ = other.line_;
  has_next_ = other.has_next_;
  next_line_ = std::move(other.next_line_);
  parser_ = std::move(other.parser_);
  next_event_ = other.next_event_;
  return *this;
}

Trajectory::~Trajectory() {
  if (output_ >= 0) ::close(output_);
}

Result<Ok> Trajectory::read_next() {
  // Without its newline, a line is being written, or never will be whole.
  if (!std::getline(input_, next_line_) || input_.eof()) return Ok{};
  if (next_line_.size() > max_line_bytes) return Error{where() + ": longer than any event"};
  next_event_ = parser_->parse(next_line_);
  // What the search makes of it is compared with the line, so that most lines need no closer look.
  if (line_ == 0 || !next_event_ || !is_known_event(*next_event_)) {
    if (Result<Ok> checked = check_strictly(); !checked) return checked;
  }
  has_next_ = next_event_ != nullptr;
  return Ok{};
}

/// Whether the next line is an event, by everything that can be said of it alone.
Result<Ok> Trajectory::check_strictly() const {
  const Result<json::value> value = parse_json(next_line_, where());
  if (!value) return value.error();
  JsonReader reader(where(), *value);
  const std::string name = reader.required("event").string(64);
  reader.required("chain").string(64);
  if (auto error = reader.error()) return *error;
  if (std::find(known_events.begin(), known_events.end(), name) == known_events.end()) {
    std::string known;
    for (const char* event : known_events)
      known += (known.empty() ? "" : ", ") + std::string(event);
    return Error{where() + ": unknown event \"" + one_line(name, 64) + "\"; known: " + known};
  }
  if (holds_floating_point(*value)) {
    return Error{where() + ": a floating-point number; events hold integers and text"};
  }
  if ((line_ == 0) != (name == "header")) {
    return Error{where() + (line_ == 0
                                ? ": expected the header, got " + event_title(value->get_object())
                                : ": a second header")};
  }
  if (line_ == 0) {
    const std::int64_t schema = reader.required("schema").integer(1, 1 << 30);
    if (auto error = reader.error()) return *error;
    if (schema > trajectory_schema) {
      return Error{where() + ": schema " + std::to_string(schema) +
                   " is newer than this program's " + std::to_string(trajectory_schema) +
                   "; update rekernel"};
    }
  }
  return Ok{};
}

Result<const json::object*> Trajectory::peek() {
  if (!has_next_) {
    if (Result<Ok> read = read_next(); !read) return read.error();
  }
  return has_next_ ? next_event_ : nullptr;
}

Result<bool> Trajectory::at_end() {
  const Result<const json::object*> next = peek();
  if (!next) return next.error();
  return *next == nullptr;
}

Result<Ok> Trajectory::skip() {
  if (!has_next_) return Ok{};
  if (Result<Ok> checked = check_strictly(); !checked) return checked;
  chain_ = next_event_->at("chain").as_string();
  has_next_ = false;
  ++line_;
  return Ok{};
}

/// event_line of the two, without its newline.
bool Trajectory::is_next_line(const std::string& canonical, const std::string& chain) const {
  constexpr std::string_view before = ",\"chain\":\"";
  constexpr std::string_view ending = "\"}";
  std::string_view line = next_line_;
  const auto take = [&](std::string_view part) {
    const bool begins_so = line.starts_with(part);
    line.remove_prefix(begins_so ? part.size() : 0);
    return begins_so;
  };
  return take(std::string_view(canonical).substr(0, canonical.size() - 1)) && take(before) &&
         take(chain) && take(ending) && line.empty();
}

const json::value* Trajectory::recorded_value(const json::object& event) const {
  const json::value* value = has_next_ ? parser_->event() : nullptr;
  return value && &value->get_object() == &event ? value : nullptr;
}

std::optional<Interruption> Trajectory::put(const json::object& event) {
  return put(event, canonical_json(event));
}

std::optional<Interruption> Trajectory::put_recorded() {
  return put(*next_event_, canonical_json(*next_event_, "chain"));
}

std::optional<Interruption> Trajectory::put(const json::object& event,
                                            const std::string& canonical) {
  std::string chain = next_chain(chain_, canonical);
  const Result<const json::object*> recorded = peek();
  if (!recorded) return Interruption{Interruption::Kind::bad_file, recorded.error().message};
  if (*recorded) {
    if (!is_next_line(canonical, chain)) return difference(event, canonical);
    has_next_ = false;
  } else if (output_ < 0) {
    return not_as_expected(event_title(event));
  } else if (auto failure = append(event_line(canonical, chain))) {
    return failure;
  }
  chain_ = std::move(chain);
  ++line_;
  return std::nullopt;
}

Interruption Trajectory::not_as_expected(const std::string& expected_title) {
  const std::string where = path_.string() + ": ";
  if (!has_next_) {
    return {Interruption::Kind::mismatch, where + "ends after line " + std::to_string(line_) +
                                              ", where the search goes on with " + expected_title +
                                              ": truncated, or not finished"};
  }
  if (const Result<Ok> checked = check_strictly(); !checked) {
    return {Interruption::Kind::bad_file, checked.error().message};
  }
  return {Interruption::Kind::mismatch,
          where + "line " + std::to_string(line_ + 1) + ": expected " + expected_title +
              ", found " + event_title(*next_event_) +
              ": the file was reordered, lost lines, or was made by another search\n  recorded: " +
              one_line(next_line_, shown_bytes)};
}

Interruption Trajectory::difference(const json::object& expected, const std::string& canonical) {
  if (const Result<Ok> checked = check_strictly(); !checked) {
    return {Interruption::Kind::bad_file, checked.error().message};
  }
  const std::string where = this->where() + ": ";
  if (event_title(*next_event_) != event_title(expected)) {
    Interruption interruption = not_as_expected(event_title(expected));
    interruption.message += "\n  replayed: " + one_line(canonical, shown_bytes);
    return interruption;
  }
  const std::string recorded = canonical_json(without_chain(*next_event_));
  if (recorded == canonical) {
    const json::value* chain = next_event_->if_contains("chain");
    return {
        Interruption::Kind::mismatch,
        where + event_title(expected) +
            " was edited after it was recorded: its content does not belong to its chain value" +
            "\n  recorded: " + one_line(canonical_json(*chain), shown_bytes) + "\n  replayed: \"" +
            next_chain(chain_, canonical) + "\""};
  }
  const auto [ours, theirs] = around_difference(canonical, recorded);
  return {Interruption::Kind::mismatch,
          where + event_title(expected) + " differs from what the search makes of the events " +
              "before it\n  recorded: " + theirs + "\n  replayed: " + ours};
}

std::optional<Interruption> Trajectory::append(const std::string& line) {
  if (write_all(output_, line) && ::fsync(output_) == 0) return std::nullopt;
  return Interruption{Interruption::Kind::failed, system_error(path_, "cannot be written").message};
}

}  // namespace rekernel
