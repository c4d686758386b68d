"""The rows of every chart, from the report's data. Nothing is measured or derived here but places on
a page: figures come from the records, or were derived by the program that read them."""

import math

from .text import (byte_count, counted, grouped, milliseconds, percent, plain, scientific, shortened)

LONGEST_TIP = 320

# What became of a candidate, in the four words of charts.VERDICTS. A status that is new is a refusal.
_NEVER_RAN = {"invalid_plan", "compile_failed", "launch_failed"}
_CRASHED = {"crashed", "timed_out"}


def log_ticks(values):
    """1, 2, 5, 10, … from below the smallest of the values to above the largest; of many decades the
    powers of ten alone."""
    values = [value for value in values if value > 0] or [1]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    first = max(index for index, tick in enumerate(ticks) if tick <= min(values) * 1.0001)
    last = min(index for index, tick in enumerate(ticks) if tick >= max(values) * 0.9999)
    return [float(f"{tick:.1g}") for tick in ticks[first:max(last, first + 1) + 1]]


def _with_ticks(rows, field):
    """Rows, and the ticks of their logarithmic axis as the chart's signal."""
    return rows, {"ticks": log_ticks([row[field] for row in rows if field in row])}


def verdict_class(status):
    if status == "passed":
        return "passed"
    if status in _NEVER_RAN:
        return "never ran"
    return "crashed or hung" if status in _CRASHED else "refused"


def tip(title, *facts, text=""):
    """What a mark says on hover: a title, facts as (name, value), and words."""
    return {
        "title": shortened(title, 120),
        "facts": [[name, shortened(value, 160)] for name, value in facts if value],
        "text": shortened(text, LONGEST_TIP),
    }


def _reference(row, name):
    return next((one for one in row["references"] if one["id"] == name and "median_ns" in one), None)


def reference_for(row, divisor):
    """The reference that a divisor means for this row: a role, or an id."""
    return _reference(row, row.get(divisor, divisor))


def _percent_words(reference):
    return f"{percent(reference['percent'])} ± {(reference['high'] - reference['low']) / 2:.1f}"


def divisors(report, device):
    """(id, words) of what times can be divided by on this device, the headline first."""
    names = {
        "headline": "headline library",
        "strongest": "strongest library",
        "pytorch_eager": "PyTorch eager",
        "pytorch_compile": "torch.compile",
    }
    there = ["headline", "strongest"] + sorted({
        key for problem in report.problems for key in problem.get("published", {}) if key != "note"},
        reverse=True)
    return [(key, names.get(key, key)) for key in there
            if any(reference_for(row, key) for row in device.rows)]


def _fastest(device, problem, most):
    rows = [row for row in device.rows_of(problem)
            if row["median_ns"] > 0 and row["status"] == "passed"]
    return sorted(rows, key=lambda row: row["median_ns"])[:most]


def _published_row(report, problem, divisor):
    figures = problem.get("published", {})
    key = divisor if divisor in figures else "pytorch_eager" if divisor in (
        "headline", "strongest") else ""
    if key not in figures:
        return None
    divided = {"pytorch_eager": "PyTorch eager", "pytorch_compile": "torch.compile"}.get(key, key)
    note = f" ({figures['note']})" if "note" in figures else ""
    where = report.published["device"]
    return {
        "kind": "published",
        "label": f"published, {where}{note}",
        "value": figures[key],
        "words": percent(figures[key]),
        "tip": tip(f"published for {problem['id']}", ("%", percent(figures[key])),
                   ("divided by", divided), ("on", where), ("note", figures.get("note", ""))),
    }


