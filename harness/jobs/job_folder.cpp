#include "harness/jobs/job_folder.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdlib>

#include "harness/base/files.h"
#include "harness/base/json.h"

namespace rekernel {

namespace fs = std::filesystem;

namespace {

constexpr const char* first_word = "rekernel-job";
constexpr std::array folders = {"requests", "results", "batches", "logs"};

/// The payload after a line with its length and its hash.
std::string sealed(const std::string& payload) {
  return std::string(first_word) + " " + std::to_string(payload.size()) + " " +
         sha256_hex(payload) + "\n" + payload;
}

/// Opening the folder again is also what makes a network file system look, as it is mounted by
/// default; asked for by its name, a file may stay unknown for half a minute.
std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    names.insert(at->path().filename().string());
  }
  return names;
}

/// Makes this machine ask the server of a network file system what is in the folder now, also where
/// it is mounted so that listing it does not (nocto): what a machine remembers of a folder ends
/// where it changes the folder itself.
void renew(const fs::path& folder) {
  const fs::path mark = folder / (".look." + random_digits());
  std::error_code ignored;
  if (fs::create_directory(mark, ignored)) fs::remove(mark, ignored);
}

std::set<std::string> names_now_in(const fs::path& folder) {
  renew(folder);
  return names_in(folder);
}

bool is_listed(const fs::path& file) {
  return names_now_in(file.parent_path()).contains(file.filename().string());
}

/// Lists every folder on the way, from the root on: a machine may remember for half a minute that
/// there is no such name on a network file system, until it lists the folder that holds it.
void list_folders_to(const fs::path& path) {
  fs::path at;
  for (const fs::path& part : path.parent_path()) {
    std::error_code ignored;
    fs::directory_iterator(at /= part, ignored);
  }
}

Result<std::string> read_sealed(const fs::path& path) {
  Result<std::string> text = read_file(path);
  if (!text) {
    // This machine may not know of it yet; and what is replaced while it is read, NFS 3 does not
    // keep for who has it open.
    list_folders_to(path);
    text = read_file(path);
  }
  if (!text) return text;
  const std::size_t line = text->find('\n');
  const std::string payload = line == std::string::npos ? "" : text->substr(line + 1);
  if (*text == sealed(payload)) return payload;
  return Error{path.string() + ": expected a whole file; this one is truncated or changed (" +
               std::to_string(text->size()) + " bytes)"};
}

