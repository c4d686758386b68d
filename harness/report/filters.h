#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "harness/candidate/status.h"
#include "harness/records/record.h"
#include "harness/terminal/arguments.h"
#include "ops/problem.h"

namespace rekernel {

/// Which of the problems, kernels and results somebody wants to see. Of one kind any will do, but a
/// row has all the badges; a kind that names none takes all.
struct Filters {
  std::vector<std::string> problems;
  std::vector<std::string> groups;
  std::vector<std::string> kernels;  ///< "online", or "softmax/online"
  std::vector<std::string> devices;  ///< names or folders of results/
  Badges badges;
  std::vector<Status> statuses;

  bool take_all() const;
  bool name_results() const;  ///< a device, a badge or a status
  bool take(const Problem& problem) const;
  bool take_kernel(const std::string& problem, const std::string& kernel) const;
  bool take_outcome(Status status, const Badges& badges) const;
  /// By problem, kernel and outcome; not by device.
  bool take(const BenchRow& row) const;
};

/// --group, --kernel, --badge and --status.
void add_kernel_filters(boost::program_options::options_description& options);
/// The same with --problem and --on.
void add_filters(boost::program_options::options_description& options);
/// Error where a problem, group, badge or status does not exist.
Result<Filters> chosen_filters(const ParsedArguments& parsed);

/// Records by their paths: results/FOLDER/bench.json.
using PlacedBenches = std::vector<std::pair<std::filesystem::path, Bench>>;

/// Keeps the records of the devices that are asked for. Rows stay, since ranks and strongest
/// libraries are found among all. Error where a device has no record, or no row is taken.
Result<Ok> keep_devices(const Filters& filters, PlacedBenches& benches);
/// The bench with the rows that are taken.
Bench taken_rows(const Filters& filters, const Bench& bench);

}  // namespace rekernel
