"""Charts of a device: bars beside references and the ceiling, fast_p, mutants, bounds, noise."""

from ..text import counted, milliseconds, percent, plain
from .marks import LARGEST_SHARE, SMALLEST_SHARE, percent_words, reference_called, reference_for, tip


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
                strongest = reference_called(row, row.get("strongest"))
                entry = {
                    "kind": "kernel",
                    "label": row["kernel"],
                    "value": reference["percent"],
                    "low": reference["low"],
                    "high": reference["high"],
                    "words": percent_words(reference),
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
