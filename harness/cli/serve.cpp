#include <sys/resource.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <iostream>

#include "harness/base/environment.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/cli/command.h"
#include "harness/cli/serving_judge.h"
#include "harness/service/problem_json.h"
#include "harness/service/routes.h"
#include "harness/terminal/arguments.h"
#include "harness/terminal/exit_status.h"

namespace rekernel::service {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

fs::path default_store() {
  const std::string state = environment("XDG_STATE_HOME");
  const fs::path folder =
      state.empty() ? fs::path(environment("HOME")) / ".local/state" : fs::path(state);
  return folder / "rekernel" / "service";
}

Page serve_page() {
  constexpr std::int64_t many = 100'000'000;
  const auto number = [](std::int64_t least, std::int64_t most, std::int64_t value) {
    return whole_number<std::int64_t>(least, most)->default_value(value);
  };
  Page page;
  page.description =
      "Judges candidates for others over HTTP, and remembers the answers. What is timed has its "
      "GPU for itself.";
  page.examples = {{"rekernel serve --listen 127.0.0.1:8420"}};
  page.group("Where").add_options()("listen",
                                    text_value("ADDRESS")->default_value("127.0.0.1:8420"),
                                    "ADDRESS:PORT (port 0: any free one) or unix:PATH")(
      "store", text_value("DIR", {Names::folder})->default_value(default_store().string()),
      "folder for evaluations and answers; one service at a time");
  page.group("Clients").add_options()(
      "tokens", text_value("FILE", {Names::file}),
      "file with a line for each client: NAME sha256:DIGITS [weight=2] [queued=1000]")(
      "new-token", text_value("NAME"),
      "append a client of this name to --tokens, print its token, and end");
  page.group("Limits").add_options()("queue", number(1, many, 200'000),
                                     "evaluations that may wait")(
      "client-queue", number(1, many, 50'000), "of one client, unless --tokens says otherwise")(
      "connections", number(1, 100'000, 4096), "open at once")("body-mib", number(1, 1024, 8),
                                                               "largest request body")(
      "keep", number(0, many, 1'000'000), "answered evaluations that are remembered")(
      "tries", number(1, 100, 3), "failures of the machine before an evaluation is given up")(
      "grace", number(0, 3600, 30), "seconds that what runs may take to end after SIGTERM");
  add_judge_options(page);
  page.statuses[1] = "the service could not go on";
  return page;
}

Result<Ok> check_target(const ParsedArguments& parsed) {
  if (parsed.has("target") && !capability_of(parsed.get<std::string>("target"))) {
    return Error{"--target: expected a target like sm_90a"};
  }
  return Ok{};
}

int make_token(const ParsedArguments& parsed) {
  if (!parsed.has("tokens")) return bad_input({"--new-token: expected --tokens FILE with it"});
  const std::string& name = parsed.get<std::string>("new-token");
  if (!is_identifier(name)) return bad_input({"--new-token: expected letters, digits and _"});
  const fs::path file = parsed.get<std::string>("tokens");
  std::string text;
  if (fs::exists(file)) {
    const Result<std::string> present = read_file(file, 1u << 20);
    if (!present) return bad_input(present.error());
    text = *present;
    if (!text.empty() && text.back() != '\n') text += "\n";
  }
  const NewToken token = new_token(name);
  text += token.line;
  if (const Result<Clients> good = Clients::parse(text, file.string()); !good)
    return bad_input(good.error());
  if (const Result<Ok> written = write_file_atomically(file, text); !written)
    return bad_input(written.error());
  std::cout << token.token << "\n";
  return exit_good;
}

/// As many descriptors as connections and children need, as far as the system grants them.
void raise_descriptor_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int serve(const Arguments& arguments) {
  const ParsedArguments parsed = parse_arguments(arguments, serve_page());
  if (parsed.exit_status) return *parsed.exit_status;
  for (const Result<Ok>& good : {check_target(parsed), check_judge_options(parsed)}) {
    if (!good) return bad_input(good.error());
  }
  if (parsed.has("new-token")) return make_token(parsed);
  const Result<ListenAddress> address = parse_listen_address(parsed.get<std::string>("listen"));
  if (!address) return bad_input({"--listen " + address.error().message});
  Routes::Options route_options;
  route_options.listens_on_unix_socket = !address->unix_path.empty();
  if (parsed.has("tokens")) {
    Result<Clients> clients = Clients::load(parsed.get<std::string>("tokens"));
    if (!clients) return bad_input(clients.error());
    route_options.clients = std::move(*clients);
  } else if (!address->is_loopback()) {
    return bad_input({"--listen " + parsed.get<std::string>("listen") +
                      ": expected --tokens with it, since others can reach it"});
  }
  raise_descriptor_limit();
  const Log log = log_to_standard_error();
  Result<Store> store = Store::open(parsed.get<std::string>("store"));
  if (!store) return bad_input({"--store " + store.error().message});
  Result<ServingJudge> chosen = serving_judge(parsed, log);
  if (!chosen) return bad_input(chosen.error());
  problems_json();  // read before the first client waits for it

  Service::Options options;
  options.limits.cores = chosen->cores;
  options.limits.devices = chosen->judge->devices();
  options.limits.untimed_at_once = chosen->untimed_at_once;
  options.limits.most_queued = static_cast<std::size_t>(parsed.get<std::int64_t>("queue"));
  options.limits.most_queued_of_client =
      static_cast<std::size_t>(parsed.get<std::int64_t>("client-queue"));
  options.limits.tries = static_cast<int>(parsed.get<std::int64_t>("tries"));
  options.keep = parsed.get<std::int64_t>("keep");
  options.boot = boot_id();
  HttpLimits limits;
  limits.body_bytes = static_cast<std::uint64_t>(parsed.get<std::int64_t>("body-mib")) << 20;
  limits.connections = static_cast<std::size_t>(parsed.get<std::int64_t>("connections"));

  AsioLoop loop;
  auto service = std::make_unique<Service>(options, std::move(*store), chosen->judge, loop, log);
  Routes routes(*service, loop, std::move(route_options));
  auto server =
      HttpServer::listen(loop, parsed.get<std::string>("listen"), routes.handlers(), limits);
  if (!server) return bad_input({"--listen " + server.error().message});
  // Whoever finds the store locked finds its service here.
  const fs::path address_file = fs::path(parsed.get<std::string>("store")) / "address";
  if (const Result<Ok> written = write_file_atomically(address_file, (*server)->address() + "\n");
      !written) {
    return bad_input(written.error());
  }
  // Whoever started it learns the port from this line.
  std::cout << "listening on " << (*server)->address() << std::endl;
  log("started", {{"address", (*server)->address()},
                  {"devices", options.limits.devices},
                  {"no_device", chosen->judge->no_device()},
                  {"cores", options.limits.cores}});
  const std::chrono::seconds grace(parsed.get<std::int64_t>("grace"));
  bool nothing_runs = false;
  loop.on_end_signal([&](int) {
    service->stop(grace, [&](bool ended) {
      nothing_runs = ended;
      loop.stop();
    });
  });
  loop.run();
  (*server)->stop_accepting();
  log("stopped", {{"nothing_runs", nothing_runs}});
  if (!nothing_runs) {
    // What still runs would be waited for. It stays in the store and starts again, and the children
    // die with this process.
    std::cout.flush();
    ::_exit(exit_good);
  }
  service.reset();
  return exit_good;
}

}  // namespace

}  // namespace rekernel::service

namespace rekernel {

int serve_command(const Arguments& arguments) { return service::serve(arguments); }

}  // namespace rekernel
