#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

struct Published;

/// What is wrong with the project's records. The pages name it and show the rest.
struct Complaint {
  std::string file;  ///< from the root
  std::string message;
  bool unreadable = false;  ///< otherwise something is missing, or not up to date
};

/// Collects complaints; paths in them count from the project's root.
class RecordComplaints {
 public:
  explicit RecordComplaints(std::filesystem::path root) : root_(std::move(root)) {}

  void unreadable(const std::filesystem::path& file, const std::string& message);
  void missing(const std::filesystem::path& file, const std::string& message);

  const std::vector<Complaint>& all() const { return all_; }
  bool any_unreadable() const;
  const std::filesystem::path& root() const { return root_; }
  std::string from_root(const std::filesystem::path& path) const;

 private:
  void add(const std::filesystem::path& file, const std::string& message, bool unreadable);

  std::filesystem::path root_;
  std::vector<Complaint> all_;
};

/// All that the pages of `report --html` show, read by the readers of the records, with every
/// figure that is derived from them. What cannot be read is left out and complained of.
boost::json::object report_data(RecordComplaints& complaints);

/// Its parts. What was measured on each device, first the one with most references.
boost::json::array report_devices(RecordComplaints& complaints);
/// Every problem: its file, what is made of it, and whether the charts show it (the published ones
/// and those `with_kernels`). `published` may be null.
boost::json::array report_problems(const Published* published,
                                   const std::set<std::string>& with_kernels);
/// One device's records of all definitions: `definitions`, `mutants`; empty without a record.
boost::json::object report_problem_records(const std::filesystem::path& folder,
                                           RecordComplaints& complaints);
/// Recorded searches, replayed exactly, with their code and its changes.
boost::json::array report_searches(RecordComplaints& complaints);
/// Studies of which a search has come to its end, with what their searches show together.
boost::json::array report_studies(RecordComplaints& complaints);
/// What a data set of the records would be made of (rekernel dataset); null where one cannot be
/// made.
boost::json::value report_dataset(RecordComplaints& complaints);
/// Other people's claims beside what was measured, a record each.
boost::json::array report_claims(RecordComplaints& complaints);
/// Cheats, mutants and honest kernels: what they are, and what must become of them.
boost::json::object report_gallery(RecordComplaints& complaints);
/// One device's verdicts on them, and its errors beside the bounds; null without a record.
boost::json::value report_verdicts(const std::filesystem::path& folder,
                                   RecordComplaints& complaints);
/// One device's A/A experiments, without the single samples.
boost::json::array report_noise(const std::filesystem::path& folder, RecordComplaints& complaints);

/// A source or a plan as it lies in a folder: what is not UTF-8 becomes U+FFFD, since JSON cannot
/// hold it. Empty, with a complaint, where it cannot be read.
std::string text_for_report(const std::filesystem::path& path, RecordComplaints& complaints);
/// JSON has neither infinity nor NaN: null stands for both.
boost::json::value finite_or_null(double value);

}  // namespace rekernel
