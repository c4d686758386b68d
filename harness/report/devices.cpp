// The records of each device: rows, ceilings, fast_p.

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "harness/base/json.h"
#include "harness/claims/claims_record.h"
#include "harness/project/recorded.h"
#include "harness/records/known_devices.h"
#include "harness/records/record.h"
#include "harness/records/report.h"
#include "harness/report/data.h"
#include "replay/report/metrics.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

json::object to_json(const RecordedReference& reference) {
  if (!reference.unavailable.empty()) {
    return {{"id", reference.id}, {"unavailable", reference.unavailable}};
  }
  return {{"id", reference.id},
          {"details", reference.details},
          {"median_ns", reference.median_ns},
          {"percent", reference.percent.value},
          {"low", reference.percent.low},
          {"high", reference.percent.high},
          {"samples_ns", json::value_from(reference.samples_ns)}};
}

json::object row_json(const BenchRow& row, const RecordedReference* strongest) {
  json::array references;
  for (const RecordedReference& one : row.references) references.push_back(to_json(one));
  const RecordedReference* headline = row.headline();
  const Rates rates = achieved_rates(row);
  json::object result{{"problem", row.problem},
                      {"kernel", row.kernel},
                      {"sha256", row.sha256},
                      {"status", to_string(row.status)},
                      {"message", row.message},
                      {"badges", to_json(row.badges)},
                      {"badge_notes", row.badge_notes},
                      {"measured", row.measured},
                      {"median_ns", row.median_ns},
                      {"low_ns", row.low_ns},
                      {"high_ns", row.high_ns},
                      {"ceiling_ns", row.ceiling_ns},
                      {"speed_of_light_ns", row.speed_of_light_ns},
                      {"max_error", row.max_error},
                      {"rms_error", row.rms_error},
                      {"library_max_error", row.library_max_error},
                      {"library_rms_error", row.library_rms_error},
                      {"noise_ppm", row.noise_ppm},
                      {"conditions", to_json(row.conditions)},
                      {"references", std::move(references)},
                      {"samples_ns", json::value_from(row.samples_ns)},
                      {"resources", to_json(row.resources)}};
  if (headline) result["headline"] = headline->id;
  if (strongest) result["strongest"] = strongest->id;
  if (const auto percent = percent_of_ceiling(row)) result["percent_of_ceiling"] = *percent;
  if (const auto percent = percent_of_speed_of_light(row)) {
    result["percent_of_speed_of_light"] = *percent;
  }
  json::array& witnessed = result["witnessed_ns"].emplace_array();
  for (const Witness& witness : row.witnesses) witnessed.push_back(witness.median_ns);
  if (rates.bytes_per_s) result["bytes_per_s"] = *rates.bytes_per_s;
  if (rates.operations_per_s) result["operations_per_s"] = *rates.operations_per_s;
  return result;
}

/// What a row holds that no reader here knows by name, such as a key that is newer than this page.
json::object unnamed_members(const json::value& recorded, const json::object& known) {
  static const std::set<std::string, std::less<>> shown_elsewhere{
      "percent_of_reference", "references", "repeated_headline_ns", "witnesses"};
  json::object rest;
  for (const auto& [key, value] : recorded.get_object()) {
    if (!known.contains(key) && !shown_elsewhere.contains(std::string_view(key))) rest[key] = value;
  }
  // Whether they agree is what they say, and `deterministic` says that.
  if (json::value* evidence = rest.if_contains("evidence"); evidence && evidence->is_object()) {
    if (json::value* digests = evidence->get_object().if_contains("digests");
        digests && digests->is_array()) {
      evidence->get_object()["repeated_inputs"] = digests->get_array().size();
      evidence->get_object().erase("digests");
    }
  }
  return rest;
}

