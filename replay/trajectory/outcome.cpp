#include "replay/trajectory/outcome.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <limits>

#include "harness/base/text.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::size_t max_message_bytes = 1000;
constexpr std::size_t max_log_bytes = 4000;
constexpr std::int64_t largest_integer = std::numeric_limits<std::int64_t>::max();

/// Four significant digits, the same in every locale.
std::string real_text(double value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::general, 4)
                       .ptr;
  return std::string(buffer.data(), end);
}

void put_reals_as_text(json::value& value) {
  if (value.is_double()) {
    value = json::string(real_text(value.get_double()));
  } else if (auto* array = value.if_array()) {
    for (json::value& entry : *array) put_reals_as_text(entry);
  } else if (auto* object = value.if_object()) {
    for (auto& member : *object) put_reals_as_text(member.value());
  }
}

/// What recorded_evaluation, the search and the chain put beside the evaluation's own members.
constexpr std::array beside_the_evaluation = {"event",     "id",       "device",
                                              "toolchain", "measured", "chain"};

/// Texts that hold no number stay, and are found wanting by who reads the evaluation.
void put_texts_as_reals(json::object& object) {
  for (auto& member : object) {
    const json::string* text = member.value().if_string();
    if (!text) continue;
    double real = 0;
    const char* const end = text->data() + text->size();
    const auto [stop, code] = std::from_chars(text->data(), end, real);
    if (code == std::errc() && stop == end) member.value() = real;
  }
}

/// The members of an evaluation, or of one of its references, that recording changed.
void restore_members(json::object& object) {
  for (const char* key : {"errors", "percent"}) {
    json::value* reals = object.if_contains(key);
    if (reals && reals->is_object()) put_texts_as_reals(reals->get_object());
  }
  json::value* timing = object.if_contains("timing");
  if (!timing || !timing->is_object()) return;
  // A count stands for the samples in recordings from before they were kept.
  if (timing->get_object().erase("samples") > 0) timing->get_object()["samples_ns"] = json::array();
}

void read_resources(JsonReader reader, Outcome& outcome) {
  constexpr std::int64_t max_spills = largest_integer >> 24;  // an array has 2^20 entries at most

  for (JsonReader& kernel : reader.array()) {
    const std::int64_t registers = kernel.required("registers").integer(0, 1 << 16);
    outcome.registers = std::max(outcome.registers, registers);
    if (auto stack = kernel.optional("stack_bytes")) {
      outcome.stack_bytes = std::max(outcome.stack_bytes, stack->integer(0, largest_integer));
    }
    outcome.spill_bytes += kernel.required("spill_store_bytes").integer(0, max_spills) +
                           kernel.required("spill_load_bytes").integer(0, max_spills);
  }
}

void read_headline(JsonReader reader, Outcome& outcome) {
  for (JsonReader& reference : reader.array()) {
    const std::string id = reference.required("id").string();
    if (!reference.required("unavailable").string().empty()) continue;
    outcome.reference = id;
    outcome.reference_ns =
        reference.required("timing").required("median_ns").integer(0, largest_integer >> 16);
    return;
  }
}

std::string error_of(JsonReader reader, const char* key) {
  JsonReader value = reader.required(key);
  return value.raw().is_null() ? "infinite" : value.string(64);
}

}  // namespace

json::object recorded_evaluation(const Evaluation& evaluation, const std::string& device,
                                 const std::string& toolchain) {
  Evaluation shown = evaluation;
  shown.message = printable(shown.message, max_message_bytes);
  shown.compile_log = printable(shown.compile_log, max_log_bytes);
  shown.badge_notes = printable(shown.badge_notes, max_message_bytes);
  json::value record = to_json(shown);
  put_reals_as_text(record);
  json::object& object = record.get_object();
  object["device"] = device;
  object["toolchain"] = toolchain;
  return std::move(object);
}

