#include "replay/trajectory/header.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "harness/candidate/arch.h"
#include "harness/candidate/known_problem.h"
#include "harness/records/known_devices.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

namespace json = boost::json;

constexpr std::int64_t largest_fact = std::int64_t{1} << 62;
constexpr std::size_t max_text = std::size_t{4} << 20;

json::object to_json(const DeviceFacts& device) {
  json::object json{{"name", device.name},
                    {"target", device.target},
                    {"multiprocessors", device.multiprocessors},
                    {"shared_bytes_per_block", device.shared_bytes_per_block},
                    {"l2_bytes", device.l2_bytes},
                    {"copy_bytes_per_s", device.copy_bytes_per_s},
                    {"fp16_flops_per_s", device.fp16_flops_per_s}};
  // Older headers do not tell them, and are written again as they are.
  if (device.clock_khz > 0) json["clock_khz"] = device.clock_khz;
  if (device.memory_clock_khz > 0) json["memory_clock_khz"] = device.memory_clock_khz;
  if (device.memory_bus_bits > 0) json["memory_bus_bits"] = device.memory_bus_bits;
  return json;
}

json::object to_json(const PublishedRun& run) {
  json::array rounds;
  for (const PublishedRound& round : run.rounds) {
    rounds.push_back(json::object{{"round", round.round},
                                  {"time_ns", round.time_ns},
                                  {"percent", round.percent},
                                  {"idea", round.idea}});
  }
  return {
      {"source", run.source}, {"reference_ns", run.reference_ns}, {"rounds", std::move(rounds)}};
}

Templates read_templates(JsonReader reader) {
  Templates templates;
  templates.ideas = reader.required("ideas").string(max_text);
  templates.kernel = reader.required("kernel").string(max_text);
  reader.no_other_keys();
  return templates;
}

FixedTexts read_texts(JsonReader reader) {
  FixedTexts texts;
  texts.problem = reader.required("problem").string(max_text);
  texts.device = reader.required("device").string(max_text);
  texts.format = reader.required("format").string(max_text);
  reader.no_other_keys();
  return texts;
}

SeedCandidate read_seed(JsonReader reader) {
  SeedCandidate seed;
  seed.plan = reader.required("plan").string(max_text);
  seed.source = reader.required("source").string(max_text);
  reader.no_other_keys();
  return seed;
}

LibraryKernel read_library_kernel(JsonReader reader) {
  LibraryKernel kernel;
  kernel.name = reader.required("name").string(64);
  kernel.note = reader.required("note").string(max_idea_bytes);
  kernel.plan = reader.required("plan").string(max_text);
  kernel.source = reader.required("source").string(max_text);
  reader.no_other_keys();
  return kernel;
}

bool is_search_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// "r4.i2.b1" or "seed.1", of a round before `round`.
bool is_earlier_candidate(const std::string& id, int round, std::size_t seeds) {
  int number = 0, idea = 0, branch = 0, end = 0;
  if (std::sscanf(id.c_str(), "seed.%4d%n", &number, &end) == 1 &&
      static_cast<std::size_t>(end) == id.size()) {
    return number >= 1 && static_cast<std::size_t>(number) <= seeds;
  }
  return std::sscanf(id.c_str(), "r%4d.i%4d.b%4d%n", &number, &idea, &branch, &end) == 3 &&
         static_cast<std::size_t>(end) == id.size() && number >= 0 && number < round;
}

}  // namespace

std::optional<DeviceFacts> known_device(std::string_view short_name) {
  // Rates were measured, except for the L40S, whose are the vendor's.
  if (short_name == "h200") {
    const KnownDevice& chip = *find_known_device("NVIDIA H200");
    return DeviceFacts{.name = std::string(chip.name),
                       .target = "sm_90a",
                       .multiprocessors = chip.multiprocessors,
                       .shared_bytes_per_block = 232448,
                       .l2_bytes = chip.l2_bytes,
                       .copy_bytes_per_s = 4280000000000,
                       .fp16_flops_per_s = 790000000000000,
                       .clock_khz = chip.clock_khz,
                       .memory_clock_khz = chip.memory_clock_khz,
                       .memory_bus_bits = chip.memory_bus_bits};
  }
  if (short_name == "l40s") {
    return DeviceFacts{.name = "NVIDIA L40S",
                       .target = "sm_89",
                       .multiprocessors = 142,
                       .shared_bytes_per_block = 101376,
                       .l2_bytes = 96 << 20,
                       .copy_bytes_per_s = 864000000000,
                       .fp16_flops_per_s = 362000000000000,
                       .clock_khz = 2520000,
                       .memory_clock_khz = 9001000,
                       .memory_bus_bits = 384};
  }
  return std::nullopt;
}

std::string newest_arch(const DeviceFacts& device) {
  const std::optional<ComputeCapability> capability = capability_of(device.target);
  const std::vector<Arch> archs = capability ? archs_on(*capability) : std::vector<Arch>();
  return archs.empty() ? device.target : to_string(archs.back());
}

const LibraryKernel* Header::find_library_kernel(std::string_view kernel_name) const {
  for (const LibraryKernel& kernel : library) {
    if (kernel.name == kernel_name) return &kernel;
  }
  return nullptr;
}