/// fast_p over the problems: of each, the fastest kernel that passed. A step wherever p reaches a
/// speed-up.
json::array fast_p_steps(const Bench& bench) {
  std::map<std::string, TaskResult> best;
  for (const BenchRow& row : bench.rows) {
    TaskResult& task = best[row.problem];
    const RecordedReference* headline = row.headline();
    if (row.status != Status::passed || !headline) continue;
    task.correct = true;
    task.speedup = std::max(task.speedup, headline->percent.value / 100.0);
  }
  std::vector<TaskResult> tasks;
  std::set<double> steps{0.0, 1.0};
  for (const auto& [problem, task] : best) {
    tasks.push_back(task);
    if (task.correct) steps.insert(task.speedup);
  }
  json::array result;
  for (const double p : steps) {
    result.push_back({{"p", p}, {"value", fast_p(tasks, p)}, {"problems", tasks.size()}});
  }
  return result;
}

json::object device_json(const Bench& bench, const json::value& recorded) {
  const std::vector<const RecordedReference*> strongest = strongest_libraries(bench);
  json::array rows;
  for (std::size_t i = 0; i < bench.rows.size(); ++i) {
    json::object row = row_json(bench.rows[i], strongest[i]);
    row["also_recorded"] = unnamed_members(recorded.at("rows").at(i), row);
    rows.push_back(std::move(row));
  }
  json::object ceilings;  // every rate that was measured, by the name that the record gives it
  for (const auto& [key, value] : recorded.at("ceilings").get_object()) ceilings[key] = value;
  // What an unknown device's record claims is shown, and counted nowhere.
  const bool known = find_known_device(bench.device_name) != nullptr;
  return {{"name", bench.device_name},
          {"known", known},
          {"sm", bench.sm},
          {"multiprocessors", bench.multiprocessors},
          {"l2_bytes", bench.l2_bytes},
          {"caption", bench_caption(bench)},
          {"ceilings", std::move(ceilings)},
          {"rows", std::move(rows)},
          {"fast_p", known ? fast_p_steps(bench) : json::array{}}};
}

/// The device's folder below results/, whatever of it can be read.
json::object folder_json(const fs::path& folder, RecordComplaints& complaints) {
  json::object device;
  const fs::path path = folder / "bench.json";
  if (std::error_code ignored; fs::exists(path, ignored)) {
    const Result<Bench> bench = load_record(folder.parent_path().parent_path(), path);
    const Result<json::value> recorded = read_json_file(path);
    if (bench && recorded) {
      device = device_json(*bench, *recorded);
    } else {
      complaints.unreadable(path, bench ? recorded.error().message : bench.error().message);
    }
  } else {
    complaints.missing(path, "no times are recorded for this device");
  }
  device["folder"] = folder.filename().string();
  device["noise"] = report_noise(folder, complaints);
  device["verdicts"] = report_verdicts(folder, complaints);
  device["of_definitions"] = report_problem_records(folder, complaints);
  if (!device.contains("name")) device["name"] = device["folder"];
  return device;
}

/// Pictures lie beside the devices' folders.
bool holds_records(const fs::path& folder) {
  std::error_code ignored;
  const fs::directory_iterator entries(folder, ignored);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.path().extension() == ".json" || entry.path().filename() == "replay";
  });
}

std::vector<fs::path> device_folders(const fs::path& root) {
  const fs::path claims = claims_record_path(root, "any").parent_path();
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root / "results", ignored)) {
    if (entry.path() == claims || !entry.is_directory(ignored)) continue;
    if (holds_records(entry.path())) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::size_t references_timed_on(const json::value& device) {
  std::size_t count = 0;
  if (!device.get_object().contains("rows")) return count;
  for (const json::value& row : device.at("rows").as_array()) {
    count += row.at("references").as_array().size();
  }
  return count;
}

}  // namespace

json::array report_devices(RecordComplaints& complaints) {
  json::array devices;
  for (const fs::path& folder : device_folders(complaints.root())) {
    devices.push_back(folder_json(folder, complaints));
  }
  if (devices.empty()) {
    complaints.missing(complaints.root() / "results", "nothing was measured on any device");
  }
  // First the device on which the kernels were timed beside most, as in the README.
  std::ranges::stable_sort(devices, std::ranges::greater(), references_timed_on);
  return devices;
}

}  // namespace rekernel
