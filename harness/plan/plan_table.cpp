// The table of kernel.json: keys, ranges, meanings, examples.

#include "harness/plan/plan_table.h"

#include <stdexcept>

#include "harness/candidate/candidate.h"
#include "harness/plan/plan_values.h"
#include "ops/program.h"

namespace rekernel {

namespace plan_parts {

namespace {

std::vector<std::string> arch_names() {
  std::vector<std::string> names;
  for (const Arch arch : Arch::all()) names.emplace_back(to_string(arch));
  return names;
}

PlanObject plan() {
  return {
      "plan",
      "The plan",
      "The whole of kernel.json. Unknown keys are errors, at every level.",
      {{.key = "schema",
        .value = integer(1, 1),
        .required = true,
        .meaning = "Version of this format.",
        .example = "1",
        .in_replies = false},
       {.key = "problem",
        .value = text(64, "", "id of a problem"),
        .required = true,
        .meaning = "What the candidate computes; `rekernel list` names the problems. Below "
                   "generated/, the folder above has this name.",
        .example = R"("softmax")",
        .in_replies = false},
       {.key = "name",
        .value = text(64, "^[a-z0-9_]{1,64}$", "name of a-z, 0-9 and _"),
        .required = true,
        .meaning = "Of the candidate. Below generated/, its folder has this name.",
        .example = R"("two_passes")",
        .in_replies = false},
       {.key = "idea",
        .value = text(4000),
        .required = true,
        .meaning = "One paragraph in plain language: what makes it fast.",
        .example = R"("A first kernel finds each row's sum, a second one divides by it.")"},
       {.key = "arch",
        .value = choice(arch_names()),
        .required = true,
        .meaning = "The lowest target. Names that end in `a` run on that chip family alone, the "
                   "others on everything newer too.",
        .example = R"("sm_90a")"},
       {.key = "origin",
        .value = any_of({object("search_origin", ""), object("noted_origin", "")},
                        "object: where it was found"),
        .required = true,
        .meaning = "Where the candidate comes from: a recorded search, or a note.",
        .example = R"({"trajectory": "trajectories/softmax.jsonl", "candidate": "r4.i2.b1"})",
        .in_replies = false},
       {.key = "compile",
        .value = object("compile", "object: compile options"),
        .meaning = "How NVRTC compiles the source, as C++20.",
        .example = R"({"fast_math": true, "defines": {"THREADS": 256}})"},
       {.key = "workspace",
        .value = map(64, identifier_pattern,
                     sized_integer(1, static_cast<std::uint64_t>(max_workspace_bytes)),
                     "object: bytes by name"),
        .meaning = "Scratch memory. Its content is undefined at the first launch of every run. A "
                   "name is an identifier, and none of a tensor's. All of it together, with "
                   "`__device__` variables, has at most 8589934592 bytes.",
        .example = R"({"row_sum": 16384})"},
       {.key = "launches",
        .value = list(1, 512, {any_of({object("memset", ""), object("launch", "")})},
                      "list of 1 to 512 memsets and kernel launches"),
        .required = true,
        .meaning =
            "What is run, in this order on one stream; at least one kernel. Every integer "
            "here but `module`, and in `workspace`, may be an expression of the problem's "
            "axes and of integers in `defines`, in quotes: `\"ceil_div(rows, 4)\"`, with + - "
            "* / % (which round down), min, max, ceil_div and parentheses. Such a plan is "
            "judged at other sizes too.",
        .example = R"([{"memset": "row_sum", "value": 0},
    {"kernel": "normalise", "grid": [{"per_sm": 2}], "block": [256], "args": ["x", "row_sum", "y"]}])"}}};
}

std::vector<PlanObject> origins() {
  return {{"search_origin",
           "Origin: a recorded search",
           "",
           {{.key = "trajectory",
             .value = text(128, R"(^trajectories/[a-z0-9_-]+\.jsonl$)", "path of a trajectory"),
             .required = true,
             .meaning = "The recording, from the project's root.",
             .example = R"("trajectories/softmax.jsonl")",
             .in_replies = false},
            {.key = "candidate",
             .value = text(64, "^[a-z0-9._-]{1,64}$", "id of a candidate"),
             .required = true,
             .meaning = "Round, idea and branch in that search. Source and plan are those of this "
                        "candidate, byte for byte.",
             .example = R"("r4.i2.b1")",
             .in_replies = false}}},
          {"noted_origin",
           "Origin: a note",
           "For what no recorded search found. It stands alone, without the other two keys.",
           {{.key = "note",
             .value = text(4000),
             .required = true,
             .meaning = "Who or what wrote it, and from what.",
             .example = R"("written by hand")",
             .in_replies = false}}}};
}

PlanObject compile_options() {
  return {"compile",
          "Compile options",
          "",
          {{.key = "fast_math",
            .value = boolean(),
            .meaning = "NVRTC's --use_fast_math: approximate division, square root and "
                       "transcendental functions, and denormals as zero.",
            .example = "true"},
           {.key = "max_registers",
            .value = integer(16, most_of_any(most_registers)),
            .meaning = "NVRTC's --maxrregcount: registers of a thread at most. Values that do not "
                       "fit go to local memory (spills).",
            .example = "168",
            .most = most_registers},
           {.key = "defines",
            .value = map(64, "^[A-Za-z][A-Za-z0-9_]{0,63}$",
                         any_of({integer(least_i64, most_i64),
                                 text(64, "^[A-Za-z][A-Za-z0-9_]{0,63}$", "identifier")}),
                         "object: integers or identifiers by name"),
            .meaning = "Macros. Neither name nor value may start with `_` or be `problem` or "
                       "`defined`.",
            .example = R"({"THREADS": 256, "TYPE": "float"})"}}};
}

}  // namespace

}  // namespace plan_parts

const std::vector<PlanObject>& plan_objects() {
  using namespace plan_parts;  // NOLINT(google-build-using-namespace)
  static const std::vector<PlanObject> objects = [] {
    std::vector<PlanObject> all{plan()};
    const auto add = [&](std::vector<PlanObject> more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    add(origins());
    add({compile_options()});
    add(launch_objects());
    return all;
  }();
  return objects;
}

const PlanObject& plan_object(std::string_view name) {
  for (const PlanObject& object : plan_objects()) {
    if (object.name == name) return object;
  }
  throw std::logic_error("kernel.json has no object " + std::string(name));
}

std::vector<const PlanObject*> objects_in(const PlanValue& value) {
  if (value.kind == PlanValue::Kind::object) return {&plan_object(value.object)};
  std::vector<const PlanObject*> found;
  for (const PlanValue& one : value.of) {
    for (const PlanObject* object : objects_in(one)) found.push_back(object);
  }
  return found;
}

PlanValue value_for(const PlanKey& key, Arch arch) {
  PlanValue value = key.value;
  if (!key.most) return value;
  PlanValue& bounded = value.kind == PlanValue::Kind::list ? value.of.front() : value;
  bounded.most = static_cast<std::uint64_t>(key.most(arch));
  return value;
}

std::string plan_example(const PlanObject& object) {
  std::string text = "{";
  for (const PlanKey& key : object.keys) {
    text += (text.size() > 1 ? ", \"" : "\"") + key.key + "\": " + key.example;
  }
  return text + "}";
}

}  // namespace rekernel