def reference_bars(report, device, most_kernels):
    """% of each divisor by problem: the fastest kernels, and what was published."""
    rows = []
    for divisor, words in divisors(report, device):
        for problem in report.problems:
            group = []
            for row in _fastest(device, problem["id"], most_kernels):
                reference = reference_for(row, divisor)
                if not reference:
                    continue
                strongest = _reference(row, row.get("strongest"))
                entry = {
                    "kind": "kernel",
                    "label": row["kernel"],
                    "value": reference["percent"],
                    "low": reference["low"],
                    "high": reference["high"],
                    "words": _percent_words(reference),
                    "href": report.kernel_page(row),
                    "tip": tip(f"{row['kernel']} for {row['problem']}",
                               (f"% of {reference['id']}",
                                f"{percent(reference['percent'])} "
                                f"({percent(reference['low'])} to {percent(reference['high'])})"),
                               ("kernel", f"{milliseconds(row['median_ns'])} ms"),
                               (reference["id"], f"{milliseconds(reference['median_ns'])} ms"),
                               ("strongest library", strongest and
                                f"{percent(strongest['percent'])} of {strongest['id']}"),
                               ("badges", ", ".join(row["badges"]))),
                }
                if divisor == "headline" and strongest and strongest["id"] != reference["id"]:
                    entry["strongest"] = strongest["percent"]
                group.append(entry)
            published = _published_row(report, problem, divisor) if group else None
            if published:
                group.append(published)
            if group:
                group.insert(0, {"kind": "head", "label": problem["id"]})
            for entry in group:
                rows.append({"row": f"{len(rows):05}", "problem": problem["id"],
                             "divisor": divisor, **entry})
    return rows


def ceiling_bars(report, device, most_kernels):
    rows = []
    for problem in report.problems:
        group = []
        for row in _fastest(device, problem["id"], most_kernels):
            if "percent_of_ceiling" not in row:
                continue
            group.append({
                "kind": "kernel",
                "label": row["kernel"],
                "value": row["percent_of_ceiling"],
                "words": percent(row["percent_of_ceiling"]),
                "href": report.kernel_page(row),
                "tip": tip(f"{row['kernel']} for {row['problem']}",
                           ("% of ceiling", percent(row["percent_of_ceiling"])),
                           ("ceiling", f"{milliseconds(row['ceiling_ns'])} ms"),
                           ("% of speed of light", "percent_of_speed_of_light" in row and
                            percent(row["percent_of_speed_of_light"])),
                           ("kernel", f"{milliseconds(row['median_ns'])} ms")),
            })
        if group:
            group.insert(0, {"kind": "head", "label": problem["id"]})
            if _published_row(report, problem, "headline"):
                group.append({"kind": "blank"})  # in step with reference_bars
        for entry in group:
            rows.append({"row": f"{len(rows):05}", "problem": problem["id"], **entry})
    return rows


def claimed_words(figure):
    """What was claimed, or measured, of one figure."""
    if figure["unit"] == "ms":
        return f"{figure['value']:.4g} ms"
    return f"{figure['value']:.3g}× {figure['over']}"


def measured_words(row, figure):
    if figure["unit"] == "ms":
        return f"{milliseconds(row['median_ns'])} ms" if row["median_ns"] else ""
    measured = figure.get("measured")
    if not measured:
        return ""
    return (f"{measured['value'] / 100:.3g}× {figure['reference']} "
            f"[{measured['low'] / 100:.3g}, {measured['high'] / 100:.3g}]")


def claim_problem(row):
    """A claim's problem with the sizes at which it was judged."""
    sizes = ", ".join(f"{axis} {size}" for axis, size in row["axes"].items())
    return row["problem"] + (f" ({sizes})" if sizes else "")


def claim_reference(row, name):
    """The row's time in percent of a reference's; of "library" beside the fastest one."""
    timed = [one for one in row["references"] if not one["unavailable"] and one["median_ns"]]
    if name == "library":
        timed = [one for one in timed if not one["id"].startswith("pytorch")]
        return min(timed, key=lambda one: one["median_ns"], default=None)
    return next((one for one in timed if one["id"] == name), None)


