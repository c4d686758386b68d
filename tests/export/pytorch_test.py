#!/usr/bin/env python3
"""The PyTorch exports of the fastest kernels of the headline problems, on a GPU: equal to the harness's
result bit for bit, under eager and under torch.compile, and as fast: as the harness's own launcher measured
in the same way, and no slower than `rekernel evaluate` finds it, where the GPU pauses before every run.
$1: the program, $2: harness_run. More arguments: kernels (PROBLEM/NAME) instead of those."""

import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
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


# The exports one after the other in one process, by what their own tests measure with.
TIMES = """
import importlib.util, json, sys, torch
for path in sys.argv[1:]:
    specification = importlib.util.spec_from_file_location("test", path)
    test = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(test)
    tensors = test.inputs(None)
    times = {"ms": test.OPERATOR, "compiled_ms": torch.compile(test.OPERATOR)}
    print(json.dumps({key: test.milliseconds(call, tensors) for key, call in times.items()}), flush=True)
"""


def test_of(kernel, scratch):
    return next((scratch / kernel.replace("/", "_")).glob("test_*.py"))


def harness_ms(kernel, data):
    """What the harness's launcher takes; inputs and output are in the folder then."""
    harness = run(HARNESS_RUN, ROOT / "generated" / kernel, 20250528, data)
    assert harness.returncode == 0, harness.stderr
    return float(harness.stdout)


def results_of(kernel, scratch):
    """What an export's own test finds. Its times count for nothing here: others run beside it."""
    into = scratch / kernel.replace("/", "_")
    exported = run(PROGRAM, "export", kernel, "--to", "pytorch", "--into", into)
    assert exported.returncode == 0, exported.stderr
    harness_ms(kernel, into / "data")
    test = run(sys.executable, test_of(kernel, scratch), "--json", "--data", into / "data")
    shutil.rmtree(into / "data")
    print(test.stderr, end="", file=sys.stderr)
    found = {key: value for key, value in json.loads(test.stdout).items() if not key.endswith("ms")}
    print(json.dumps(found), flush=True)
    return found


def times_of(kernels, scratch):
    """Of every kernel the times of its export, of the harness's launcher by the same protocol, and of an
    evaluation, with nothing beside it on the GPU."""
    times = [{"harness_ms": harness_ms(kernel, scratch / "data")} for kernel in kernels]
    measured = run(sys.executable, "-c", TIMES, *(test_of(kernel, scratch) for kernel in kernels))
    assert measured.returncode == 0, measured.stderr
    for found, line in zip(times, measured.stdout.splitlines(), strict=True):
        found.update(json.loads(line))
    for found, kernel in zip(times, kernels, strict=True):
        found["evaluated_ms"] = evaluated_ms(kernel)
    return times


def problems_of(found):
    """What is wrong with an export."""
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
    kernels = NAMED or fastest_kernels()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        scratch = Path(folder)
        with ThreadPoolExecutor(len(kernels)) as pool:
            results = list(pool.map(lambda kernel: results_of(kernel, scratch), kernels))
        for result, times in zip(results, times_of(kernels, scratch), strict=True):
            print(json.dumps({"kernel": result["kernel"]} | times), flush=True)
            for complaint in problems_of(result | times):
                print(f"{result['kernel']}: {complaint}")
                status = 1
    return status


sys.exit(main())
