"""Charts of several searches: in which round the best was found, and a study."""

from ..text import milliseconds, percent
from .marks import tip


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