def claim_bars(record):
    """What was claimed beside what was measured, in percent of the same reference's time ÷ the program's."""
    rows = []
    for row in record["rows"]:
        figures = [figure for figure in row["claimed"] if figure["unit"] == "x"]
        if not figures:
            continue
        verdict = row["status"] or row["outcome"]
        rows.append({"kind": "head", "label": f"{row['name']}: {verdict}"})
        for figure in figures:
            facts = (("claimed", claimed_words(figure)), ("measured", measured_words(row, figure)),
                     ("holds", "yes" if figure["holds"] else "no"), ("verdict", verdict),
                     ("problem", claim_problem(row)), ("on", row["device"]))
            told = tip(f"{row['name']}: {figure['quantity']}", *facts, text=row["reason"])
            measured = figure.get("measured")
            if measured:
                rows.append({"kind": "kernel", "label": f"measured, over {figure['reference']}",
                             "value": measured["value"], "low": measured["low"],
                             "high": measured["high"], "words": percent(measured["value"]), "tip": told})
            rows.append({"kind": "published", "label": f"claimed, over {figure['over']}",
                         "value": 100 * figure["value"], "words": percent(100 * figure["value"]),
                         "tip": told})
    return [{"row": f"{number:05}", **row} for number, row in enumerate(rows)]


def kernel_bars(row):
    """One kernel beside everything that was timed beside it, and both bounds."""
    rows = []
    for reference in row["references"]:
        if "median_ns" not in reference:
            continue
        role = ", the headline" if reference["id"] == row.get("headline") else ""
        rows.append({
            "row": f"{len(rows):05}", "kind": "kernel",
            "label": f"% of {reference['id']}{role}",
            "value": reference["percent"], "low": reference["low"], "high": reference["high"],
            "words": _percent_words(reference),
            "tip": tip(reference["id"], ("time", f"{milliseconds(reference['median_ns'])} ms"),
                       ("interval", f"{percent(reference['low'])} to {percent(reference['high'])}"),
                       ("engine", reference["details"])),
        })
    for bound, name, of in (("ceiling", "ceiling", "at the rates that libraries reach"),
                            ("speed_of_light", "speed of light", "the least for this device")):
        if f"percent_of_{bound}" in row:
            rows.append({
                "row": f"{len(rows):05}", "kind": "kernel", "label": f"% of {name}",
                "value": row[f"percent_of_{bound}"], "words": percent(row[f"percent_of_{bound}"]),
                "tip": tip(name, ("time", f"{milliseconds(row[f'{bound}_ns'])} ms, {of}")),
            })
    return rows


# --- Searches ------------------------------------------------------------------------------------


def _candidate_tip(search, candidate):
    outcome = candidate["recorded"]
    facts = [("verdict", outcome["status"])]
    if "median_ns" in outcome:
        facts.append(("time", f"{milliseconds(outcome['median_ns'])} ms"))
        if outcome["permille_of_reference"]:
            facts.append((f"% of {outcome['reference']}",
                          percent(outcome["permille_of_reference"] / 10)))
        facts.append(("badges", ", ".join(outcome["badges"])))
    for again in candidate.get("today", []):
        if "median_ns" in again:
            facts.append((f"again, {again['folder']}", f"{milliseconds(again['median_ns'])} ms"))
    text = outcome["message"] if outcome["status"] != "passed" else candidate["idea_text"]
    return tip(f"{candidate['id']}: {candidate['idea']}", *facts, text=text)


def run_rows(report, search, page=""):
    """The published times of a run beside those of its re-creation. `page`: where clicks lead."""
    rows = []
    published = search["published"]
    by_id = {candidate["id"]: candidate for candidate in search["candidates"]}
    there = report.published["device"] if report.published else "another device"
    series = [f"published, {there}"]

    def add(name, number, nanoseconds, link, told):
        if name not in series:
            series.append(name)
        rows.append({"part": "round", "series": name, "round": number, "ms": nanoseconds / 1e6,
                     "href": f"{page}#{link}" if link else "", "tip": told})

    best = {one["round"]: one["best"] for one in search["rounds"]}
    for one in published["rounds"]:
        add(series[0], one["round"], one["time_ns"], best.get(one["round"], ""),
            tip(f"round {one['round']}, published",
                ("time", f"{milliseconds(one['time_ns'])} ms"), ("published", f"{one['percent']}%"),
                ("these times give", percent(one["permille_by_times"] / 10)),
                ("on", there), text=one["idea"]))
    headlines = {}
    for one in search["rounds"]:
        candidate = by_id.get(one["best"])
        if not candidate:
            continue
        told = _candidate_tip(search, candidate)
        name = f"recorded, {candidate['device']}"
        headlines.setdefault(name, candidate["recorded"])
        add(name, one["round"], one["best_ns"], one["best"], told)
    for one in search["rounds"]:
        candidate = by_id.get(one["best"])
        for again in candidate["today"] if candidate else []:
            if "median_ns" in again:
                add(f"measured again, {report.device_name(again['folder'])}", one["round"],
                    again["median_ns"], one["best"], _candidate_tip(search, candidate))
    rows.append({"part": "reference", "series": series[0], "ms": published["reference_ns"] / 1e6,
                 "label": f"published reference {milliseconds(published['reference_ns'])} ms"})
    for name, outcome in headlines.items():
        if outcome.get("reference_ns"):
            rows.append({
                "part": "reference", "series": name, "ms": outcome["reference_ns"] / 1e6,
                "label": f"{outcome['reference']} {milliseconds(outcome['reference_ns'])} ms"})
    rows, signals = _with_ticks(rows, "ms")
    return rows, {**signals, "series": series}


