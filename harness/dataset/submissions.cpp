#include "harness/dataset/submissions.h"

#include <boost/json.hpp>
#include <charconv>
#include <sstream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/dataset/dataset_reader.h"
#include "harness/dataset/licenses.h"
#include "harness/measuring/references.h"
#include "harness/problems/catalog.h"
#include "harness/records/record.h"
#include "replay/trajectory/outcome.h"

namespace rekernel {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::size_t most_program_bytes = std::size_t{1} << 20;

/// Either a submission, or why it is left out.
using Entry = std::variant<Submission, LeftOutEntry>;

/// 23 of "problem_23" or "level1" in a path.
std::optional<std::int64_t> number_in_path(const fs::path& path, std::string_view word) {
  for (const fs::path& part : path) {
    const std::string text = part.string();
    if (!text.starts_with(word)) continue;
    std::int64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data() + word.size(), end, number);
    if (code == std::errc() && stop == end) return number;
  }
  return std::nullopt;
}

std::optional<std::int64_t> number_of(JsonReader& reader, const char* key, const fs::path& path,
                                      std::string_view word) {
  constexpr std::int64_t most = 1 << 20;
  if (auto value = reader.optional(key)) return value->integer(0, most);
  return number_in_path(path, word);
}

/// Ours that comes from this problem of KernelBench.
const Problem* kernelbench_problem(std::int64_t level, std::int64_t number) {
  const std::string benchmark = "KernelBench level " + std::to_string(level) + " ";
  for (const Problem& problem : catalog()) {
    if (problem.source.number == number && problem.source.benchmark.starts_with(benchmark)) {
      return &problem;
    }
  }
  return nullptr;
}

std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : one_line(text, 200)) name += c == ' ' ? '_' : c;
  return name;
}

Entry kernelbench_entry(JsonReader& reader, const fs::path& path,
                        const SubmissionOptions& options) {
  const auto level = number_of(reader, "level", path, "level");
  const auto number = number_of(reader, "problem_id", path, "problem_");
  const std::int64_t sample = number_of(reader, "sample_id", path, "sample_").value_or(0);
  std::string text;
  for (const char* key : {"kernel", "kernel_src", "custom_kernel"}) {
    if (auto value = reader.optional(key)) text = value->string(most_program_bytes);
  }
  if (!options.problem && (!level || !number)) {
    reader.fail(
        "expected \"level\" and \"problem_id\", in the entry or in the file's path, or --problem");
    return LeftOutEntry{};
  }
  Submission submission;
  submission.name = "kernelbench/level" + std::to_string(level.value_or(0)) + "/problem_" +
                    std::to_string(number.value_or(0)) + "/sample_" + std::to_string(sample);
  const Problem* problem =
      options.problem ? find_problem(*options.problem) : kernelbench_problem(*level, *number);
  if (!problem) return LeftOutEntry{submission.name, "no problem here is that one of KernelBench"};
  if (text.empty()) return LeftOutEntry{submission.name, "it holds no program"};
  submission.problem = problem->id;
  submission.license = options.license;
  submission.from = path.string();
  submission.kernel = ForeignProgram{std::move(text), std::nullopt};
  return submission;
}

Entry flashinfer_entry(JsonReader& reader, const fs::path& path, const SubmissionOptions& options) {
  const std::string definition = reader.required("definition").string();
  const std::string solution = reader.required("name").string();
  const std::string author = reader.required("author").string();
  JsonReader spec = reader.required("spec");
  const std::string language = spec.required("language").string();
  const std::string entry_point = spec.required("entry_point").string();
  std::vector<std::pair<std::string, std::string>> sources;
  for (JsonReader& source : reader.required("sources").array()) {
    sources.emplace_back(source.required("path").string(),
                         source.required("content").string(most_program_bytes));
  }
  Submission submission;
  submission.name = as_name("flashinfer/" + definition + "/" + solution);
  const Problem* problem = find_problem(options.problem.value_or(definition));
  if (!problem)
    return LeftOutEntry{submission.name, "no problem here is called " + one_line(definition, 100)};
  if (language != "python" && language != "triton") {
    return LeftOutEntry{submission.name,
                        "it is built from " + one_line(language, 40) +
                            " with host code of its own; only Python programs are captured"};
  }
  const std::size_t colons = entry_point.find("::");
  if (sources.size() != 1 || colons == std::string::npos ||
      entry_point.substr(0, colons) != sources.front().first) {
    return LeftOutEntry{submission.name, "it is not one file with its entry point in it"};
  }
  submission.problem = problem->id;
  submission.license = options.license;
  submission.from = path.string() + ", by " + one_line(author, 100);
  submission.kernel =
      ForeignProgram{std::move(sources.front().second), entry_point.substr(colons + 2)};
  return submission;
}

