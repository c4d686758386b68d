#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/evaluation/evaluation.h"
#include "ops/result.h"

namespace rekernel {

/// A fixture of tests/adversarial: a candidate folder with `expected.json`, which says what must
/// become of it.
struct Cheat {
  std::filesystem::path folder;
  std::string cheat;  ///< one line: what it does
  Status status = Status::passed;
  /// What it may get as well: which check speaks first can depend on where the driver puts things
  /// and on when the GPU changes contexts.
  std::vector<Status> other_statuses;
  std::string caught_by;                   ///< one line: what stops it, or why it gains nothing
  std::string source;                      ///< where it was seen; empty if it is our own
  Badges without_badges;                   ///< badges that it must not get
  std::optional<std::int64_t> deadline_s;  ///< run deadline of its test, where the default is long
  std::optional<std::int64_t> compile_deadline_s;  ///< the same where the compiler never ends
  /// The least median, for cheats that may pass and must not gain: what they do is in the time.
  std::optional<std::int64_t> no_faster_than_ns;
  /// The largest share of the headline reference, for cheats that pass and must not slow others.
  std::optional<std::int64_t> no_more_than_percent;
  /// The least that its published error has to be, as a share of the tolerance, for cheats that
  /// pass and are not always as wrong as in the runs that are timed.
  std::optional<double> worst_error_at_least;

  bool allows(Status verdict) const;
};

/// The fixtures' folders below `root`/tests/adversarial, sorted.
Result<std::vector<std::filesystem::path>> cheat_folders(const std::filesystem::path& root);
/// One of them. The error names the file and the key.
Result<Cheat> load_cheat(const std::filesystem::path& folder);
/// Every fixture, by name; the first that cannot be read is the error.
Result<std::vector<Cheat>> load_cheats(const std::filesystem::path& root);

/// tests/adversarial/README.md with the table between its markers made again from the fixtures.
Result<std::string> gallery_page(const std::filesystem::path& root);

}  // namespace rekernel