def _places(search):
    """x of every candidate: its round, and beside it for others of the round."""
    by_round = {}
    for candidate in search["candidates"]:
        by_round.setdefault(candidate["round"], []).append(candidate["id"])
    places = {}
    for number, ids in by_round.items():
        for index, name in enumerate(ids):
            places[name] = (number, index, len(ids))
    return places


def times_rows(search, page=""):
    rows = []
    places = _places(search)
    shown = None
    for candidate in search["candidates"]:
        number, index, count = places[candidate["id"]]
        outcome = candidate["recorded"]
        entry = {
            "part": "candidate", "id": candidate["id"],
            "x": number + 0.6 * ((index + 0.5) / count - 0.5),
            "verdict": verdict_class(outcome["status"]),
            "href": f"{page}#{candidate['id']}", "tip": _candidate_tip(search, candidate),
        }
        if "median_ns" in outcome:
            entry["ms"] = outcome["median_ns"] / 1e6
            shown = outcome
        rows.append(entry)
        for again in candidate.get("today", []):
            if "median_ns" in again:
                rows.append({**entry, "part": "again", "ms": again["median_ns"] / 1e6})
    best = [{"part": "best", "x": one["round"] - 0.4, "ms": one["best_so_far_ns"] / 1e6}
            for one in search["rounds"] if one["best_so_far_ns"] > 0]
    if best:
        rows += [*best, {**best[-1], "x": best[-1]["x"] + 0.8}]
    if any(row["part"] == "candidate" and "ms" not in row for row in rows):
        rows.append({"part": "lane", "label": "not passed"})
    if shown and shown["reference_ns"] > 0:
        rows.append({"part": "reference", "ms": shown["reference_ns"] / 1e6,
                     "label": f"{shown['reference']} {milliseconds(shown['reference_ns'])} ms"})
    return _with_ticks(rows, "ms")


def line_of_best(search):
    """The best candidate, the first kernel that its prompt showed, and so on to the start."""
    by_id = {candidate["id"]: candidate for candidate in search["candidates"]}
    line = []
    name = search["metrics"]["best"]
    while name in by_id and name not in line:
        line.append(name)
        parents = [one for one in by_id[name]["parents"] if one in by_id]
        name = parents[0] if parents else ""
    return line


def tree_rows(search, page=""):
    rows = []
    places = _places(search)
    tallest = max((count for _, _, count in places.values()), default=1)
    at = {name: (number, index - count / 2 + tallest / 2)
          for name, (number, index, count) in places.items()}
    line = line_of_best(search)
    survivors = {name for one in search["rounds"] for name in one["survivors"]}
    edges = 0
    for candidate in search["candidates"]:
        x1, y1 = at[candidate["id"]]
        for parent in candidate["parents"]:
            if parent not in at or parent == candidate["id"]:
                continue
            x0, y0 = at[parent]
            edges += 1
            on_line = any((child, of) == (candidate["id"], parent)
                          for child, of in zip(line, line[1:]))
            middle = (x0 + x1) / 2
            rows += [{"part": "edge", "edge": edges, "order": order, "x": x, "y": y,
                      "line_of_best": on_line}
                     for order, (x, y) in enumerate(
                         [(x0, y0), (middle, y0), (middle, y1), (x1, y1)])]
    for candidate in search["candidates"]:
        x, y = at[candidate["id"]]
        rows.append({
            "part": "candidate", "id": candidate["id"], "x": x, "y": y,
            "verdict": verdict_class(candidate["recorded"]["status"]),
            "survived": candidate["id"] in survivors,
            "best": candidate["id"] == search["metrics"]["best"],
            "href": f"{page}#{candidate['id']}", "tip": _candidate_tip(search, candidate),
        })
    return rows, {"tree_height": max(60, 40 * tallest)}


