"""Verdicts an hour of a service with GPUs, and how long one takes when nothing else waits.

The candidates are those of the eight published problems, equally often: the fastest committed kernel, as results/h200
has it, and what `rekernel new` writes. Each body differs by a comment, so that no answer is a kept one.

throughput.py [--tier timed] [--clients 8] [--seconds 60] [--alone 16] [--gpus all] [--log FILE]
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from running_service import ROOT, RunningService


def candidate(folder):
    return {
        "source": (folder / "kernel.cu").read_text(encoding="utf-8"),
        "plan": json.loads((folder / "kernel.json").read_text(encoding="utf-8")),
    }


def fastest():
    """Folder of the fastest committed kernel of each problem."""
    rows = json.loads((ROOT / "results/h200/bench.json").read_text(encoding="utf-8"))["rows"]
    best = {}
    for row in rows:
        if row["problem"] not in best or row["median_ns"] < best[row["problem"]]["median_ns"]:
            best[row["problem"]] = row
    return {problem: ROOT / "generated" / problem / row["kernel"] for problem, row in sorted(best.items())}


def slow(problem, folder):
    """What `rekernel new` writes, in a folder of the problem's own."""
    command = [os.environ["REKERNEL_PROGRAM"], "new", problem, "slow", "--into", str(folder / problem)]
    subprocess.run(command, check=True, capture_output=True)
    return candidate(next(path.parent for path in (folder / problem).rglob("kernel.json")))


def candidates(folder):
    """(name, body) of all candidates."""
    bodies = []
    for problem, kernel in fastest().items():
        bodies.append((f"{problem}/{kernel.name}", {"problem": problem, **candidate(kernel)}))
        bodies.append((f"{problem}/slow", {"problem": problem, **slow(problem, folder)}))
    return bodies


class Load:
    def __init__(self, client, bodies, tier, log):
        self.client, self.tier, self.log = client, tier, log
        self.numbers, self.bodies = itertools.count(), bodies
        self.lock, self.statuses, self.seconds = threading.Lock(), Counter(), []

    def ask(self):
        with self.lock:
            number = next(self.numbers)
        name, body = self.bodies[number % len(self.bodies)]
        body = dict(body, source=f"{body['source']}\n// {os.getpid()}.{number}\n")
        begun = time.monotonic()
        answer = self.client.evaluate(tier=self.tier, **body)
        seconds = time.monotonic() - begun
        with self.lock:
            self.seconds.append(seconds)
            self.statuses[answer.status or answer.code] += 1
            if self.log:
                row = {"candidate": name, "seconds": round(seconds, 3), "answer": answer.body}
                self.log.write(json.dumps(row) + "\n")

    def until(self, moment):
        while time.monotonic() < moment:
            self.ask()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", default="timed", choices=("compile", "correct", "timed"))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--alone", type=int, default=16, help="evaluations one after the other, before the load")
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--log", help="a line of JSON for each answer")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        RunningService(folder, ("--gpus", options.gpus), judge=()) as service,
        open(options.log or os.devnull, "w", encoding="utf-8") as log,
    ):
        bodies = candidates(Path(folder))
        load = Load(service.client(), bodies, options.tier, log)
        for _ in bodies:  # what is made once: contexts, the libraries' choices
            load.ask()
        load.seconds.clear()
        for _ in range(options.alone):
            load.ask()
        alone, load.seconds = load.seconds, []
        load.statuses.clear()
        begun = time.monotonic()
        clients = [threading.Thread(target=load.until, args=(begun + options.seconds,)) for _ in range(options.clients)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        wall = time.monotonic() - begun
    if alone:
        print(f"alone: median {statistics.median(alone):.2f} s, longest {max(alone):.2f} s, of {len(alone)}")
    count = len(load.seconds)
    print(f"{options.tier}: {count} answers in {wall:.1f} s, {count / wall * 3600:.0f} an hour; {dict(load.statuses)}")


if __name__ == "__main__":
    main()
