#include "harness/claims/claims_record.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/claims/claim_json.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::array outcome_names = {"missing", "not_built", "not_captured", "not_evaluated",
                                      "judged"};

std::optional<ClaimOutcome> outcome_named(std::string_view name) {
  for (std::size_t i = 0; i < outcome_names.size(); ++i) {
    if (name == outcome_names[i]) return static_cast<ClaimOutcome>(i);
  }
  return std::nullopt;
}

namespace record_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace claim_json;

constexpr std::tuple percent{field("value", &Percent::value, real),
                             field("low", &Percent::low, real),
                             field("high", &Percent::high, real)};

constexpr std::tuple reference{
    field("id", &ClaimReference::id, name),
    field("unavailable", &ClaimReference::unavailable, words, unless_empty),
    field("median_ns", &ClaimReference::median_ns, count),
    field("percent", &ClaimReference::percent, Nested{percent})};

constexpr std::tuple row{
    field("claim", &ClaimRow::claim, Nested{claim}),
    field("answer", &ClaimRow::answer, name),
    field("outcome", &ClaimRow::outcome,
          Named<ClaimOutcome>{to_string, outcome_named, "an outcome of a claim"}),
    field("reason", &ClaimRow::reason, words, unless_empty),
    field("status", &ClaimRow::status, name, unless_empty),
    field("badges", &ClaimRow::badges, List{name}, unless_empty),
    field("libraries", &ClaimRow::libraries, List{name}, unless_empty),
    field("note", &ClaimRow::note, words, unless_empty),
    field("median_ns", &ClaimRow::median_ns, count, unless_empty),
    field("low_ns", &ClaimRow::low_ns, count, unless_empty),
    field("high_ns", &ClaimRow::high_ns, count, unless_empty),
    field("own_device_ns", &ClaimRow::own_device_ns, count, unless_empty),
    field("own_call_ns", &ClaimRow::own_call_ns, count, unless_empty),
    field("tolerance_share", &ClaimRow::tolerance_share, real, unless_empty),
    field("rms_error", &ClaimRow::rms_error, real, unless_empty),
    field("references", &ClaimRow::references, List{Nested{reference}}, unless_empty),
    field("harness", &ClaimRow::harness, name, unless_empty),
    field("device", &ClaimRow::device, name, unless_empty)};

}  // namespace record_json

/// The reference that a figure means. "library" is the fastest that is not PyTorch.
const ClaimReference* reference_of(const ClaimRow& row, const std::string& over) {
  const ClaimReference* best = nullptr;
  for (const ClaimReference& one : row.references) {
    if (!one.unavailable.empty() || one.median_ns == 0) continue;
    if (one.id == over) return &one;
    if (over != "library" || one.id.starts_with("pytorch")) continue;
    if (!best || one.median_ns < best->median_ns) best = &one;
  }
  return best;
}

}  // namespace

const char* to_string(ClaimOutcome outcome) {
  return outcome_names.at(static_cast<std::size_t>(outcome));
}

std::string claim_digest(const Claim& claim, const std::string& judge) {
  constexpr std::size_t digits = 16;
  return sha256_hex(claim_text(claim) + "\n" + judge).substr(0, digits);
}

void take_evaluation(const Evaluation& evaluation, ClaimRow& row) {
  row.outcome = ClaimOutcome::judged;
  row.status = to_string(evaluation.status);
  row.reason = evaluation.message;
  row.badges = evaluation.earned_badges().names();
  row.libraries = evaluation.libraries;
  row.harness = evaluation.harness;
  if (evaluation.timing) {
    row.median_ns = evaluation.timing->median_ns;
    row.low_ns = evaluation.timing->low_ns;
    row.high_ns = evaluation.timing->high_ns;
  }
  if (evaluation.errors) {
    row.tolerance_share = evaluation.errors->worst_tolerance_ratio;
    const double truth = evaluation.errors->truth_rms;
    row.rms_error = truth > 0 ? evaluation.errors->rms / truth : 0;
  }
  row.references.clear();
  for (const ReferenceResult& one : evaluation.references) {
    row.references.push_back({one.id, one.unavailable, one.timing.median_ns,
                              one.percent_of_reference.value_or(Percent{})});
  }
}

json::object to_json(const ClaimsRecord& record) {
  json::object result = json_fields::object_of(record.file, claim_json::head);
  json::array rows;
  for (const ClaimRow& row : record.rows) {
    rows.push_back(json_fields::object_of(row, record_json::row));
  }
  result["rows"] = std::move(rows);
  return result;
}

Result<ClaimsRecord> claims_record_from_json(const std::string& text, const std::string& where) {
  const Result<json::value> value = parse_json(text, where);
  if (!value) return value.error();
  JsonReader reader(where, *value);
  ClaimsRecord record;
  for (JsonReader& row : reader.required("rows").array(0, claim_json::most_claims)) {
    record.rows.push_back(json_fields::read_object<ClaimRow>(row, record_json::row));
  }
  json_fields::read_fields(reader, record.file, claim_json::head);
  if (auto error = reader.error()) return *error;
  return record;
}

fs::path claims_record_path(const fs::path& root, const std::string& name) {
  return root / "results" / "claims" / (name + ".json");
}

std::vector<ClaimsRecord> read_claims_records(const fs::path& root, std::vector<Error>& errors) {
  std::vector<fs::path> paths;
  std::error_code status;
  for (fs::directory_iterator it(root / "results" / "claims", status), end; !status && it != end;
       it.increment(status)) {
    // Beside each record lies the list that it answers, <name>.claims.json.
    const std::string name = it->path().filename().string();
    if (name.ends_with(".json") && !name.ends_with(".claims.json")) paths.push_back(it->path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<ClaimsRecord> records;
  for (const fs::path& path : paths) {
    const Result<std::string> text = read_file(path);
    Result<ClaimsRecord> record =
        text ? claims_record_from_json(*text, path.string()) : Result<ClaimsRecord>(text.error());
    if (record) {
      records.push_back(*std::move(record));
    } else {
      errors.push_back(record.error());
    }
  }
  return records;
}

std::vector<ClaimComparison> compare(const ClaimRow& row) {
  std::vector<ClaimComparison> comparisons;
  for (const ClaimedFigure& figure : row.claim.claimed) {
    ClaimComparison comparison{figure, "", std::nullopt, false};
    const bool passed = row.status == to_string(Status::passed);
    if (figure.unit == "x") {
      constexpr double whole = 100;
      if (const ClaimReference* reference = reference_of(row, figure.over)) {
        comparison.reference = reference->id;
        comparison.measured = reference->percent;
        comparison.holds = passed && reference->percent.high >= whole * figure.value;
      }
    } else {
      constexpr double ns_of_ms = 1e6;
      comparison.holds = passed && static_cast<double>(row.low_ns) <= ns_of_ms * figure.value;
    }
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

}  // namespace rekernel