bool is_key(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

fs::path request_path(const fs::path& folder, const std::string& key) {
  return folder / "requests" / key;
}

fs::path result_path(const fs::path& folder, const std::string& key) {
  return folder / "results" / key;
}

std::string node_name() {
  if (const char* name = std::getenv("SLURMD_NODENAME")) return name;
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// A file that is written once, by whoever comes first.
Result<std::string> read_or_write(const fs::path& path, const std::string& content) {
  if (!is_listed(path)) {
    if (Result<Ok> written = write_file_atomically(path, content); !written) {
      return written.error();
    }
  }
  return read_file(path, 4096);
}

}  // namespace

Result<JobFolder> JobFolder::open(const fs::path& path) {
  JobFolder folder;
  std::error_code failed;
  for (const char* name : folders) {
    fs::create_directories(path / name, failed);
    if (failed) return Error{(path / name).string() + ": " + failed.message()};
  }
  folder.path_ = fs::canonical(path, failed);
  if (failed) return Error{path.string() + ": " + failed.message()};
  Result<std::string> token = read_or_write(folder.path_ / "token", random_digits());
  if (!token) return token.error();
  if (token->size() != 16) return Error{(folder.path_ / "token").string() + ": expected 16 digits"};
  folder.token_ = std::move(*token);
  return folder;
}

bool JobFolder::is_used() const {
  return std::any_of(folders.begin(), folders.end(), [&](auto* name) {
    std::error_code failed;
    return !fs::is_empty(path_ / name, failed);
  });
}

void JobFolder::forget_gpu() const {
  std::error_code ignored;
  fs::remove(path_ / "gpu", ignored);
}

Result<Ok> JobFolder::expect_gpu(const std::string& name) const {
  return write_file_atomically(path_ / "gpu", name);
}

void JobFolder::clear() const {
  std::error_code ignored;
  for (const char* name : folders) {
    fs::remove_all(path_ / name, ignored);
    fs::create_directory(path_ / name, ignored);
  }
}

void JobFolder::renew_results() const { renew(path_ / "results"); }

std::set<std::string> JobFolder::logs() const { return names_now_in(path_ / "logs"); }

bool JobFolder::is_seen(const std::string& word) const {
  if (!is_listed(seen())) return false;
  const Result<std::string> text = read_file(seen(), 4096);
  return text && *text == word + "\n";
}

std::string JobFolder::key_of(const Candidate& candidate, const EvaluateOptions& options) {
  return sha256_hex(evaluation_request(candidate, options));
}

Result<std::string> JobFolder::put_request(const Candidate& candidate,
                                           const EvaluateOptions& options) const {
  const std::string payload = evaluation_request(candidate, options);
  const std::string key = sha256_hex(payload);
  Result<Ok> written = write_file_atomically(request_path(path_, key), sealed(payload));
  if (!written) return written.error();
  return key;
}

std::set<std::string> JobFolder::results() const {
  std::set<std::string> keys = names_in(path_ / "results");
  std::erase_if(keys, [](const std::string& name) { return !is_key(name); });
  return keys;
}

Result<JobResult> JobFolder::read_result(const std::string& key) const {
  const fs::path path = result_path(path_, key);
  const Result<std::string> payload = read_sealed(path);
  if (!payload) return payload.error();
  const Result<boost::json::value> json = parse_json(*payload, path.string());
  if (!json) return json.error();
  JsonReader reader(path.string(), *json);
  JobResult result;
  result.node = one_line(reader.required("node").string(256), 256);
  const std::string report = reader.required("report").string();
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  Result<EvaluationReport> parsed = report_from_json(report);
  if (!parsed) return Error{path.string() + ": " + parsed.error().message};
  result.report = std::move(*parsed);
  return result;
}

void JobFolder::remove_result(const std::string& key) const {
  std::error_code ignored;
  fs::remove(result_path(path_, key), ignored);
}

void JobFolder::remove_request(const std::string& key) const {
  std::error_code ignored;
  fs::remove(request_path(path_, key), ignored);
}

std::optional<std::string> JobFolder::refusal(const JobResult& result, const std::string& target,
                                              bool mixed) const {
  const EvaluationReport& report = result.report;
  const std::string node = "node " + result.node + ": ";
  if (const std::string& judge = report.evaluation.harness;
      !judge.empty() && judge != present_judge(report.evaluation)) {
    return node + "its program is another version (judge " + one_line(judge, 64) + ", here " +
           present_judge(report.evaluation) + "): expected this one there too";
  }
  const std::string& own = report.evaluation.target;
  if (!own.empty() && own != target) {
    return node + "its GPU runs " + own + ", the search writes code for " + target;
  }
  if (!report.device || mixed) return std::nullopt;
  const Result<std::string> first = read_or_write(path_ / "gpu", report.device->name);
  if (!first) return first.error().message;
  if (*first == report.device->name) return std::nullopt;
  return node + "its GPU is an " + report.device->name + ", the others' an " + *first +
         ": their times cannot be compared (a search that begins with --mixed-gpus takes both)";
}

Result<Ok> run_job(
    const fs::path& folder, const std::string& key,
    const std::function<EvaluationReport(const Candidate&, const EvaluateOptions&)>& judge) {
  if (!is_key(key)) return Error{"evaluate-job: expected a key of 64 hexadecimal digits"};
  const fs::path to = result_path(folder, key);
  // Not by its name alone: a node may remember one that was refused and removed.
  if (is_listed(to) && read_sealed(to)) return Ok{};
  const Result<std::string> payload = read_sealed(request_path(folder, key));
  if (!payload) return payload.error();
  const auto request = read_evaluation_request(*payload, "evaluation request");
  if (!request) return request.error();
  const EvaluationReport report = judge(request->candidate, request->options);
  const boost::json::object result{{"node", node_name()},
                                   {"report", boost::json::serialize(to_json(report))}};
  return write_file_atomically(to, sealed(boost::json::serialize(result)));
}

}  // namespace rekernel