def token_rows(search):
    rows = []
    for one in search["rounds"]:
        for kind, key in (("prompts", "prompt_tokens"), ("replies", "completion_tokens")):
            name = "seeds" if one["round"] < search["first_round"] else str(one["round"])
            if name == "seeds" and one[key] == 0:
                continue
            rows.append({"round": name, "kind": kind, "tokens": one[key],
                         "tip": tip(f"round {name}", (kind, f"{grouped(one[key])} tokens"))})
    return rows


def at_k_rows(search, key, words):
    return [{"k": int(k), "value": value, "words": words(value),
             "tip": tip(f"k = {k}", ("value", words(value)))}
            for k, value in search["metrics"][key].items()]


def distribution_rows(report):
    rows = []
    for search in report.searches:
        metrics = search["metrics"]
        if not metrics["best"]:
            continue
        last = max((one["round"] for one in search["rounds"]), default=0)
        rows.append({
            "kind": "search", "name": search["name"], "problem": search["problem"],
            "device": report.device_folder(search["device"]),
            "round": metrics["best_round"], "count": 1, "href": search["page"],
            "tip": tip(search["name"], ("best found in", f"round {metrics['best_round']} of {last}"),
                       ("best", f"{milliseconds(metrics['best_ns'])} ms"),
                       ("problem", search["problem"])),
        })
    if not rows:
        return rows
    return _beside_published_rounds(report, rows)


def _beside_published_rounds(report, rows):
    """The rows of searches, the rounds of the published statement, and a place for every round."""
    rows = list(rows)
    published = (report.published or {}).get("searches", {}).get("best_found_in_rounds", [])
    last = max([row["round"] for row in rows] + published)
    for number in published:
        rows.append({"kind": "published", "round": number,
                     "tip": tip("published", text="most of the best kernels were first found in "
                                "these rounds, of 5")})
    # Every round has its place, also those in which no best kernel was found.
    rows += [{"kind": "place", "round": number} for number in range(last + 1)]
    return sorted(rows, key=lambda row: row["round"])


def _with_profiles(search):
    return "with profiles" if search["profiled"] else "without profiles"


def study_rows(report, study):
    """As distribution_rows(), of the searches of a study alone."""
    pages = {search["name"]: search["page"] for search in report.searches}
    rows = []
    for search in study["searches"]:
        best = search["best"]
        if not best:
            continue
        rows.append({
            "kind": "search", "name": search["name"], "problem": search["problem"],
            "device": report.device_folder(search["device"]),
            "round": best["round"], "count": 1, "href": pages.get(search["name"], ""),
            "tip": tip(search["name"],
                       ("best found in", f"round {best['round']} of {study['rounds']}"),
                       ("best", f"{milliseconds(best['time_ns'])} ms"),
                       ("problem", search["problem"]), ("prompts", _with_profiles(search))),
        })
    return _beside_published_rounds(report, rows) if rows else rows


def factor(value):
    return f"{value:.2f}" if value else "–"


def beside_best(search, other):
    """How many times as long as the search's best."""
    return factor(other["time_ns"] / search["best"]["time_ns"] if other else 0)


