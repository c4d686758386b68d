#!/usr/bin/env python3
"""How long a report takes, and how large it gets, by the number of kernels and searches. The projects are
made up of copies of the committed ones. $1: the program. Prints a line for each size; run by hand."""

import itertools
import json
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

import reports

SIZES = ((125, 12), (250, 25), (500, 50), (1000, 100))
SAMPLES = 60


def made_up_project(folder, kernels, searches):
    for part in ("results/published.json", "results/h200/errors.json", "results/h200/noise.json"):
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(reports.ROOT / part, folder / part)
    bench = json.loads((reports.ROOT / "results/h200/bench.json").read_text())
    rows = []
    for number, row in zip(range(kernels), itertools.cycle(bench["rows"])):
        row = json.loads(json.dumps(row))
        source = reports.ROOT / "generated" / row["problem"] / row["kernel"]
        row["kernel"] = f"{row['kernel'][:40]}_{number}"
        row["median_ns"] += number
        row["samples_ns"] = [row["median_ns"] + 7 * i for i in range(SAMPLES)]
        row["resources"] = [{"name": "k", "registers": 40, "static_shared_bytes": 0, "stack_bytes": 0,
                             "spill_store_bytes": 0, "spill_load_bytes": 0}]
        rows.append(row)
        target = folder / "generated" / row["problem"] / row["kernel"]
        target.mkdir(parents=True)
        plan = json.loads((source / "kernel.json").read_text())
        plan["name"] = row["kernel"]
        plan["origin"] = {"note": "made up"}
        (target / "kernel.json").write_text(json.dumps(plan))
        text = (source / "kernel.cu").read_text()
        (target / "kernel.cu").write_text(text.replace("namespace {", f"namespace {{  // {number}", 1))
    bench["rows"] = rows
    (folder / "results/h200/bench.json").write_text(json.dumps(bench))
    (folder / "trajectories").mkdir()
    recorded = sorted(reports.ROOT.glob("trajectories/*.jsonl"))
    for number, path in zip(range(searches), itertools.cycle(recorded)):
        shutil.copy(path, folder / "trajectories" / f"{path.stem}-{number}.jsonl")
    (folder / "tests/adversarial").mkdir(parents=True)


def main():
    program = str(Path(sys.argv[1]).resolve())
    print("kernels  searches  seconds  processor seconds  megabytes")
    for kernels, searches in SIZES:
        with tempfile.TemporaryDirectory() as scratch:
            project, report = Path(scratch) / "project", Path(scratch) / "report"
            made_up_project(project, kernels, searches)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.monotonic()
            made = reports.make(program, report, cwd=project)
            seconds = time.monotonic() - start
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if not (report / "index.html").exists():
                sys.exit(made.stderr[-2000:])
            busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            size = sum(path.stat().st_size for path in report.rglob("*") if path.is_file())
            print(f"{kernels:7}  {searches:8}  {seconds:7.1f}  {busy:17.1f}  {size / 1e6:9.1f}", flush=True)


if __name__ == "__main__":
    main()