Result<Evaluation> evaluation_from_record(const json::object& record, const std::string& where) {
  std::array<unsigned char, 8192> room;
  json::monotonic_resource memory(room.data(), room.size());
  json::object evaluation(record, &memory);
  for (const char* key : beside_the_evaluation) evaluation.erase(key);
  restore_members(evaluation);
  if (json::value* evidence = evaluation.if_contains("evidence");
      evidence && evidence->is_object()) {
    put_texts_as_reals(evidence->get_object());
    json::value* stress = evidence->get_object().if_contains("stress");
    if (stress && stress->is_object()) put_texts_as_reals(stress->get_object());
  }
  json::value* references = evaluation.if_contains("references");
  if (references && references->is_array()) {
    for (json::value& reference : references->get_array()) {
      if (reference.is_object()) restore_members(reference.get_object());
    }
  }
  const json::value value = std::move(evaluation);
  return evaluation_from_json(JsonReader(where, value));
}

std::string device_in(const json::object& record) {
  const json::value* device = record.if_contains("device");
  return device && device->is_string() ? std::string(device->get_string()) : "";
}

json::object recorded_invalid_reply(const std::string& problem, const std::string& message) {
  return {{"problem", problem},
          {"status", to_string(Status::invalid_plan)},
          {"message", printable(message, max_message_bytes)}};
}

std::int64_t Outcome::permille_of_reference() const {
  if (!passed() || reference_ns <= 0 || *median_ns <= 0) return 0;
  return (reference_ns * 1000 + *median_ns / 2) / *median_ns;
}

std::int64_t Outcome::cost(bool gpus_differ) const {
  if (!gpus_differ) return *median_ns;
  if (reference_ns <= 0) return largest_integer;
  constexpr double billion = 1e9;
  const double share = static_cast<double>(*median_ns) / static_cast<double>(reference_ns);
  return static_cast<std::int64_t>(std::min(billion * share, 1e18));
}

Result<Outcome> outcome_from_record(const json::value& record, const std::string& where) {
  JsonReader reader(where, record);
  Outcome outcome;
  JsonReader status = reader.required("status");
  if (const auto known = status_from_string(status.string(64))) {
    outcome.status = *known;
  } else {
    status.expect("a status");
  }
  outcome.message = reader.required("message").string();
  if (auto timing = reader.optional("timing")) {
    outcome.median_ns = timing->required("median_ns").integer(1, largest_integer >> 16);
  }
  if (auto references = reader.optional("references")) read_headline(*references, outcome);
  if (auto errors = reader.optional("errors")) {
    outcome.max_error = error_of(*errors, "max_abs");
    outcome.rms_error = error_of(*errors, "rms");
  }
  if (auto resources = reader.optional("resources")) read_resources(*resources, outcome);
  if (auto log = reader.optional("compile_log")) outcome.compile_log = log->string();
  for (const BadgeDescription& one : badge_table) {
    auto flag = reader.optional(one.name);
    if (flag) outcome.badges.set(one.badge, flag->boolean());
  }
  if (outcome.status == Status::passed && !outcome.median_ns) {
    reader.fail("passed, but there is no timing");
  }
  if (auto error = reader.error()) return *error;
  return outcome;
}

std::string percent_of_permille(std::int64_t permille) {
  return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + "%";
}

std::string microseconds(std::int64_t nanoseconds) {
  const std::int64_t tenths = (nanoseconds + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " us";
}

std::string outcome_line(const Outcome& outcome) {
  std::string line = to_string(outcome.status);
  if (!outcome.message.empty()) {
    line += ": " + shortened(outcome.message.substr(0, outcome.message.find('\n')), 400);
  }
  if (outcome.passed()) {
    line += ": " + microseconds(*outcome.median_ns);
    if (outcome.permille_of_reference() > 0) {
      line +=
          ", " + percent_of_permille(outcome.permille_of_reference()) + " of " + outcome.reference;
    }
  }
  if (!outcome.max_error.empty()) line += ", max error " + outcome.max_error;
  if (outcome.registers >= 0) {
    line += ", " + std::to_string(outcome.registers) + " registers, " +
            (outcome.spill_bytes > 0 ? std::to_string(outcome.spill_bytes) + " bytes of spills"
                                     : "no spills");
  }
  if (outcome.passed() && !outcome.badges.empty()) line += ", " + joined(outcome.badges.names());
  return line;
}

std::string prompt_log(const Outcome& outcome) {
  if (outcome.status == Status::compile_failed) return shortened(outcome.message, 800);
  if (outcome.compile_log.find("arning") == std::string::npos) return "";
  return shortened(outcome.compile_log, 300);
}

}  // namespace rekernel
