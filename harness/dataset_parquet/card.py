"""The data card: README.md with the header that Hugging Face reads."""

from . import columns, words


def _size_category(rows):
    bounds = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
              (10_000_000, "1M<n<10M"))
    return next((name for bound, name in bounds if rows < bound), "10M<n<100M")


def _header(about, made):
    rows = sum(count for splits in made.values() for count, _ in splits.values())
    lines = ["---", f"license: {about['license'].lower()}", f"pretty_name: \"{words.TITLE}\"", "language:", "- en",
             "- code", "task_categories:", "- text-generation", "tags:", "- cuda", "- gpu-kernels",
             "- code-generation", "- preferences", "- croissant", "size_categories:", f"- {_size_category(rows)}",
             "configs:"]
    for number, (config, splits) in enumerate(made.items()):
        lines.append(f"- config_name: {config}")
        if number == 0:
            lines.append("  default: true")
        lines.append("  data_files:")
        for split in splits:
            lines += [f"  - split: {split}", f"    path: {config}/{split}-*.parquet"]
    return "\n".join([*lines, "---", ""])


def _cell(value):
    return " ".join(str(value).split()).replace("|", "\\|").replace("<", "&lt;")


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    lines += ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _rows_by_config(made):
    return table(["config", "what", *columns.SPLITS],
                 [[config, columns.CONFIGS[config][0], *(splits.get(split, (0,))[0] for split in columns.SPLITS)]
                  for config, splits in made.items()])


def _rows_by_problem(about):
    counts = {}
    for one in about["made_of"]["rows"]:
        problem = one["problem"] or "(none that can be told)"
        entry = counts.setdefault((problem, one["split"]), {})
        entry[one["config"]] = entry.get(one["config"], 0) + one["rows"]
    configs = [config for config in columns.CONFIGS if any(config in entry for entry in counts.values())]
    return table(["problem", "split", *configs],
                 [[problem, split, *(entry.get(config, 0) for config in configs)]
                  for (problem, split), entry in sorted(counts.items())])


def _counts(about):
    made_of = about["made_of"]
    text = "\n".join(
        f"- by {what}: " + ", ".join(f"{_cell(one['name'])} {one['rows']}" for one in made_of[key])
        for what, key in (("verdict", "statuses"), ("device", "devices")))
    lengths = ", ".join(f"{one['from']} to {2 * one['from'] - 1}: {one['rows']}" for one in made_of["lengths"])
    times = ", ".join(f"{one['from'] / 1e3:g} to {2 * one['from'] / 1e3:g}: {one['rows']}" for one in made_of["times"])
    return (f"Candidates {text[2:]}\n- by bytes of code: {lengths}\n- by time in microseconds: {times}\n"
            f"- near duplicates of an earlier row: {made_of['near_duplicates']}\n")


def _searches(about):
    return table(["search", "problem", "events", "device", "models", "replies", "notes"],
                 [[one["name"], one["problem"], one["events"], one["device"], ", ".join(one["models"]),
                   one["replies"], one["notes"]] for one in about["searches"]])


def _families(about):
    return table(["family", "split", "problems"],
                 [[one["name"], one["split"], ", ".join(f"`{name}`" for name in one["problems"])]
                  for one in about["families"]])


def _judged_again(about):
    if not about["judged_again"]:
        return "No random rows of this data set have been judged again so far.\n"
    lines = []
    for one in about["judged_again"]:
        text = (f"- {one['judged']} of {one['drawn']} rows drawn at random (seed {one['seed']})"
                f" on {_cell(one.get('device', 'no device'))}: {one['same_status']} got the same verdict")
        if "median_difference_permille" in one:
            text += (f"; of {one['timed_on_the_same_device']} that were timed on the same kind of device, half differ"
                     f" by at most {one['median_difference_permille'] / 10:.1f}%, 95% by at most"
                     f" {one['p95_difference_permille'] / 10:.1f}%")
        lines.append(f"{text} ({one.get('measured', '')}, judge {one.get('judge', '')[:12]}).")
        lines += [f"  - {_cell(row['id'])}: {row['status']}, now {row['now']}" for row in one["changed"]]
    return "\n".join(lines) + "\n"


def _columns(made):
    parts = []
    for config in made:
        rows = [[f"`{name}`", str(kind).replace("element: ", "").replace("item: ", ""), what]
                for name, kind, what in columns.CONFIGS[config][1]]
        parts.append(f"### {config}\n\n{table(['column', 'type', 'what'], rows)}")
    return "\n".join(parts)


def _list(lines):
    return "\n".join(f"- {line}" for line in lines) + "\n"


def text(about, made):
    return f"""{_header(about, made)}# {words.TITLE}

{words.DESCRIPTION}

```python
{words.LOADING}
```

## Rows

{_rows_by_config(made)}
{_rows_by_problem(about)}
{_counts(about)}
## How it was collected

{words.COLLECTION}

{_searches(about)}
{words.ANNOTATION} The sources that judge have the digest `{about['judge']}` today; each row's `judge` says what
judged it.

## Splits

A problem's rows are all in one split, and so are those of all problems of its family, so that no kernel of a test
problem is in training. A problem of no family is its own; a hash of its id decides.

{_families(about)}
## Near duplicates

Of each code, the set of five tokens in a row is sketched by MinHash with 128 functions; comments and layout do not
count. A row whose estimated Jaccard similarity with an earlier one, in any split, is at least
{about['near_duplicate_threshold']} names it in `near_duplicate_of`. Leave those rows out for one row of each kind.

## Contamination

`contamination_keys` names the problems of KernelBench in the family of a row's problem ("kernelbench/level1/50").
Whoever reports figures on KernelBench leaves out the rows with the keys that they report on.

## Judged again

{_judged_again(about)}
`rekernel evaluate --from-dataset FOLDER --row ID` compiles and judges a row's own bytes on the GPU that is there.

## Uses

{words.USE_CASES}

## Biases

{_list(words.BIASES)}
## Known limits

{_list(words.LIMITS)}
## People and society

Personal and sensitive information: {words.PERSONAL}

{words.SOCIAL_IMPACT}

## Licence and maintenance

[{about['license']}]({about['license_url']}), but for rows whose `license` says otherwise. {words.MAINTENANCE}

## Columns

{_columns(made)}"""
