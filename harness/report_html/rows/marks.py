"""What marks of all charts have: ticks, hints, references, classes of verdicts."""

import math

from ..text import percent, shortened


LONGEST_TIP = 320
SMALLEST_SHARE, LARGEST_SHARE = 1e-12, 1e6  # what lies beyond stands at the edge

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


def with_ticks(rows, field):
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


def reference_called(row, name):
    return next((one for one in row["references"] if one["id"] == name and "median_ns" in one), None)


def reference_for(row, divisor):
    """The reference that a divisor means for this row: a role, or an id."""
    return reference_called(row, row.get(divisor, divisor))


def percent_words(reference):
    return f"{percent(reference['percent'])} ± {(reference['high'] - reference['low']) / 2:.1f}"
