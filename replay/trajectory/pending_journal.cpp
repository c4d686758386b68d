#include "replay/trajectory/pending_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "replay/trajectory/event.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

Result<PendingJournal> PendingJournal::open(const fs::path& trajectory) {
  PendingJournal journal;
  journal.path_ = trajectory;
  journal.path_ += ".pending";
  std::error_code status;
  if (!fs::exists(journal.path_, status)) return journal;
  Result<std::string> text = read_file(journal.path_, std::size_t{1} << 30);
  if (!text) return text.error();
  std::size_t line_number = 0;
  for (std::size_t begin = 0, end; (end = text->find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string where = journal.path_.string() + ": line " + std::to_string(++line_number);
    Result<json::value> value =
        parse_json(std::string_view(*text).substr(begin, end - begin), where);
    if (!value) return value.error();
    JsonReader reader(where, *value);
    const std::string event = reader.required("event").string(64);
    const std::string id = reader.required("id").string(64);
    std::int64_t attempt = 0;
    if (auto number = reader.optional("attempt")) attempt = number->integer(1, 1000);
    if (auto error = reader.error()) return *error;
    journal.entries_[{event, id, attempt}] = std::move(value->get_object());
    journal.good_bytes_ = end + 1;
  }
  return journal;
}

const json::object* PendingJournal::find(const std::string& event, const std::string& id,
                                         int attempt) const {
  const auto found = entries_.find({event, id, attempt});
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<const json::object*> PendingJournal::entries() const {
  std::vector<const json::object*> list;
  for (const auto& [key, entry] : entries_) list.push_back(&entry);
  return list;
}

Result<Ok> PendingJournal::add(const json::object& entry) {
  const std::string line = canonical_json(entry) + "\n";
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return system_error(path_, "cannot be written");
  const auto offset = static_cast<off_t>(good_bytes_);
  const bool written = ::ftruncate(file, offset) == 0 &&
                       ::lseek(file, offset, SEEK_SET) == offset && write_all(file, line) &&
                       ::fsync(file) == 0;
  const Error error = system_error(path_, "cannot be written");
  ::close(file);
  if (!written) return error;
  good_bytes_ += line.size();
  return Ok{};
}

void PendingJournal::clear() {
  ::unlink(path_.c_str());
  entries_.clear();
  good_bytes_ = 0;
}

}  // namespace rekernel