def so_far_rows(report, study):
    """After each round, the time of the last best divided by that of the best so far, in percent."""
    rows = []
    for search in study["searches"]:
        for number, best in enumerate(search["best_so_far"]):
            if not best:
                continue
            share = 100 * search["best"]["time_ns"] / best["time_ns"]
            rows.append({
                "kind": _with_profiles(search), "name": search["name"],
                "problem": search["problem"], "device": report.device_folder(search["device"]),
                "round": number, "value": share,
                "tip": tip(f"{search['problem']}, after round {number}",
                           ("best so far", f"{milliseconds(best['time_ns'])} ms"),
                           ("of the last best", percent(share)),
                           ("prompts", _with_profiles(search))),
            })
    return rows


def counts_text(entries, name=lambda one: one["name"]):
    """"passed 281, wrong_result 8"."""
    return ", ".join(f"{name(one)} {grouped(one['rows'])}" for one in entries)


def length_text(one):
    return f"from {byte_count(one['from'])}:"


def time_text(one):
    """Powers of two, in milliseconds."""
    return f"from {milliseconds(one['from'])}:"


def rows_by_problem(made_of):
    """Configs as headings, and for each problem its split and how many rows of each."""
    configs, problems = [], {}
    for one in made_of["rows"]:
        if one["config"] not in configs:
            configs.append(one["config"])
        problem = problems.setdefault((one["problem"], one["split"]), {})
        problem[one["config"]] = problem.get(one["config"], 0) + one["rows"]
    return configs, [(problem or "none that can be told", split, [counts.get(config, 0) for config in configs])
                     for (problem, split), counts in sorted(problems.items())]


# --- A kernel ------------------------------------------------------------------------------------


def plan_steps(kernel):
    """The plan's steps as (name, facts, buffers used)."""
    steps = []
    for launch in kernel["plan"]["launches"]:
        if "memset" in launch:
            steps.append({"name": "memset", "facts": [
                ("buffer", launch["memset"]), ("every byte", str(launch["value"]))],
                "buffers": [(launch["memset"], "set")]})
            continue
        buffers = []
        for argument in launch["args"]:
            if isinstance(argument, str):
                buffers.append((argument, "pointer"))
            elif "tensor_map" in argument:
                buffers.append((argument["tensor_map"]["of"], "tensor map"))
        grid = " × ".join(
            f"{extent['per_sm']} per multiprocessor" if isinstance(extent, dict) else grouped(extent)
            for extent in launch["grid"])
        facts = [("grid", grid), ("block", " × ".join(map(str, launch["block"])))]
        if launch.get("cluster"):
            facts.append(("cluster", " × ".join(map(str, launch["cluster"]))))
        if launch.get("dynamic_shared_bytes"):
            facts.append(("dynamic shared memory", byte_count(launch["dynamic_shared_bytes"])))
        for flag in ("cooperative", "programmatic_launch"):
            if launch.get(flag):
                facts.append((flag.replace("_", " "), "yes"))
        scalars = [", ".join(f"{kind} {value}" for kind, value in argument.items())
                   for argument in launch["args"]
                   if isinstance(argument, dict) and "tensor_map" not in argument]
        if scalars:
            facts.append(("scalars", "; ".join(scalars)))
        steps.append({"name": launch["kernel"], "facts": facts, "buffers": buffers})
    return steps


def plan_rows(report, kernel):
    """Lanes of buffers, in the order: inputs, workspaces, output."""
    problem = report.problem(kernel["problem"])
    kinds, sizes = {}, {}
    for tensor in problem["tensors"]:
        if tensor["role"] == "input":
            kinds[tensor["name"]] = "input, read only"
            sizes[tensor["name"]] = tensor["bytes"]
    for name, size in kernel["plan"].get("workspace", {}).items():
        kinds[name], sizes[name] = "workspace", size
    for tensor in problem["tensors"]:
        if tensor["role"] != "input":
            kinds[tensor["name"]], sizes[tensor["name"]] = "output", tensor["bytes"]
    label = {name: f"{name}, {byte_count(sizes[name])}" for name in kinds}
    order = list(kinds)
    steps = plan_steps(kernel)
    step_names = [f"{index} {step['name']}" for index, step in enumerate(steps, 1)]
    used = {name: [index for index, step in enumerate(steps)
                   if any(buffer == name for buffer, _ in step["buffers"])] for name in order}
    rows = [{"part": "lane", "buffer": label[name], "first": step_names[where[0]],
             "last": step_names[where[-1]]} for name, where in used.items() if where]
    for name, step in zip(step_names, steps):
        touched = sorted(order.index(buffer) for buffer, _ in step["buffers"] if buffer in kinds)
        if touched:
            rows.append({"part": "step", "step": name, "top": label[order[touched[0]]],
                         "bottom": label[order[touched[-1]]], "tip": tip(name, *step["facts"])})
        for buffer, how in dict(step["buffers"]).items():
            if buffer in kinds:
                rows.append({
                    "part": "use", "step": name, "buffer": label[buffer],
                    "kind": "set to a byte" if how == "set" else kinds[buffer],
                    "tip": tip(f"{name}: {buffer}", ("is", kinds[buffer]), ("as", how),
                               ("size", byte_count(sizes[buffer])))})
    return rows


