"""A log of rewards from the judge, and the same evaluations again on another day.

rewards.py LOG [--count 1000]      evaluates what is not in the log yet
rewards.py LOG --again NEW         evaluates the same for another log, and compares the two

What is evaluated is a function of its number, as if a policy had drawn it: fast and slow kernels of many problems, and
mistakes. --seconds ends earlier; whoever starts it again goes on. The comparison asks for the same statuses, and for
95% of the times within 2%; it names the others. Its exit status says whether both hold.
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from running_service import ROOT, RunningService
from throughput import candidate, slow

import rekernel

SHARES = {"fast": 40, "slow": 20, "half": 15, "typo": 15, "no_such_kernel": 10}  # percent
SLOWEST_NS = 10_000_000  # slower starting points take seconds a verdict, and tell no more
WITHIN, SHARE_WITHIN = 0.02, 0.95


def recorded(name):
    return json.loads((ROOT / "results/h200" / name).read_text(encoding="utf-8"))["rows"]


def fastest():
    """The row of the fastest committed kernel of each problem."""
    best = {}
    for row in recorded("bench.json"):
        if row["problem"] not in best or row["median_ns"] < best[row["problem"]]["median_ns"]:
            best[row["problem"]] = row
    return best


def chosen_kernels():
    """The fastest kernel of each problem that a library computes and whose slow kernel is not too slow."""
    quick = {row["problem"] for row in recorded("slow.json") if 0 < row["median_ns"] <= SLOWEST_NS}
    return {problem: row["kernel"] for problem, row in fastest().items()
            if problem in quick and any(not name.startswith("pytorch") for name in row["references"])}


def with_half_the_grid(plan):
    """The first launch has half of its blocks; nobody writes the rest."""
    first, *others = plan["launches"]
    grid = list(first["grid"])
    largest = max(range(len(grid)), key=lambda axis: grid[axis])
    grid[largest] //= 2
    return {**plan, "launches": [{**first, "grid": grid}, *others]}


def drawn(number, kernels):
    """What evaluation of this number is of, as rows of a log have it. `kernels`: the fast one by problem."""
    chance = random.Random(f"rewards {number}")
    problem = chance.choice(sorted(kernels))
    kind = chance.choices(list(SHARES), list(SHARES.values()))[0]
    return {"problem": problem, "kind": kind, "kernel": kernels[problem] if kind == "fast" else ""}


def logged(row):
    """The same of a row that is there: records may have other fast kernels since."""
    kernel = row.get("kernel", "")
    if row["kind"] == "fast" and not kernel:
        kernel = fastest()[row["problem"]]["kernel"]
    return {"problem": row["problem"], "kind": row["kind"], "kernel": kernel}


def body_of(number, asked, starting_points):
    """The request's body. `starting_points`: of each problem that is asked for, the body of its slow kernel."""
    problem, kind = asked["problem"], asked["kind"]
    fast = ROOT / "generated" / problem / asked["kernel"]
    body = candidate(fast) if kind == "fast" else dict(starting_points[problem])
    if kind == "half":
        body["plan"] = with_half_the_grid(body["plan"])
    elif kind == "typo":
        body["source"] = body["source"].replace(";", "", 1)
    elif kind == "no_such_kernel":
        body["plan"] = {**body["plan"], "launches": [{**body["plan"]["launches"][0], "kernel": "nobody_wrote_it"}]}
    return {**body, "problem": problem, "source": f"{body['source']}\n// {number}\n"}


class Log:
    """Lines by number; what a run that was ended left half is evaluated again."""

    def __init__(self, path):
        self.path, self.lock, self.rows = path, threading.Lock(), {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        for line in whole.splitlines():
            row = json.loads(line)
            self.rows[row["number"]] = row
        path.write_text(whole, encoding="utf-8")

    def add(self, row):
        with self.lock, self.path.open("a", encoding="utf-8") as file:
            self.rows[row["number"]] = row
            file.write(json.dumps(row) + "\n")


def evaluate(log, asked, starting_points, client, reward, until):
    """A line for each that is asked for, by number; nothing of what no verdict came of."""

    def one(number):
        if time.monotonic() > until:
            return
        body = body_of(number, asked[number], starting_points)
        answer = client.evaluate(tier="timed", fresh=True, other_sizes=False, **body)
        if not answer.is_verdict:
            print(f"{number} ({asked[number]}): {answer.kind}: {answer.message}", file=sys.stderr)
            return
        by = answer.body["judged_by"]
        log.add({"number": number, **asked[number], "status": answer.status,
                 "median_ns": answer.median_ns if answer.passed else None, "reward": reward(answer),
                 "judge": by["judge"], "device": by["device"]})

    with ThreadPoolExecutor(16) as clients:
        list(clients.map(one, asked))


def compare(first, second):
    """Prints what differs; whether the two say the same."""
    common = sorted(set(first) & set(second))
    judges = {row["judge"] for rows in (first, second) for row in rows.values()}
    others = [n for n in common if first[n]["status"] != second[n]["status"]]
    timed = [n for n in common if first[n]["median_ns"] and second[n]["median_ns"]]
    apart = {n: second[n]["median_ns"] / first[n]["median_ns"] - 1 for n in timed}
    far = sorted((n for n in timed if abs(apart[n]) > WITHIN), key=lambda n: -abs(apart[n]))
    for n in others:
        print(f"{n} ({first[n]['problem']}, {first[n]['kind']}): {first[n]['status']}, then {second[n]['status']}")
    for n in far:
        row = first[n]
        print(f"{n} ({row['problem']}, {row['kind']}): {row['median_ns'] / 1e6:.4f} ms, then {100 * apart[n]:+.1f}%")
    share = 1 - len(far) / len(timed) if timed else 1
    print(f"{len(common)} evaluations in both, judged by {', '.join(sorted(judges))}: {len(common) - len(others)} "
          f"statuses are the same; {100 * share:.1f}% of {len(timed)} times within {100 * WITHIN:.0f}%")
    return len(common) == len(first) and not others and share >= SHARE_WITHIN


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--again", type=Path, metavar="NEW")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--made-up", action="store_true", help="by the judge for tests, which looks at nothing")
    options = parser.parse_args()
    if options.again and not options.log.exists():
        parser.error(f"{options.log}: no such log")
    first = Log(options.log)
    log = Log(options.again) if options.again else first
    wanted = sorted(first.rows) if options.again else range(options.count)
    reward = rekernel.Reward("speedup", allow_made_up=options.made_up)
    judge = ("--made-up-judge", "0") if options.made_up else ()
    gpus = () if options.made_up else ("--gpus", options.gpus)
    missing = [number for number in wanted if number not in log.rows]
    begun, before = time.monotonic(), len(log.rows)
    if missing:
        kernels = chosen_kernels()
        asked = {number: logged(first.rows[number]) if options.again else drawn(number, kernels) for number in missing}
        with tempfile.TemporaryDirectory() as folder, RunningService(folder, gpus, judge=judge) as service:
            problems = {one["problem"] for one in asked.values()}
            starting_points = {problem: slow(problem, Path(folder)) for problem in problems}
            evaluate(log, asked, starting_points, service.client(), reward, begun + options.seconds)
    seconds = time.monotonic() - begun
    statuses = Counter(row["status"] for row in log.rows.values())
    print(f"{len(log.rows) - before} evaluations in {seconds:.0f} s; {len(log.rows)} of {len(wanted)} are in {log.path}: "
          f"{dict(statuses)}")
    if len(log.rows) < len(wanted):
        return 1
    return 0 if not options.again or compare(first.rows, log.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
