#include "harness/project/extract.h"

#include <algorithm>
#include <boost/json.hpp>

#include "harness/candidate/code.h"
#include "harness/evaluation/speed_of_light.h"
#include "harness/measuring/bench.h"
#include "harness/problems/catalog.h"
#include "harness/project/root.h"
#include "replay/playback/recorded_bench.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

Result<const ReplayedCandidate*> find_candidate(const ReplayedSearch& search,
                                                const std::string& id) {
  const auto found = std::find_if(search.candidates.begin(), search.candidates.end(),
                                  [&](const auto& one) { return one.id == id; });
  if (found == search.candidates.end() || !found->candidate) {
    return Error{search.header.name + ": no candidate \"" + id + "\""};
  }
  return &*found;
}

/// The candidate under another name. Its hash is the same: the name does not decide what runs.
Result<Candidate> renamed(const Candidate& candidate, const std::string& name) {
  Candidate other = candidate;
  other.name = name;
  // The name comes from the command line: let the one validation judge it.
  return parse_candidate(candidate_json(other), candidate.program.source, "--name");
}

/// A row stands for a kernel of generated/: there and nowhere else is its folder.
Result<fs::path> parent_folder(const ExtractOptions& options, const std::string& problem) {
  if (!options.record) return options.to.value_or(".");
  const fs::path committed = project_root() / "generated" / problem;
  if (options.to && fs::weakly_canonical(*options.to) != fs::weakly_canonical(committed)) {
    return Error{"--record: expected --to " + committed.string() + ", or no --to"};
  }
  return committed;
}

/// The file that is there knows its device; a new one learns of it from the search's header.
Result<Ok> complete_device(Bench& bench, const Header& header) {
  const fs::path path = bench_path(project_root(), bench.device_name);
  if (fs::exists(path)) {
    const Result<Bench> recorded = load_bench(path);
    if (!recorded) return recorded.error();
    note_device(bench, *recorded);
  } else if (bench.multiprocessors == 0) {
    return Error{path.string() + " does not exist, and the search was made on " +
                 header.device.name + ", not on " + bench.device_name +
                 "; measure with `rekernel bench --record`"};
  }
  // A search from before there was this bound kept none.
  for (BenchRow& row : bench.rows) {
    row.speed_of_light_ns = speed_of_light_ns(*find_problem(row.problem), device_of(bench));
  }
  return Ok{};
}

Result<Bench> measurement_to_record(const ReplayedSearch& search,
                                    const ReplayedCandidate& candidate, const std::string& kernel) {
  Result<Bench> bench = recorded_bench(search, candidate, kernel);
  if (!bench) return bench;
  if (Result<Ok> known = complete_device(*bench, search.header); !known) return known.error();
  return bench;
}

std::string recorded_text(const fs::path& path, const ReplayedCandidate& candidate,
                          const Bench& bench) {
  std::string text = "recorded in " + path.string();
  if (!candidate.record.contains("measured")) {
    text += "; the search kept no date, so the row has today's, " + bench.rows.front().measured;
  }
  return text + "\nnext: rekernel report --readme && rekernel verify\n";
}

}  // namespace

Result<std::string> extract_candidate(const ReplayedSearch& search, const ExtractOptions& options) {
  const Result<const ReplayedCandidate*> found = find_candidate(search, options.id);
  if (!found) return found.error();
  const ReplayedCandidate& replayed = **found;
  Result<Candidate> candidate = *replayed.candidate;
  if (options.name) candidate = renamed(*replayed.candidate, *options.name);
  if (!candidate) return candidate.error();
  const Result<fs::path> parent = parent_folder(options, candidate->problem);
  if (!parent) return parent.error();
  const fs::path folder = *parent / candidate->name;
  if (fs::exists(folder)) return Error{folder.string() + " exists already"};
  if (options.record) {
    if (const Result<fs::path> own = own_project(); !own) return own.error();
  }
  // Nothing is written before everything that can be wrong was looked at.
  std::optional<Bench> bench;
  if (options.record) {
    Result<Bench> measured = measurement_to_record(search, replayed, candidate->name);
    if (!measured) return measured.error();
    bench = std::move(*measured);
  }
  if (Result<Ok> written = write_candidate(folder, *candidate); !written) return written.error();
  std::string told = "wrote " + folder.string() + "\n";
  if (bench) {
    const Result<fs::path> path = record_bench(project_root(), *bench);
    if (!path) return path.error();
    told += recorded_text(*path, replayed, *bench);
  }
  return told;
}

}  // namespace rekernel
