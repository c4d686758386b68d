// The data set's part of the report: how many rows there are of what.
#include "harness/dataset/dataset.h"

#include "harness/project/unfinished_searches.h"
#include "harness/report/data.h"

namespace rekernel {

boost::json::value report_dataset(RecordComplaints& complaints) {
  MakeUp made_of;
  DatasetSources sources;
  sources.root = complaints.root();
  std::vector<std::string> left_out;
  sources.trajectories = finished_trajectories(sources.root, left_out);
  sources.differences = Differences::left_out;
  const auto put = put_all_rows(sources, made_of);
  if (put) return made_of.json();
  // What cannot be read is complained of where it is shown; only then is nothing new said here.
  if (!complaints.any_unreadable()) {
    complaints.missing(sources.root / "trajectories",
                       "no data set can be made of the records: " + put.error().message);
  }
  return nullptr;
}

}  // namespace rekernel
