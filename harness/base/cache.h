#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// Something that was found out once and is kept in a file of cache_directory().
struct CacheEntry {
  std::string name;  ///< "cubin/<digest>", "engines/<name>.json"
  std::string content;
};

/// Whether a name is one of the cache's own: a folder and a plain file name.
bool is_cache_name(std::string_view name);

/// The entry's content, with an error if there is none.
Result<std::string> recall(const std::string& name, std::size_t max_bytes);

/// Writes an entry. Without a writable cache, everything works, only slower.
Result<Ok> remember(const CacheEntry& entry);

/// From here on this process keeps its entries for new_cache_entries(), and writes no file. For a
/// child, whose parent then writes what the child found before it met any code of strangers.
void keep_cache_entries_for_parent();

/// The entries since the last call, as fields.
std::string new_cache_entries();

/// Entries whose content was chosen by times: no good where others computed meanwhile.
enum class TimedChoices { kept, dropped };

/// The parent's side: writes the entries of new_cache_entries(). Names that are not the cache's own
/// are left out.
void remember_all(std::string_view fields, TimedChoices choices = TimedChoices::kept);

}  // namespace rekernel