def sample_rows(row):
    """Every sample as its distance from the median of its row; quartiles where they are recorded."""
    rows = []

    def add(name, median, low, high, samples):
        who = f"{name}\n{milliseconds(median)} ms"
        if low and high:
            rows.append({
                "part": "quartiles", "who": who, "low": 100 * (low - median) / median,
                "high": 100 * (high - median) / median,
                "tip": tip(name, ("middle half of the samples",
                                  f"{milliseconds(low)} to {milliseconds(high)} ms"))})
        for index, sample in enumerate(samples, 1):
            rows.append({
                "part": "sample", "who": who, "percent": 100 * (sample - median) / median,
                "tip": tip(f"{name}, sample {index}", ("time", f"{milliseconds(sample)} ms"))})

    if row["median_ns"] > 0:
        add(row["kernel"], row["median_ns"], row["low_ns"], row["high_ns"], row["samples_ns"])
    for reference in row["references"]:
        if reference.get("samples_ns"):
            add(reference["id"], reference["median_ns"], 0, 0, reference["samples_ns"])
    return rows


_MEASURES = (
    ("tolerance", "element: 1e-2 + 1e-2·|truth|", lambda bounds: 1.0),
    ("largest", "largest error ÷ rms(truth)", lambda bounds: bounds["largest"]),
    ("rms", "‖error‖ ÷ ‖truth‖", lambda bounds: bounds["rms"]),
    ("strict", "badge strict: 1e-4 of both", lambda bounds: 1.0),
)
SMALLEST_SHARE, LARGEST_SHARE = 1e-12, 1e6  # what lies beyond stands at the edge


def error_rows(report, device, kernel):
    bounds = report.problem(kernel["problem"])["tolerance"]
    kinds = {"library": "library", "scaffold": "definition"}
    rows = []
    for one in device.errors_of(kernel["problem"]):
        kind = "this kernel" if (one["source"] == "committed" and
                                 one["name"] == kernel["name"]) else kinds.get(one["source"])
        if not kind:
            continue
        for key, words, bound_of in _MEASURES:
            if one[key] is None or bound_of(bounds) <= 0:
                continue
            share = one[key] / bound_of(bounds)
            rows.append({
                "kind": kind, "measure": words, "share": max(share, SMALLEST_SHARE),
                "tip": tip(one["name"], (words, scientific(one[key])),
                           ("share of the bound", f"{share:.2g}"))})
    return rows


