#!/usr/bin/env python3
"""How long a data set takes, and how much memory, by the number of a search's events. The searches are made up. $1: the
program; $2: the build's made_up_search; then searches, ROUNDSxIDEASxBRANCHES each. Run by hand."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import datasets_made

SEARCHES = ["30x10x10", "300x10x10", "1000x19x18"]  # the last has a million events


def memory_of(process):
    """The most memory so far, in MiB, of the program and of the writer that it started."""
    most = []
    for pid in [process.pid, *children_of(process.pid)]:
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        most += [int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith("VmHWM")]
    return most


def children_of(pid):
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def main():
    program, made_up_search = (str(Path(one).resolve()) for one in sys.argv[1:3])
    print("   events  GB recorded  seconds  MiB (program)  MiB (writer)  GB written")
    for search in sys.argv[3:] or SEARCHES:
        with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
            project = Path(scratch) / "project"
            for part in ("trajectories", "results", "generated", "tests/adversarial", "tests/mutants", "tests/honest"):
                (project / part).mkdir(parents=True)
            trajectory = project / "trajectories/fake.jsonl"
            subprocess.run([made_up_search, trajectory, *search.split("x")], check=True)
            with open(trajectory, "rb") as file:
                events = sum(1 for _ in file)
            start, most = time.monotonic(), [0, 0]
            process = subprocess.Popen([program, "dataset", Path(scratch) / "data"], cwd=project,
                                       stdout=subprocess.DEVNULL)
            while process.poll() is None:
                most = [max(pair) for pair in zip(most, (memory_of(process) + [0, 0])[:2])]
                time.sleep(0.2)
            if process.returncode != 0:
                sys.exit(process.returncode)
            seconds = time.monotonic() - start
            size = sum(map(len, datasets_made.contents(Path(scratch) / "data").values()))
            print(f"{events:9}  {trajectory.stat().st_size / 1e9:11.2f}  {seconds:7.0f}  {most[0]:13}  {most[1]:12}  "
                  f"{size / 1e9:10.2f}", flush=True)


if __name__ == "__main__":
    main()
