#include "harness/evaluation/evaluation.h"

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/records/record.h"
#include "property.h"
#include "replay/trajectory/event.h"
#include "replay/trajectory/outcome.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_evaluation(std::string_view bytes) {
  const std::string where = "report";
  const Result<boost::json::value> value = parse_json(bytes, where);
  if (!value) return;  // of the target json
  const Result<Evaluation> evaluation = evaluation_from_json(JsonReader(where, *value));
  if (!evaluation) return require_error(evaluation.error(), where);

  const std::string text = pretty_json(to_json(*evaluation));
  const Result<boost::json::value> written = parse_json(text, where);
  require(written.ok(), "what is written is JSON", text);
  const Result<Evaluation> again = evaluation_from_json(JsonReader(where, *written));
  require(again.ok(), "what is written is accepted", again.ok() ? "" : again.error().message);
  require(pretty_json(to_json(*again)) == text, "a report is written the same again", text);

  // What a search records of it is an event, whatever it says.
  const boost::json::object record = recorded_evaluation(*evaluation, "gpu", "compiler");
  require(parse_json(canonical_json(record), where).ok(), "a record is an event");
  const Result<Outcome> outcome = outcome_from_record(record, where);
  if (!outcome) return require_error(outcome.error(), where);
  (void)outcome_line(*outcome);
  (void)prompt_log(*outcome);
  (void)bench_row(*evaluation, {});
}

}  // namespace rekernel::fuzz
