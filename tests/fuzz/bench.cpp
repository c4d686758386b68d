#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/records/record.h"
#include "harness/records/report.h"
#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_bench(std::string_view bytes) {
  const std::string where = "results/gpu/bench.json";
  const Result<boost::json::value> value = parse_json(bytes, where);
  if (!value) return;  // of the target json
  const Result<Bench> bench = bench_from_json(*value, where);
  if (!bench) return require_error(bench.error(), where);

  const std::string text = pretty_json(to_json(*bench));
  const Result<boost::json::value> written = parse_json(text, where);
  require(written.ok(), "what is written is JSON", text);
  const Result<Bench> again = bench_from_json(*written, where);
  require(again.ok(), "what is written is accepted", again.ok() ? "" : again.error().message);
  require(pretty_json(to_json(*again)) == text, "results are written the same again", text);

  const Table table = bench_table(*bench, {});
  for (const auto& row : table.rows) {
    require(row.size() == table.columns.size(), "a row has a cell for every column");
  }
  (void)to_text(table);
  (void)to_markdown(table);
  (void)bench_caption(*bench);
  Bench merged = *bench;
  merge(merged, *bench);
  require(merged.rows.size() == bench->rows.size(), "measuring again adds no rows");
}

}  // namespace rekernel::fuzz
