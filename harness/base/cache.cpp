#include "harness/base/cache.h"

#include <algorithm>
#include <mutex>

#include "harness/base/fields.h"
#include "harness/base/files.h"

namespace rekernel {

namespace {

constexpr std::string_view choices_folder = "engines/";

/// The process's one decision where its entries go. Programs compile in several threads.
struct Kept {
  std::mutex mutex;
  bool for_parent = false;
  std::string fields;
};

Kept& kept() {
  static Kept state;
  return state;
}

bool is_plain(std::string_view text) {
  return !text.empty() && text.front() != '.' && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace

bool is_cache_name(std::string_view name) {
  for (const std::string_view folder :
       {std::string_view("cubin/"), std::string_view("imports/"), choices_folder}) {
    if (name.starts_with(folder)) return is_plain(name.substr(folder.size()));
  }
  return false;
}

Result<std::string> recall(const std::string& name, std::size_t max_bytes) {
  return read_file(cache_directory() / name, max_bytes);
}

Result<Ok> remember(const CacheEntry& entry) {
  {
    const std::lock_guard lock(kept().mutex);
    if (kept().for_parent) {
      append_field(kept().fields, entry.name);
      append_field(kept().fields, entry.content);
      return Ok{};
    }
  }
  return write_file_atomically(cache_directory() / entry.name, entry.content);
}

void keep_cache_entries_for_parent() {
  const std::lock_guard lock(kept().mutex);
  kept().for_parent = true;
}

std::string new_cache_entries() {
  const std::lock_guard lock(kept().mutex);
  return std::exchange(kept().fields, {});
}

void remember_all(std::string_view fields, TimedChoices choices) {
  while (true) {
    std::optional<std::string> name = take_field(fields);
    std::optional<std::string> content = take_field(fields);
    if (!name || !content) return;
    if (choices == TimedChoices::dropped && name->starts_with(choices_folder)) continue;
    if (is_cache_name(*name)) (void)remember({std::move(*name), std::move(*content)}).ok();
  }
}

}  // namespace rekernel
