#include "harness/plan/plan_texts.h"

#include <algorithm>
#include <limits>

#include "harness/base/text.h"
#include "harness/records/table.h"

namespace rekernel {

namespace {

using Kind = PlanValue::Kind;

bool is_any_integer(const PlanValue& value) {
  return value.least == std::numeric_limits<std::int64_t>::min() &&
         value.most == static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

std::string integer_text(const PlanValue& value, const char* noun) {
  if (is_any_integer(value)) return noun;
  const std::string least = std::to_string(value.least);
  const std::string most = std::to_string(value.most);
  return least == most ? least : noun + (" from " + least) + " to " + most;
}

std::string alternatives_text(const PlanValue& value) {
  std::vector<std::string> texts;
  for (const PlanValue& one : value.of) texts.push_back(value_text(one));
  return joined(texts, " or ");
}

/// What a page says of a key's value.
std::string bounded_text(const PlanKey& key) {
  if (key.most_words.empty()) return value_text(key.value);
  return "integer from " + std::to_string(key.value.least) + ", " + key.most_words;
}

/// Where an architecture has less: "sm_80: at most 101376".
std::string lower_limits(const PlanKey& key, const std::vector<Arch>& archs, std::int64_t most) {
  std::vector<std::string> limits;
  for (const Arch arch : archs) {
    if (key.needs && !key.needs(arch)) continue;
    if (key.most(arch) < most) {
      limits.push_back(std::string(to_string(arch)) + ": at most " +
                       std::to_string(key.most(arch)));
    }
  }
  return joined(limits, "; ");
}

std::vector<std::string> archs_with(const PlanKey& key, const std::vector<Arch>& archs) {
  std::vector<std::string> names;
  for (const Arch arch : archs) {
    if (key.needs(arch)) names.emplace_back(to_string(arch));
  }
  return names;
}

/// What else a page says of a key: where it differs between architectures.
std::string remarks(const PlanKey& key) {
  std::string text;
  if (key.needs) text += " Needs arch " + joined(archs_with(key, Arch::all())) + ".";
  if (!key.most) return text;
  std::int64_t most = 0;
  for (const Arch arch : Arch::all()) most = std::max(most, key.most(arch));
  const std::string limits = lower_limits(key, Arch::all(), most);
  return limits.empty() ? text : text + " " + limits + ".";
}

std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char one : text) {
    if (one == '\n') line += ' ';
    if (one != '\n' && !(one == ' ' && line.ends_with(' '))) line += one;
  }
  return line;
}

Table object_table(const PlanObject& object) {
  Table table;
  table.columns = {{.heading = "key", .markdown = true},
                   {.heading = "needed", .markdown = true},
                   {.heading = "value", .markdown = true},
                   {.heading = "meaning", .markdown = true},
                   {.heading = "example", .markdown = true}};
  for (const PlanKey& key : object.keys) {
    table.rows.push_back({"`" + key.key + "`",
                          object.one_key ? "one"
                          : key.required ? "yes"
                                         : "no",
                          bounded_text(key), key.meaning + remarks(key),
                          "`" + on_one_line(key.example) + "`"});
  }
  return table;
}

constexpr const char* page_beginning = R"page(# The launch plan, kernel.json

A candidate is device code, `kernel.cu`, and this file beside it: which kernels run, in which grids, on which
arguments. There is no host code. The harness allocates every buffer and issues every launch.

Editors check a plan while you type by [`kernel.schema.json`](kernel.schema.json). In Visual Studio Code:

```json
"json.schemas": [{"fileMatch": ["**/generated/*/*/kernel.json"], "url": "./generated/kernel.schema.json"}]
```

What depends on the problem, such as the names of its tensors (`rekernel show PROBLEM`), only the program checks:
`rekernel check FOLDER` names the key that is wrong and what was expected, and needs no GPU. A plan cannot name its
schema itself: `$schema` is no key of it.

This page, the schema and the text that language models get are made from one table, `harness/plan/plan_table.cpp`.
`rekernel show plan` prints the page, `rekernel show plan --json` the schema.

## Plans in axes

A plan with numbers alone is for its problem's own sizes. Every integer of `workspace` and `launches` but `module` may
be an expression in quotes instead, and a launch or a memset may have a condition, `when`:

```json
{"kernel": "normalise", "grid": ["ceil_div(rows, 4)"], "block": [256], "when": "columns % 4 == 0", "args": ["x", "y"]}
```

- Names are the problem's axes and whole constants, as `problem.h` has them, and those of the plan's own `defines` that
  are integers.
- Integers: `+ - * / %`, `min(a, b)`, `max(a, b)`, `ceil_div(a, b)` and parentheses. `/` rounds down, and so does `//`;
  `ceil_div` rounds up; `a % b` is what `/` leaves. Overflow of 64 bits is an error, and so is a division by 0.
- Conditions: `== != < <= > >=`, `and`, `or`, `not` and parentheses. What follows an `and` or `or` that is decided
  already is not computed: `columns > 1 and rows / (columns - 1) > 4`. A step whose condition does not hold may have any
  values there. At least one kernel runs.
- Limits hold for the values, at every size.

Such a candidate is compiled again for each choice of sizes, with its `problem.h`. After its verdict, which is that of
the problem's own sizes, it is judged at others, drawn again in each evaluation from the problem's `other_sizes` (the
least ones, edges, ones, primes, any), and timed at up to three that are always the same. Right at all of them, it has
the badge `any_size`. `rekernel check` reads and compiles it at some of them, without a GPU. `rekernel new --in-axes`
makes such a plan.
)page";

}  // namespace

