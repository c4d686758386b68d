"""Charts of other people's claims."""

from ..text import milliseconds, percent
from .marks import tip


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
