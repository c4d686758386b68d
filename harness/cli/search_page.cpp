#include "harness/cli/evaluators.h"
#include "harness/cli/launchers.h"
#include "harness/cli/search_options.h"

namespace rekernel {

namespace po = boost::program_options;

namespace {

po::typed_value<std::int64_t>* number() { return po::value<std::int64_t>()->value_name("N"); }

void add_search_itself(Page& page) {
  page.group("Problem and goal")
      .add_options()("problem", text_value("PROBLEM", {Names::problem, Names::file}),
                     "what to write kernels for: an id, or a file of your own problem; such a "
                     "search is a file of its own too (NAME is its path), and needs the option "
                     "again with --resume")(
          "target", text_value("GPU"), "GPU that the prompts speak of: h200 (default) or l40s")(
          "seed", list_value("KERNEL", {Names::kernel, Names::folder}), "a kernel to start from")(
          "reference", list_value("ID"),
          "reference to time beside candidates: an id of a library's or of PyTorch's, or headline; "
          "the "
          "library's first by default")("notes", text_value("TEXT"), "free text for the header")(
          "settings", text_value("FILE", {Names::file}),
          "JSON file with these, rounds and choice, and more")(
          "study", text_value("FILE", {Names::file}),
          "JSON file of a study, of which this is one search");
  page.group("Rounds and choice")
      .add_options()("rounds", number(), "rounds (default 5)")("ideas", number(),
                                                               "ideas in a round (default 2)")(
          "branches", number(), "implementations of an idea (default 2)")(
          "survivors", number(), "fastest kernels that seed the next round (default 2)")(
          "bank", number(), "good kernels beside them (default 2)")(
          "token-budget", number(), "stop before this many tokens; 0: none")(
          "prompt-tokens", number(), "longest prompt (default 48000)")(
          "tries", number(),
          "how often an empty, broken or refused reply is asked for (default 3)")(
          "as-is", po::bool_switch(), "take unusable replies as failed candidates")(
          "profiles", po::bool_switch(),
          "show in prompts what a profiler says of each parent; needs ncu")(
          "deadline", number(), "minutes after which nothing is asked or waited for; 0: none");
}

void add_models(Page& page) {
  page.group("Replies").add_options()(
      "replies", one_of({"files", "openai", "recorded"})->default_value("files"),
      "where replies come from: files that somebody fills in, endpoints that speak OpenAI's "
      "protocol, or another search")("exchange", text_value("DIR", {Names::folder}),
                                     "files: folder for prompts and replies; NAME.exchange by "
                                     "default")("from",
                                                text_value("NAME", {Names::search, Names::file}),
                                                "recorded: the trajectory whose replies to use");
  page.group("Models and endpoints (--replies openai)")
      .add_options()("model", list_value("NAME"), "name of a model; several take turns")(
          "base-url", text_value("URL"), "the endpoint; OpenAI's own by default")(
          "key-variable", text_value("VARIABLE"),
          "environment variable that holds the key; OPENAI_API_KEY for OpenAI's own endpoint, no "
          "key for another")("ask-as", text_value("NAME"), "what the endpoint calls the model")(
          "header", list_value("LINE"),
          "'NAME: VALUE', sent too; $VARIABLE in a value is replaced; '' alone: none")(
          "body", text_value("JSON"), "object with members to send too, as '{\"temperature\": 1}'")(
          "timeout", number(), "seconds that one request may take (default 1800)")(
          "ca-file", text_value("FILE", {Names::file}),
          "PEM file with the certificate authorities to believe")(
          "limit-field", one_of({"max_tokens", "max_completion_tokens", "auto"}),
          "what limits a reply; auto: what the endpoint takes")(
          "reply-tokens", number(), "longest reply; 0: the endpoint's own limit")(
          "stream", po::bool_switch(), "ask for replies in pieces")(
          "price", text_value("PROMPT:REPLY"),
          "dollars for a million tokens of prompt and of reply, as 1.25:10")(
          "endpoints", text_value("FILE", {Names::file}),
          "JSON file with all of these by model; ~/.config/rekernel/endpoints.json by default")(
          "concurrency", whole_number<std::int64_t>(1, 256)->default_value(4), "requests at once")(
          "without-gpu", po::bool_switch(),
          "ask although there is no GPU here; the candidates wait for one");
}

}  // namespace

Page search_page() {
  Page page;
  page.description =
      "Searches in rounds: a model is asked for ideas and for kernels, each candidate is judged "
      "and "
      "timed, and the fastest that pass seed the next round. Everything lands in "
      "trajectories/NAME.jsonl, and the search goes on from there after whatever interrupts it. "
      "replay/SEARCHING.md is the guide.";
  page.takes(
      {"name", "NAME", "name (trajectories/NAME.jsonl) or path of the trajectory", Count::one},
      text_value("NAME", {Names::search, Names::file}));
  page.examples = {{"rekernel search my_softmax --problem softmax --rounds 3",
                    "Writes prompts into files, and waits (status 3) for their replies"},
                   {"rekernel search my_softmax --resume", "Goes on once the replies are there"},
                   {"rekernel search my_softmax --status"},
                   {"rekernel search his_softmax --problem softmax --replies openai --base-url "
                    "http://localhost:8000/v1 --model qwen"}};
  page.group("Going on")
      .add_options()("resume", po::bool_switch(),
                     "go on with the settings that the trajectory holds")(
          "continue", text_value("FILE", {Names::file}),
          "continue after the stop with this JSON file: rounds, round_plans, token_budget, notes")(
          "stop", po::bool_switch(), "make no new request: end the search after what was asked")(
          "status", po::bool_switch(),
          "print what waits, what failed and why, tokens and cost so far, and no more");
  add_search_itself(page);
  add_models(page);
  add_gpu_options(page.group("Evaluation and launchers"));
  add_launcher_options(page.group("Evaluation and launchers"));
  page.group("Output").add_options()("json", po::bool_switch(), "print the rounds as JSON");
  page.statuses[1] = "the search is over and got nothing, or a recorded file is not its own";
  page.statuses[3] = "replies or a GPU are missing: the same command goes on once they are there";
  return page;
}

}  // namespace rekernel