std::string value_text(const PlanValue& value) {
  if (!value.words.empty()) return value.words;
  switch (value.kind) {
    case Kind::integer:
      return integer_text(value, "integer");
    case Kind::real:
      return "number";
    case Kind::boolean:
      return "true or false";
    case Kind::text:
      return "text of " + std::to_string(value.least) + " to " + std::to_string(value.most) +
             " bytes";
    case Kind::choice:
      return "one of \"" + joined(value.choices, "\", \"") + "\"";
    case Kind::list:
      return "list of " + std::to_string(value.least) + " to " + std::to_string(value.most) + " " +
             integer_text(value.of.front(), "integers");
    case Kind::map:
      return "object: " + value_text(value.of.front()) + " by name";
    case Kind::object:
      return plan_object(value.object).title;
    case Kind::any_of:
      return alternatives_text(value);
  }
  return "";
}

std::string plan_page() {
  std::string page = page_beginning;
  for (const PlanObject& object : plan_objects()) {
    page += "\n## " + object.title + "\n\n";
    if (!object.meaning.empty()) page += object.meaning + "\n\n";
    page += to_markdown(object_table(object));
    if (&object == &plan_objects().front()) {
      page += "\n```json\n{\n";
      for (const PlanKey& key : object.keys) {
        const bool last = &key == &object.keys.back();
        page += "  \"" + key.key + "\": " + key.example + (last ? "\n" : ",\n");
      }
      page += "}\n```\n";
    }
  }
  return page;
}

namespace {

/// Writes the lines of the keys of an object, and under each those of the objects that it holds.
class PlanLines {
 public:
  explicit PlanLines(const std::vector<Arch>& archs) : archs_(archs) {}

  void write(const PlanObject& object, const std::string& indent, const std::string& arch_words) {
    for (const PlanKey& key : object.keys) {
      if (!key.in_replies || !any_has(key)) continue;
      lines_ += indent + "- \"" + key.key + "\"" + (key.required ? " (needed): " : ": ");
      lines_ += key.key == "arch" ? "the lowest target, " + arch_words + ".\n" : line_of(key);
      for (const PlanObject* inner : objects_in(key.value)) write_object(*inner, indent + "  ");
    }
  }

  std::string take() { return std::move(lines_); }

 private:
  bool any_has(const PlanKey& key) const {
    return !key.needs || std::any_of(archs_.begin(), archs_.end(), key.needs);
  }

  std::string line_of(const PlanKey& key) const {
    std::string text = key.most ? value_text(value_for(key, archs_.back())) : bounded_text(key);
    if (key.most) {
      const std::string limits = lower_limits(key, archs_, key.most(archs_.back()));
      if (!limits.empty()) text += " (" + limits + ")";
    }
    text += ". " + key.meaning;
    if (key.needs) text += " Needs arch " + joined(archs_with(key, archs_), " or ") + ".";
    return text + "\n";
  }

  void write_object(const PlanObject& object, const std::string& indent) {
    const bool shown = std::any_of(object.keys.begin(), object.keys.end(), [&](const PlanKey& key) {
      return key.in_replies && any_has(key);
    });
    if (!shown) return;
    lines_ += indent + object.title + ":";
    if (!object.meaning.empty()) lines_ += " " + object.meaning;
    if (object.one_key) {
      std::vector<std::string> names;
      for (const PlanKey& key : object.keys) names.push_back("\"" + key.key + "\"");
      lines_ += " One of " + joined(names) + ".\n";
      return;
    }
    lines_ += "\n";
    write(object, indent, "");
  }

  const std::vector<Arch>& archs_;
  std::string lines_;
};

}  // namespace

std::string plan_lines(const std::vector<Arch>& archs, const std::string& arch_words) {
  PlanLines lines(archs);
  lines.write(plan_objects().front(), "", arch_words);
  return lines.take();
}

}  // namespace rekernel