def roofline_rows(report, device, kernel):
    """Roofs from every rate that the record names, the kernel, and the fastest of each problem."""
    rows = []
    bandwidth = device.ceilings.get("copy_bytes_per_s", 0)
    peaks = {key: value for key, value in device.ceilings.items()
             if key.endswith("_flops_per_s") and value > 0}
    if not bandwidth or not peaks:
        return rows, {}
    points = []
    own = device.row(kernel["problem"], kernel["name"])
    for row in [own, *(row for row in device.fastest if row is not own)] if own else []:
        problem = report.problem(row["problem"])
        if not problem or row.get("operations_per_s", 0) <= 0:
            continue
        this = (row["problem"], row["kernel"]) == (kernel["problem"], kernel["name"])
        points.append({
            "part": "kernel", "this": this, "label": row["kernel"],
            "intensity": problem["operations"] / problem["min_bytes"],
            "rate": row["operations_per_s"] / 1e12,
            "href": "" if this else "../../" + report.kernel_page(row),
            "tip": tip(f"{row['kernel']} for {row['problem']}",
                       ("operations", f"{row['operations_per_s'] / 1e12:.3g} TFLOP/s"),
                       ("bytes", f"{row['bytes_per_s'] / 1e9:.0f} GB/s"))})
    if not any(point["this"] for point in points):
        return rows, {}
    smallest = min(point["intensity"] for point in points) / 3
    top = max(peaks.values())
    largest = max([point["intensity"] for point in points] + [3 * top / bandwidth])
    for key, peak in peaks.items():
        name = key.removesuffix("_flops_per_s").upper()
        ridge = peak / bandwidth
        for x in (smallest, ridge, largest):
            rows.append({"part": "roof", "roof": key, "intensity": x,
                         "rate": min(peak, x * bandwidth) / 1e12})
        rows.append({"part": "name", "intensity": largest, "rate": peak / 1e12,
                     "label": f"{name} product, {peak / 1e12:.0f} TFLOP/s"})
    slope = math.sqrt(smallest * top / bandwidth)  # half way up
    rows.append({"part": "name", "intensity": slope, "rate": slope * bandwidth / 1e12,
                 "label": f"copy, {bandwidth / 1e12:.2f} TB/s"})
    for point in points:
        point["at_right"] = point["intensity"] ** 2 > smallest * largest
    return _with_ticks(rows + points, "rate")


def fast_p_rows(device):
    steps = device.fast_p
    if not steps:
        return []
    rows = []
    for one in steps:
        rows.append({
            "p": one["p"], "value": one["value"], "step": True,
            "tip": tip(f"p = {one['p']:.3g}",
                       ("share", f"{percent(100 * one['value'])} of "
                        f"{counted(one['problems'], 'problem')}"))})
    rows.append({"p": max(1.15 * steps[-1]["p"], 2), "value": steps[-1]["value"], "step": False})
    return rows


# --- The judge -----------------------------------------------------------------------------------


def matrix_rows(report, device):
    """Mutants by problem and by the check that caught them, the busiest check first."""
    cells, sums = {}, {}
    for outcome in device.mutants:
        mutant = report.mutants.get(outcome["id"])
        if not mutant:
            continue
        check = plain(outcome["caught_by"]).replace("`", "") if outcome["as_it_must"] else "NOT CAUGHT"
        cells[check, mutant["problem"]] = cells.get((check, mutant["problem"]), 0) + 1
        sums[check] = sums.get(check, 0) + 1
    problems = [problem["id"] for problem in report.problems]
    rows = [{"check": check, "problem": problem, "mutants": count,
             "tip": tip(check, ("mutants caught", str(count)), ("of", problem))}
            for (check, problem), count in cells.items()]
    return sorted(rows, key=lambda row: (-sums[row["check"]], row["check"],
                                         problems.index(row["problem"])))


def bound_rows(report, device):
    rows = []
    for one in device.errors:
        if one["source"] == "scaffold":
            continue
        share = one["share_of_bounds"]
        rows.append({
            "kind": one["source"], "problem": one["problem"],
            "share": LARGEST_SHARE if share is None
            else min(max(share, SMALLEST_SHARE), LARGEST_SHARE),
            "tip": tip(f"{one['source']}: {one['name']}", ("problem", one["problem"]),
                       ("share of the bounds", "infinite" if share is None else f"{share:.2g}"),
                       ("verdict", one["status"]))})
    order = [problem["id"] for problem in report.problems]
    return sorted(rows, key=lambda row: order.index(row["problem"]))


def noise_rows(experiment):
    rows = []
    for number, one in enumerate(experiment["intervals"], 1):
        rows.append({
            "run": number, "value": one["value"] - 100, "low": one["low"] - 100,
            "high": one["high"] - 100, "covers": one["low"] <= 100 <= one["high"],
            "tip": tip(f"measurement {number}", ("ratio", f"{one['value']:.2f}%"),
                       ("interval", f"{one['low']:.2f}% to {one['high']:.2f}%"))})
    return rows
