#!/usr/bin/env python3
"""The PyTorch exports of the fastest kernels of the headline problems, on a GPU: equal to the harness's
result bit for bit, under eager and under torch.compile, and as fast: as the harness's own launcher measured
in the same way, and no slower than `rekernel evaluate` finds it, where another process's work comes before
every run. $1: the program, $2: harness_run.
More arguments: kernels (PROBLEM/NAME) instead of those."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77  # what ctest takes for "skipped"
HEADLINE = ("matmul_fp32", "conv2d", "softmax", "layernorm", "conv2d_relu_maxpool")
LARGEST_DIFFERENCE = 0.03  # of the time from what the harness measures
PROGRAM, HARNESS_RUN, *NAMED = sys.argv[1:]


def fastest_kernels():
    """Of what was recorded on the GPU that the README shows."""
    rows = [row for path in ROOT.glob("results/*/bench.json") for row in json.loads(path.read_text())["rows"]
            if row["status"] == "passed" and row["problem"] in HEADLINE]
    best = {}
    for row in rows:
        if row["problem"] not in best or row["median_ns"] < best[row["problem"]]["median_ns"]:
            best[row["problem"]] = row
    return [f"{problem}/{best[problem]['kernel']}" for problem in HEADLINE]


def run(*command):
    return subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True, check=False)


def evaluated_ms(kernel):
    """What `rekernel evaluate` measures now."""
    judged = run(PROGRAM, "evaluate", ROOT / "generated" / kernel, "--json", "--samples", 100)
    evaluation = json.loads(judged.stdout)
    assert evaluation["status"] == "passed", judged.stdout
    return evaluation["timing"]["median_ns"] / 1e6


def problems_of(kernel, scratch):
    """What is wrong with a kernel's export; prints a line about it."""
    into = scratch / kernel.replace("/", "_")
    exported = run(PROGRAM, "export", kernel, "--to", "pytorch", "--into", into)
    assert exported.returncode == 0, exported.stderr
    data = into / "data"
    harness = run(HARNESS_RUN, ROOT / "generated" / kernel, 20250528, data)
    assert harness.returncode == 0, harness.stderr
    test = run(sys.executable, next(into.glob("test_*.py")), "--json", "--data", data)
    print(test.stderr, end="", file=sys.stderr)
    found = json.loads(test.stdout)
    found["harness_ms"], found["evaluated_ms"] = float(harness.stdout), evaluated_ms(kernel)
    print(json.dumps(found), flush=True)
    for path in data.iterdir():
        path.unlink()
    complaints = [key for key in ("bit_equal", "compiled_equals_eager", "equals_library", "opcheck")
                  if not found[key]]
    if found["refusal"]:
        complaints.append(found["refusal"])
    complaints += [f"{key} {found[key]:.4f}, the harness's {found['harness_ms']:.4f}"
                   for key in ("ms", "compiled_ms")
                   if not abs(found[key] / found["harness_ms"] - 1) <= LARGEST_DIFFERENCE]
    complaints += [f"{key} {found[key]:.4f}, in an evaluation {found['evaluated_ms']:.4f}"
                   for key in ("ms", "compiled_ms")
                   if not found[key] <= (1 + LARGEST_DIFFERENCE) * found["evaluated_ms"]]
    return complaints


def main():
    has_torch = run(sys.executable, "-c", "import torch; raise SystemExit(0 if torch.cuda.is_available() else 1)")
    if has_torch.returncode != 0:
        print("skipped: no PyTorch that sees a GPU")
        return SKIPPED
    status = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        for kernel in NAMED or fastest_kernels():
            for complaint in problems_of(kernel, Path(scratch)):
                print(f"{kernel}: {complaint}")
                status = 1
    return status


sys.exit(main())
