"""Verdicts an hour of a service with GPUs, and how long one takes when nothing else waits.

The candidates are those of the eight published problems, equally often: the committed kernels, and what `rekernel new`
writes. Each body differs by a comment, so that no answer is a kept one.

throughput.py [--tier timed] [--own-sizes] [--alone 14] [--clients 14] [--rounds 2] [--gpus all]
              [--log FILE]

Contexts and the libraries' choices are made before anything counts. Then some are asked for alone, one after the other,
and then clients ask for whole rounds of all. --own-sizes leaves out the other sizes at which plans in axes are judged. A
line of the log is an answer, with the whole record of its evaluation.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from running_service import ROOT, RunningService


def candidate(folder):
    return {
        "source": (folder / "kernel.cu").read_text(encoding="utf-8"),
        "plan": json.loads((folder / "kernel.json").read_text(encoding="utf-8")),
    }


def slow(problem, folder):
    """What `rekernel new` writes, in a folder of the problem's own."""
    command = [os.environ["REKERNEL_PROGRAM"], "new", problem, "slow", "--into", str(folder / problem)]
    subprocess.run(command, check=True, capture_output=True)
    return candidate(next(path.parent for path in (folder / problem).rglob("kernel.json")))


def candidates(folder, options):
    """(name, body) of all candidates."""
    fields = {"tier": options.tier, "record": options.log is not None}
    if options.own_sizes:
        fields["other_sizes"] = False
    bodies = []
    for problem in sorted(path.stem for path in (ROOT / "ops/problems/published").glob("*.json")):
        for kernel in sorted((ROOT / "generated" / problem).glob("*/kernel.json")):
            body = {**fields, "problem": problem, **candidate(kernel.parent)}
            bodies.append((f"{problem}/{kernel.parent.name}", body))
        bodies.append((f"{problem}/slow", {**fields, "problem": problem, **slow(problem, folder)}))
    return bodies


class Load:
    def __init__(self, client, log):
        self.client, self.log, self.numbers = client, log, itertools.count()
        self.lock, self.statuses, self.seconds = threading.Lock(), Counter(), []

    def ask(self, named):
        name, body = named
        body = dict(body, source=f"{body['source']}\n// {os.getpid()}.{next(self.numbers)}\n")
        begun = time.monotonic()
        answer = self.client.evaluate(**body)
        seconds = time.monotonic() - begun
        with self.lock:
            self.seconds.append(seconds)
            self.statuses[answer.status or answer.code] += 1
            if self.log:
                row = {"candidate": name, "seconds": round(seconds, 3), "answer": answer.body}
                self.log.write(json.dumps(row) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", default="timed", choices=("compile", "correct", "timed"))
    parser.add_argument("--own-sizes", action="store_true")
    parser.add_argument("--alone", type=int, default=14, help="evaluations one after the other, before the load")
    parser.add_argument("--clients", type=int, default=14)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--log", help="a line of JSON for each answer")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        RunningService(folder, ("--gpus", options.gpus), judge=()) as service,
        open(options.log or os.devnull, "w", encoding="utf-8") as log,
    ):
        bodies = candidates(Path(folder), options)
        with ThreadPoolExecutor(options.clients) as clients:
            warm = Load(service.client(), None)
            list(clients.map(warm.ask, [one for one in bodies if one[0].endswith("/slow")]))
            alone = Load(service.client(), log)
            for number in range(options.alone):
                alone.ask(bodies[number * len(bodies) // options.alone])
            load = Load(service.client(), log)
            begun = time.monotonic()
            list(clients.map(load.ask, bodies * options.rounds))
            wall = time.monotonic() - begun
    if alone.seconds:
        print(f"alone: median {statistics.median(alone.seconds):.2f} s, longest {max(alone.seconds):.2f} s, "
              f"of {len(alone.seconds)}")
    count = len(load.seconds)
    print(f"{options.tier}: {count} answers in {wall:.1f} s, {count / wall * 3600:.0f} an hour; {dict(load.statuses)}")


if __name__ == "__main__":
    main()
