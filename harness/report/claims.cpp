#include <cmath>

#include "harness/claims/claims_record.h"
#include "harness/report/data.h"

namespace rekernel {

namespace json = boost::json;

namespace {

json::object comparison_json(const ClaimComparison& comparison) {
  json::object result{
      {"quantity", comparison.claimed.quantity}, {"value", comparison.claimed.value},
      {"unit", comparison.claimed.unit},         {"over", comparison.claimed.over},
      {"reference", comparison.reference},       {"holds", comparison.holds}};
  if (comparison.measured) {
    result["measured"] = {{"value", finite_or_null(comparison.measured->value)},
                          {"low", finite_or_null(comparison.measured->low)},
                          {"high", finite_or_null(comparison.measured->high)}};
  }
  return result;
}

json::object row_json(const ClaimRow& row) {
  json::object axes;
  for (const auto& [axis, size] : row.claim.axes) axes[axis] = size;
  json::array references, comparisons;
  for (const ClaimReference& one : row.references) {
    references.push_back({{"id", one.id},
                          {"unavailable", one.unavailable},
                          {"median_ns", one.median_ns},
                          {"percent", finite_or_null(one.percent.value)},
                          {"low", finite_or_null(one.percent.low)},
                          {"high", finite_or_null(one.percent.high)}});
  }
  for (const ClaimComparison& one : compare(row)) comparisons.push_back(comparison_json(one));
  return {{"name", row.claim.name},
          {"problem", row.claim.problem},
          {"axes", std::move(axes)},
          {"file", row.claim.source.file},
          {"line", row.claim.source.line},
          {"sha256", row.claim.source.sha256},
          {"outcome", to_string(row.outcome)},
          {"reason", row.reason},
          {"status", row.status},
          {"badges", json::value_from(row.badges)},
          {"libraries", json::value_from(row.libraries)},
          {"note", row.note},
          {"median_ns", row.median_ns},
          {"own_device_ns", row.own_device_ns},
          {"own_call_ns", row.own_call_ns},
          {"tolerance_share", finite_or_null(row.tolerance_share)},
          {"rms_error", finite_or_null(row.rms_error)},
          {"device", row.device},
          {"references", std::move(references)},
          {"claimed", std::move(comparisons)}};
}

}  // namespace

json::array report_claims(RecordComplaints& complaints) {
  std::vector<Error> errors;
  json::array records;
  for (const ClaimsRecord& record : read_claims_records(complaints.root(), errors)) {
    json::array rows;
    for (const ClaimRow& row : record.rows) rows.push_back(row_json(row));
    records.push_back({{"name", record.file.name},
                       {"title", record.file.title},
                       {"repository", record.file.repository},
                       {"revision", record.file.revision},
                       {"licence", record.file.licence},
                       {"device", record.file.device},
                       {"method", record.file.method},
                       {"rows", std::move(rows)}});
  }
  for (const Error& error : errors) {
    complaints.unreadable(complaints.root() / "results" / "claims", error.message);
  }
  return records;
}

}  // namespace rekernel
