"""Charts of a search: its run, times, tree, tokens, pass@k."""

from ..text import grouped, milliseconds, percent
from .marks import tip, verdict_class, with_ticks


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
    rows, signals = with_ticks(rows, "ms")
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
    return with_ticks(rows, "ms")


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
