#include <algorithm>
#include <iostream>

#include "harness/base/text.h"
#include "harness/cli/results.h"
#include "harness/measuring/bench.h"
#include "harness/project/recorded.h"
#include "harness/records/contradictions.h"
#include "harness/records/known_devices.h"
#include "harness/records/report.h"
#include "harness/records/signature.h"
#include "harness/records/standings.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

bool is_known_signer(const BenchRow& row) {
  return row.signer != Signer{Signer::Kind::unsigned_, ""}.text() &&
         row.signer != Signer{Signer::Kind::unknown, ""}.text();
}

/// Rows that are newer than the recorded ones, and those of kernels that have none yet. A row that
/// somebody known answers for stays, unless the new one is as good or `replace` names it.
Bench news_in(const Bench& brought, const Bench& recorded, const std::vector<std::string>& replace,
              std::string& told) {
  Bench news = brought;
  news.rows.clear();
  for (const BenchRow& row : brought.rows) {
    const std::string kernel = row.problem + "/" + row.kernel;
    const auto same =
        std::find_if(recorded.rows.begin(), recorded.rows.end(), [&](const BenchRow& old) {
          return old.problem == row.problem && old.kernel == row.kernel;
        });
    if (same == recorded.rows.end()) {
      told += kernel + ": new, " + milliseconds(row.median_ns) + " ms\n";
    } else if (row.measured <= same->measured) {
      told += kernel + ": kept: what is recorded is of " + same->measured + ", this of " +
              row.measured + "\n";
      continue;
    } else if (is_known_signer(*same) && !is_known_signer(row) &&
               std::find(replace.begin(), replace.end(), kernel) == replace.end()) {
      told += kernel + ": kept: what is recorded is signed by " + same->signer + ", this is " +
              (row.signature.empty() ? "unsigned" : "of an " + row.signer) + "; --replace " +
              kernel + " takes it all the same\n";
      continue;
    } else {
      const auto difference = difference_text(*same, row);
      told +=
          kernel + ": newer (" + row.measured + ")" + (difference ? ", " + *difference : "") + "\n";
    }
    news.rows.push_back(row);
  }
  return news;
}

/// What is recorded of a device; empty if nothing is.
Result<Bench> recorded_of(const fs::path& root, const std::string& device_name) {
  const fs::path path = bench_path(root, device_name);
  return fs::exists(path) ? load_record(root, path) : Result<Bench>(Bench{});
}

/// Signatures cover the device: one that is another would take them from all rows.
Result<Ok> check_device(const std::string& file, const Bench& brought, const Bench& recorded) {
  if (recorded.device_name.empty()) return Ok{};
  const std::vector<std::string> differences = unlike_device_before(recorded, brought);
  if (differences.empty()) return Ok{};
  return Error{file +
               ": measured on another device than what is recorded: " + joined(differences, "; ")};
}

}  // namespace

int merge_results(const fs::path& root, const std::vector<std::string>& files,
                  const std::vector<std::string>& replace) {
  if (files.empty()) return bad_input({"results merge: expected bench files"});
  Result<PlacedBenches> recorded = all_recorded(root);
  if (!recorded) return bad_input(recorded.error());
  PlacedBenches all = *recorded;
  std::vector<Bench> brought;
  for (const std::string& file : files) {
    Result<Bench> bench = load_record(root, file);
    if (!bench) return bad_input(bench.error());
    const fs::path place = bench_path(root, bench->device_name);
    for (const auto& [path, other] : all) {
      if (bench_path(root, other.device_name) != place) continue;
      if (Result<Ok> same = check_device(file, *bench, other); !same) {
        return bad_input(same.error());
      }
    }
    all.emplace_back(file, *bench);
    brought.push_back(std::move(*bench));
  }
  if (const auto found = contradictions_between(all); !found.empty()) {
    return bad_input({joined(found, "\n")});
  }
  for (const Bench& bench : brought) {
    const Result<Bench> present = recorded_of(root, bench.device_name);
    if (!present) return bad_input(present.error());
    std::string told;
    const Bench news = news_in(bench, *present, replace, told);
    if (!news.rows.empty()) {
      if (Result<fs::path> written = record_bench(root, news); !written) {
        return bad_input(written.error());
      }
    }
    std::cout << bench_path(root, bench.device_name).string() << ":\n" << told;
  }
  return exit_good;
}

}  // namespace rekernel