/// Nothing for an entry that holds no kernel: a trace names its solution, and has no code.
Result<std::optional<Entry>> read_entry(const json::value& value, const std::string& where,
                                        const fs::path& path, const SubmissionOptions& options) {
  JsonReader reader(where, value);
  std::optional<Entry> entry;
  if (!value.is_object()) {
    reader.expect("an object");
  } else if (reader.has("definition") && reader.has("solution")) {
    return std::optional<Entry>();
  } else if (reader.has("definition")) {
    entry = flashinfer_entry(reader, path, options);
  } else if (reader.has("kernel") || reader.has("kernel_src") || reader.has("custom_kernel")) {
    entry = kernelbench_entry(reader, path, options);
  } else {
    reader.fail(
        "neither a sample of KernelBench (\"kernel\"), nor a solution of FlashInfer "
        "(\"definition\", \"sources\")");
  }
  if (auto error = reader.error()) return *error;
  return entry;
}

/// The entries of a file: one value, an array of them, or a line each.
Result<std::vector<json::value>> entries_of(const fs::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  std::vector<json::value> values;
  if (path.extension() == ".jsonl") {
    std::istringstream lines(*text);
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      Result<json::value> value =
          parse_json(line, path.string() + ": line " + std::to_string(++number));
      if (!value) return value.error();
      values.push_back(std::move(*value));
    }
    return values;
  }
  Result<json::value> value = parse_json(*text, path.string());
  if (!value) return value.error();
  if (const json::array* array = value->if_array()) {
    return std::vector<json::value>(array->begin(), array->end());
  }
  values.push_back(std::move(*value));
  return values;
}

Result<Submissions> read_dataset(const fs::path& path, const SubmissionOptions& options) {
  const Result<std::vector<ListedRow>> listed = list_dataset(path);
  if (!listed) return listed.error();
  std::vector<std::string> ids;
  for (const ListedRow& row : *listed) ids.push_back(row.id);
  Result<std::vector<DatasetRow>> rows = read_dataset_rows(path, ids);
  if (!rows) return rows.error();
  Submissions submissions;
  for (DatasetRow& row : *rows) {
    Submission submission;
    submission.name = as_name(row.listed.name);
    submission.from = path.filename().string() + ": " + row.listed.id;
    submission.license = row.license.empty() ? options.license : row.license;
    submission.problem = row.candidate.problem;
    submission.kernel = std::move(row.candidate);
    submissions.kernels.push_back(std::move(submission));
  }
  return submissions;
}

Result<Ok> check_licenses(const Submissions& submissions) {
  for (const Submission& one : submissions.kernels) {
    if (find_license(one.license)) continue;
    const std::string said =
        one.license.empty() ? "none is named (--license)" : one_line(one.license, 100);
    return Error{one.from + ": licence: " + said + "; expected one of " + known_licenses()};
  }
  return Ok{};
}

}  // namespace

Result<Submissions> read_submissions(const fs::path& path, const SubmissionOptions& options) {
  if (options.problem && !find_problem(*options.problem)) return unknown_problem(*options.problem);
  std::error_code ignored;
  Submissions submissions;
  if (fs::is_directory(path, ignored)) {
    Result<Submissions> read = read_dataset(path, options);
    if (!read) return read.error();
    submissions = std::move(*read);
  } else {
    const Result<std::vector<json::value>> entries = entries_of(path);
    if (!entries) return entries.error();
    for (std::size_t i = 0; i < entries->size(); ++i) {
      const std::string where = path.string() + ": entry " + std::to_string(i + 1);
      Result<std::optional<Entry>> entry = read_entry((*entries)[i], where, path, options);
      if (!entry) return entry.error();
      if (!*entry) continue;
      if (auto* submission = std::get_if<Submission>(&**entry)) {
        submissions.kernels.push_back(std::move(*submission));
      } else {
        submissions.left_out.push_back(std::get<LeftOutEntry>(std::move(**entry)));
      }
    }
  }
  if (Result<Ok> checked = check_licenses(submissions); !checked) return checked.error();
  return submissions;
}

Result<JudgedSubmission> judge_submission(const Submission& submission, SubmissionJudge& judge) {
  ImportedKernel kernel;
  kernel.name = submission.name;
  kernel.from = submission.from;
  kernel.license = submission.license;
  if (const auto* program = std::get_if<ForeignProgram>(&submission.kernel)) {
    Result<Candidate> captured = judge.capture(*program, submission.problem);
    if (!captured) return JudgedSubmission{std::nullopt, captured.error().message};
    kernel.candidate = std::move(*captured);
    kernel.program = program->text;
  } else {
    kernel.candidate = std::get<Candidate>(submission.kernel);
  }
  EvaluateOptions options;
  options.device = judge.device;
  options.references = headline_reference_ids(kernel.candidate.problem);
  const EvaluationReport report = judge.launcher.evaluate(kernel.candidate, options);
  if (!report.failure.empty()) return Error{submission.name + ": " + report.failure};
  kernel.evaluation = report.evaluation;
  kernel.record = recorded_evaluation(report.evaluation, judge.device_name, judge.toolchain);
  kernel.record["measured"] = today();
  return JudgedSubmission{std::move(kernel), ""};
}

}  // namespace rekernel
