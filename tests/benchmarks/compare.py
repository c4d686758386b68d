#!/usr/bin/env python3
"""Compares two runs of rekernel_benchmarks: how much longer, or less long, does each benchmark take?

    rekernel_benchmarks --benchmark_repetitions=20 --benchmark_enable_random_interleaving=true \
        --benchmark_out=before.json --benchmark_out_format=json
    compare.py before.json after.json

Exit status: 0; 1 with --fail-above PERCENT where a benchmark is slower by more than that for certain;
2 for input that cannot be read.
"""

import argparse
import json
import math
import sys


def rank(samples, tail):
    """The rank whose order statistics from either end enclose the median but for `tail` on each side.

    As median_rank of harness/evaluation/statistics.h: the largest r with P(B < r) <= tail, B binomial
    with p = 1/2; 1 where even the whole range is exceeded more often.
    """
    below, found = 0.0, 1
    for r in range(1, samples // 2 + 1):
        below += math.comb(samples, r - 1) * 0.5 ** samples
        if below > tail:
            break
        found = r
    return found


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def interval(values):
    """Covers the median in at least 97.5% of all measurements: two of them are 95% together."""
    values = sorted(values)
    r = rank(len(values), 0.0125)
    return values[r - 1], values[-r]


def change(before, after):
    """Percent by which the time changed, lowest and highest that the intervals allow."""
    before_low, before_high = interval(before)
    after_low, after_high = interval(after)
    return (100 * (median(after) / median(before) - 1), 100 * (after_low / before_high - 1),
            100 * (after_high / before_low - 1))


def times(path):
    """Processor time of every repetition in nanoseconds, by benchmark."""
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    found = {}
    for one in data["benchmarks"]:
        if one.get("run_type", "iteration") == "iteration":
            found.setdefault(one["name"], []).append(one["cpu_time"] * units[one["time_unit"]])
    return found


def shown(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def row(name, before, after):
    value, low, high = change(before, after)
    if low > 0:
        verdict = "slower"
    elif high < 0:
        verdict = "faster"
    else:
        verdict = "no difference seen"
    return (name, shown(median(before)), shown(median(after)),
            f"{value:+.1f}% ({low:+.1f} to {high:+.1f})", verdict)


def main(arguments):
    parser = argparse.ArgumentParser(description="Compares two runs of rekernel_benchmarks.")
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--fail-above", type=float, metavar="PERCENT",
                        help="exit with 1 where even the low end of a change is above this")
    options = parser.parse_args(arguments)
    try:
        before, after = times(options.before), times(options.after)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    names = sorted(name for name in before if name in after)
    if not names:
        print("compare.py: the two files have no benchmark in common", file=sys.stderr)
        return 2
    rows = [row(name, before[name], after[name]) for name in names]
    widths = [max(len(cells[i]) for cells in rows) for i in range(4)]
    for cells in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(cells, [*widths, 0])).rstrip())
    for name in sorted(set(before) ^ set(after)):
        print(f"{name}: only {'before' if name in before else 'after'}")
    fewest = min(len(one[name]) for one in (before, after) for name in names)
    if fewest < 8:
        print(f"only {fewest} repetitions: an interval of 97.5% takes 8 (--benchmark_repetitions=20)")
    limit = options.fail_above
    slower = limit is not None and any(change(before[n], after[n])[1] > limit for n in names)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
