#include <algorithm>
#include <boost/json.hpp>
#include <iostream>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/cli/results.h"
#include "harness/records/signature.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

/// What `results sign` is asked to sign: rows and searches are named apart, since both can have one
/// name.
struct ToSign {
  std::vector<std::string> kernels;  ///< "softmax/online"
  std::vector<fs::path> trajectories;
};

Result<ToSign> named_to_sign(const fs::path& root, const std::vector<std::string>& names) {
  constexpr std::string_view folder = "trajectories/";
  ToSign named;
  for (const std::string& name : names) {
    if (name.starts_with(folder)) {
      std::string stem = name.substr(folder.size());
      if (stem.ends_with(".jsonl")) stem.resize(stem.size() - std::string_view(".jsonl").size());
      fs::path path = root / "trajectories" / (stem + ".jsonl");
      if (stem.find('/') != std::string::npos || !fs::is_regular_file(path)) {
        return Error{name + ": no recorded search; expected trajectories/NAME"};
      }
      named.trajectories.push_back(std::move(path));
    } else if (name.find('/') != std::string::npos) {
      named.kernels.push_back(name);
    } else {
      return Error{name + ": expected PROBLEM/KERNEL for a row, or trajectories/" + name +
                   " for a recorded search"};
    }
  }
  return named;
}

/// The record that has the row: the only one, or that of `device`, a folder of results/.
Result<std::size_t> record_with(const PlacedBenches& benches, const std::string& kernel,
                                const std::string& device) {
  std::vector<std::string> devices;
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < benches.size(); ++i) {
    const auto& [path, bench] = benches[i];
    const std::string name = path.parent_path().filename().string();
    if (!device.empty() && name != device) continue;
    const auto row = std::find_if(bench.rows.begin(), bench.rows.end(), [&](const BenchRow& one) {
      return one.problem + "/" + one.kernel == kernel;
    });
    if (row == bench.rows.end()) continue;
    if (!row->signature.empty()) {
      return Error{kernel + ": its row on " + name + " has a signature (" + row->signer +
                   "); measure it again to sign it again"};
    }
    devices.push_back(name);
    found = i;
  }
  if (devices.size() > 1) {
    return Error{kernel + ": measured on " + joined(devices, " and ") +
                 "; --on says which of them you measured"};
  }
  if (!found) {
    return Error{kernel + ": no row" + (device.empty() ? " in results/" : " in results/" + device)};
  }
  return *found;
}

}  // namespace

int sign_results(const fs::path& root, const std::vector<std::string>& names,
                 const ParsedArguments& parsed) {
  if (!parsed.has("key")) return bad_input({"results sign: expected --key FILE"});
  if (names.empty()) {
    return bad_input(
        {"results sign: expected what you measured: rows as PROBLEM/KERNEL, searches "
         "as trajectories/NAME"});
  }
  const fs::path key = parsed.get<std::string>("key");
  const std::vector<std::string> devices =
      parsed.has("on") ? parsed.get<std::vector<std::string>>("on") : std::vector<std::string>{};
  if (devices.size() > 1) return bad_input({"results sign: expected one --on"});
  const std::string device = devices.empty() ? "" : devices.front();
  const Result<ToSign> named = named_to_sign(root, names);
  if (!named) return bad_input(named.error());
  Result<PlacedBenches> benches = all_recorded(root);
  if (!benches) return bad_input(benches.error());
  std::set<std::size_t> touched;
  for (const std::string& kernel : named->kernels) {
    const Result<std::size_t> record = record_with(*benches, kernel, device);
    if (!record) return bad_input(record.error());
    touched.insert(*record);
  }
  std::size_t signatures = 0;
  for (const std::size_t record : touched) {
    auto& [path, bench] = (*benches)[record];
    for (const std::string& kernel : named->kernels) {
      const Result<int> made = sign_row(bench, key, kernel);
      if (!made) return bad_input(made.error());
      signatures += static_cast<std::size_t>(*made);
    }
    if (Result<Ok> written = write_file_atomically(path, pretty_json(to_json(bench))); !written) {
      return bad_input(written.error());
    }
  }
  for (const fs::path& trajectory : named->trajectories) {
    const Result<std::string> text = read_file(trajectory);
    if (!text) return bad_input(text.error());
    const Result<std::string> signature = sign(*text, key);
    if (!signature) return bad_input(signature.error());
    if (Result<Ok> written = write_file_atomically(trajectory.string() + ".sig", *signature);
        !written) {
      return bad_input(written.error());
    }
    ++signatures;
  }
  std::cout << counted(signatures, "signature") << "\n";
  return exit_good;
}

}  // namespace rekernel
