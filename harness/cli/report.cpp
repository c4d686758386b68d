#include <boost/json.hpp>
#include <iostream>
#include <map>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/markdown.h"
#include "harness/base/text.h"
#include "harness/cli/command.h"
#include "harness/project/root.h"
#include "harness/records/report.h"
#include "harness/report/data.h"
#include "harness/report/filters.h"
#include "harness/report/generated_parts.h"
#include "harness/report/html.h"
#include "harness/report/pictures.h"
#include "harness/report/published_runs.h"
#include "harness/report/recorded_results.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"
#include "harness/terminal/tables.h"

namespace rekernel {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

/// All or nothing: what cannot be made leaves every page as it is. The pictures come last.
int rewrite_pages(const fs::path& root) {
  const Result<std::map<std::string, std::string>> pages = generated_pages(root);
  if (!pages) return bad_input(pages.error());
  for (const auto& [name, page] : *pages) {
    Result<Ok> written = write_file_atomically(root / name, page);
    if (!written) return bad_input(written.error());
  }
  const auto pictures = make_pictures(root, pages->at("README.md"));
  if (!pictures) return bad_input(pictures.error());
  for (const auto& [name, picture] : *pictures) {
    Result<Ok> written = write_file_atomically(root / "results" / "pictures" / name, picture);
    if (!written) return bad_input(written.error());
  }
  return exit_good;
}

/// What cannot be read is named here and on the pages; the rest is made.
int write_pages(const fs::path& root, const fs::path& folder) {
  // Before the work: a folder that is not ours is refused at once.
  if (Result<Ok> good = check_report_folder(folder); !good) return bad_input(good.error());
  RecordComplaints complaints(root);
  const boost::json::object data = report_data(complaints);
  for (const Complaint& one : complaints.all()) bad_input({one.file + ": " + one.message});
  if (Result<Ok> made = write_html_report(data, folder); !made) return bad_input(made.error());
  std::cout << fs::absolute(folder / "index.html").lexically_normal().string() << "\n";
  return complaints.any_unreadable() ? exit_bad_input : exit_good;
}

int print_text(const RecordedResults& results, const Filters& filters, const TableFormat& format) {
  for (const auto& [path, bench] : results.benches) {
    std::cout << bench_text(bench, results.published, format, filters) << "\n";
  }
  std::cout << published_runs_text(results.published_runs, format);
  return exit_good;
}

int print_markdown(const RecordedResults& results, const Filters& filters) {
  for (const auto& [path, bench] : results.benches) {
    std::cout << to_markdown(bench_table(bench, results.published, BenchColumns::page,
                                         [&](const BenchRow& row) { return filters.take(row); }))
              << "\n"
              << markdown_text(bench_caption(taken_rows(filters, bench))) << "\n";
  }
  std::cout << published_runs_markdown(results.published_runs);
  return exit_good;
}

/// The outputs exclude each other.
Result<Ok> check_outputs(const ParsedArguments& parsed) {
  std::vector<std::string> asked;
  for (const char* name : {"markdown", "json", "csv", "readme"}) {
    if (parsed.flag(name)) asked.push_back(std::string("--") + name);
  }
  if (parsed.has("html")) asked.emplace_back("--html");
  if (asked.size() > 1) return Error{joined(asked, " and ") + ": expected one of them"};
  return Ok{};
}

Page report_page() {
  Page page;
  page.description =
      "Shows the recorded results of every GPU as tables, or makes a folder of pages for a "
      "browser.";
  page.examples = {{"rekernel report --html report"},
                   {"rekernel report --problem softmax --on h200 --csv"}};
  add_filters(page.group("Which of them"));
  page.group("Output").add_options()(
      "html", text_value("DIR", {Names::folder}),
      "make pages for a browser in this folder: a new one, an empty one, or a report")(
      "markdown", po::bool_switch(), "Markdown instead of text")("json", po::bool_switch(),
                                                                 "the same as JSON")(
      "readme", po::bool_switch(),
      "rewrite the generated tables of README.md and of the pages in the folders, and the "
      "pictures that README.md shows, instead");
  add_table_options(page.group("Output"));
  return page;
}

}  // namespace

int report_command(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, report_page());
  if (parsed.exit_status) return *parsed.exit_status;
  if (Result<Ok> checked = check_outputs(parsed); !checked) return bad_input(checked.error());
  const Result<Filters> filters = chosen_filters(parsed);
  if (!filters) return bad_input(filters.error());
  if (!filters->take_all() && (parsed.flag("readme") || parsed.has("html"))) {
    return bad_input({"--html and --readme show everything: expected no filter with them"});
  }

  if (parsed.flag("readme")) {
    const Result<fs::path> own = own_project();
    return own ? rewrite_pages(*own) : bad_input(own.error());
  }
  const fs::path root = project_root();
  if (parsed.has("html")) return write_pages(root, parsed.get<std::string>("html"));
  Result<RecordedResults> results = load_results(root);
  if (!results) return bad_input(results.error());
  if (Result<Ok> kept = keep(*filters, *results); !kept) return bad_input(kept.error());
  if (parsed.flag("markdown")) return print_markdown(*results, *filters);
  if (parsed.flag("json")) {
    std::cout << pretty_json(to_json(*results, *filters));
  } else if (parsed.flag("csv")) {
    std::cout << to_csv(bench_table_of_all(*results, *filters));
  } else {
    print_text(*results, *filters, table_format(parsed));
  }
  return exit_good;
}

}  // namespace rekernel