DeviceFacts read_device_facts(JsonReader reader) {
  DeviceFacts device;
  device.name = reader.required("name").string(128);
  JsonReader target = reader.required("target");
  device.target = target.string(16);
  const std::optional<ComputeCapability> capability = capability_of(device.target);
  if (!capability || target_for(*capability) != device.target || archs_on(*capability).empty()) {
    target.expect("NVRTC's name for a GPU from \"" + std::string(architectures[0].name) +
                  "\" on, such as \"sm_86\" or \"sm_90a\"");
  }
  device.multiprocessors = reader.required("multiprocessors").integer(1, largest_fact);
  device.shared_bytes_per_block =
      reader.required("shared_bytes_per_block").integer(1, largest_fact);
  device.l2_bytes = reader.required("l2_bytes").integer(0, largest_fact);
  device.copy_bytes_per_s = reader.required("copy_bytes_per_s").integer(0, largest_fact);
  device.fp16_flops_per_s = reader.required("fp16_flops_per_s").integer(0, largest_fact);
  const auto fact = [&](const char* key) {
    auto value = reader.optional(key);
    return value ? value->integer(1, largest_fact) : 0;
  };
  device.clock_khz = fact("clock_khz");
  device.memory_clock_khz = fact("memory_clock_khz");
  device.memory_bus_bits = fact("memory_bus_bits");
  reader.no_other_keys();
  return device;
}

PublishedRun read_published_run(JsonReader reader) {
  PublishedRun run;
  run.source = reader.required("source").string(4000);
  run.reference_ns = reader.required("reference_ns").integer(0, largest_fact);
  for (JsonReader& entry : reader.required("rounds").array(0, 1000)) {
    PublishedRound round;
    round.round = static_cast<int>(entry.required("round").integer(0, 1000));
    round.time_ns = entry.required("time_ns").integer(0, largest_fact);
    round.percent = entry.required("percent").string(16);
    round.idea = entry.required("idea").string(max_idea_bytes);
    entry.no_other_keys();
    run.rounds.push_back(std::move(round));
  }
  reader.no_other_keys();
  return run;
}

json::object to_json(const Header& header) {
  json::array seeds;
  for (const SeedCandidate& seed : header.seeds) {
    seeds.push_back(json::object{{"plan", seed.plan}, {"source", seed.source}});
  }
  json::array library;
  for (const LibraryKernel& kernel : header.library) {
    library.push_back(json::object{{"name", kernel.name},
                                   {"note", kernel.note},
                                   {"plan", kernel.plan},
                                   {"source", kernel.source}});
  }
  json::object event{{"event", "header"},
                     {"schema", trajectory_schema},
                     {"name", header.name},
                     {"problem", header.problem},
                     {"settings", to_json(header.settings)},
                     {"templates", json::object{{"ideas", header.templates.ideas},
                                                {"kernel", header.templates.kernel}}},
                     {"texts", json::object{{"problem", header.texts.problem},
                                            {"device", header.texts.device},
                                            {"format", header.texts.format}}},
                     {"device", to_json(header.device)},
                     {"toolchain", json::value_from(header.toolchain)},
                     {"replies", header.replies},
                     {"notes", header.notes},
                     {"seeds", std::move(seeds)},
                     {"library", std::move(library)}};
  if (header.published) event["published"] = to_json(*header.published);
  return event;
}

Result<Header> header_from_json(const json::object& event, const std::string& where) {
  const json::value value = event;
  JsonReader reader(where, value);
  reader.required("event");
  reader.optional("chain");
  reader.required("schema").integer(1, trajectory_schema);
  Header header;
  header.name = reader.required("name").string(64);
  header.problem = reader.required("problem").string(64);
  header.settings = read_settings(reader.required("settings"));
  header.templates = read_templates(reader.required("templates"));
  header.texts = read_texts(reader.required("texts"));
  header.device = read_device_facts(reader.required("device"));
  header.toolchain = reader.required("toolchain").string_map(256);
  header.replies = reader.required("replies").string(4000);
  header.notes = reader.required("notes").string(max_text);
  for (JsonReader& seed : reader.required("seeds").array(0, 16)) {
    header.seeds.push_back(read_seed(seed));
  }
  for (JsonReader& kernel : reader.required("library").array(0, 64)) {
    header.library.push_back(read_library_kernel(kernel));
  }
  if (auto published = reader.optional("published")) {
    header.published = read_published_run(*published);
  }
  reader.no_other_keys();
  if (auto error = reader.error()) return *error;
  if (Result<Ok> checked = check_header(header, where); !checked) return checked.error();
  return header;
}

Result<Ok> check_round_plan(const Header& header, const RoundPlan& plan, const std::string& where) {
  const std::string place = where + ": the plan of round " + std::to_string(plan.round);
  for (const std::string& id : plan.parents.value_or(std::vector<std::string>{})) {
    if (!is_earlier_candidate(id, plan.round, header.seeds.size())) {
      return Error{
          place + ": parent \"" + one_line(id, 64) +
          "\" is no candidate of an earlier round (\"r4.i2.b1\") and no seed (\"seed.1\")"};
    }
  }
  for (const std::string& name : plan.bank_kernels) {
    if (!header.find_library_kernel(name)) {
      return Error{place + ": bank kernel \"" + one_line(name, 64) + "\" is not in the library"};
    }
  }
  return Ok{};
}

Result<Ok> check_header(const Header& header, const std::string& where) {
  if (!is_search_name(header.name)) {
    return Error{where + ": name: expected 1 to 64 of a-z, 0-9, _ and -"};
  }
  if (const auto known = known_problem(header.problem); !known) {
    return Error{where + ": problem: " + known.error().message};
  }
  if (header.settings.models.empty())
    return Error{where + ": settings: models: expected at least one"};
  std::set<std::string> names;
  for (const LibraryKernel& kernel : header.library) {
    if (!names.insert(kernel.name).second) {
      return Error{where + ": library: \"" + one_line(kernel.name, 64) + "\" appears twice"};
    }
  }
  for (const RoundPlan& plan : header.settings.round_plans) {
    if (Result<Ok> checked = check_round_plan(header, plan, where); !checked) return checked;
  }
  return check_templates(header.templates, header.texts, header.settings.prompt_tokens, where);
}

}  // namespace rekernel
