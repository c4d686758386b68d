#!/usr/bin/env python3
"""Programs as strangers write them, captured on a GPU: honest ones are judged and their time is the program's own,
dishonest ones gain nothing, bad ones are refused in one line. Prints the table of harness/CAPTURE.md.
$1: the program. More arguments: names of programs instead of all. What needs no timing runs side by side."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77  # what ctest takes for "skipped"
LARGEST_DIFFERENCE = 0.03  # of the judged time from the program's own
SAMPLES = 20
AT_ONCE = min(8, os.cpu_count())  # of 6 GB of the GPU's memory each
REKERNEL, *NAMED = sys.argv[1:]

# Problem, and the libraries whose kernels are in it.
HONEST = {
    "compile_softmax": ("softmax", []),
    "compile_layernorm": ("layernorm", []),
    "compile_conv2d": ("conv2d", ["cuDNN"]),
    "eager_softmax": ("softmax", ["PyTorch"]),
    "transposed_softmax": ("softmax", ["PyTorch"]),
    "eager_matmul_fp16": ("matmul_fp16", ["cuBLAS"]),
    "eager_attention": ("attention_fp16", ["cuDNN"]),
    "graph_softmax": ("softmax", ["PyTorch"]),
    "triton_softmax": ("softmax", []),
    "triton_matmul": ("matmul_fp16", []),
    "triton_attention": ("attention_fp16", []),
    "kernelbench_softmax": ("softmax", []),
    "kernelbench_layernorm": ("layernorm", ["PyTorch"]),
    "kernelbench_conv2d": ("conv2d", []),
    "kernelbench_conv2d_relu_maxpool": ("conv2d_relu_maxpool", []),
    "kernelbench_matmul": ("matmul_fp32", []),
    "kernelbench_library_product": ("matmul_fp32", ["cuBLAS"]),
    "gpu_mode_softmax": ("softmax", []),
}
# Words of the error, or the verdict on what was captured.
DISHONEST = {
    "answers_from_file": "copies from the host",
    "asks_the_host": "copies from the device to the host",
    "cached_and_scaled": "wrong_result",
    "cached_on_host": "launches no kernel",
    "late_thread": "launches no kernel",
    "packed_in_constructor": "wrong_result",
    "replaces_inputs": "modified_input",
    "skips_after_warm_up": "wrong_result",
    "through_pinned_memory": "copies from the device to the host",
    # Its own word is a microsecond. The verdict does not hear of it.
    "stops_the_clock": "passed",
    # Nothing is gained: the plan has its work in one stream.
    "other_stream": "passed",
}
BAD = {
    "crashes": "died of Aborted",
    "exits_early": "ended early",
    "faults": "ValueError: no idea how",
    "hangs": "not done within",
    "imports_what_is_not_there": "No module named 'tensorpuree'",
    "launches_nothing": "launches no kernel",
    "leaves": "ended itself",
    "other_shape": "the program's output is float32[65536, 4096]",
    "other_sizes": "'x' is float32[16, 16384]",
    "prints_gigabytes": "said enough",
    "without_a_gpu": "no usable GPU",
    # What torch.compile does, too. It gains nothing, and what it leaves goes.
    "forks": None,
    "forks_in_the_call": None,
}


def capture(kind, name, into, *options, environment=None):
    problem = HONEST[name][0] if kind == "honest" else "layernorm" if name == "packed_in_constructor" else "softmax"
    program = HERE / kind / ("leaves.py" if name == "without_a_gpu" else f"{name}.py")
    return subprocess.run([REKERNEL, "capture", problem, "--into", into, "--name", name, "--samples", str(SAMPLES),
                           *options, "--", program], capture_output=True, text=True, check=False, env=environment)


def complaint_of_refusal(name, result, words, into):
    if result.returncode != 2 or words not in result.stderr or len(result.stderr.splitlines()) != 1:
        return f"expected one line with '{words}', and status 2; got status {result.returncode}: {result.stderr}"
    return f"{name} was left" if (into / name).exists() else None


def refused(kind, name, expected, into):
    """A program that must be refused, or become a candidate that is judged later."""
    environment = os.environ | ({"CUDA_VISIBLE_DEVICES": ""} if name == "without_a_gpu" else {})
    patience = ("--deadline", "20") if name == "hangs" else ()
    result = capture(kind, name, into, "--no-evaluate", *patience, environment=environment)
    said = " ".join((result.stderr or result.stdout).split())
    print(f"| {name} | {said.removeprefix('rekernel: ').replace(str(HERE) + '/', '')} |", flush=True)
    if expected is None or (expected.find(" ") < 0 and result.returncode == 0):
        return None if result.returncode == 0 else f"expected a candidate; got {said}"
    return complaint_of_refusal(name, result, expected, into)


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:.4f}"


def judged(name, into):
    """What is wrong with an honest program's verdict; prints its row."""
    result = capture("honest", name, into, "--json")
    try:
        record = json.loads(result.stdout)
    except ValueError:
        return f"status {result.returncode}: {result.stderr}"
    evaluation, own = record["evaluation"], record["program"]
    if evaluation["status"] != "passed":
        return f"{evaluation['status']}: {evaluation['message']}"
    median = evaluation["timing"]["median_ns"]
    difference = median / own["device_ns"] - 1
    badges = [badge for badge in ("strict", "robust", "deterministic") if evaluation[badge]]
    print(f"| {name} | {HONEST[name][0]} | {', '.join(record['libraries']) or '–'} | passed, "
          f"{', '.join(badges)} | {milliseconds(median)} | {milliseconds(own['device_ns'])} | {difference:+.1%} | "
          f"{milliseconds(own['call_ns'])} |", flush=True)
    if record["libraries"] != HONEST[name][1]:
        return f"names {record['libraries']}; expected {HONEST[name][1]}"
    return None if abs(difference) <= LARGEST_DIFFERENCE else f"differs by {difference:+.1%}"


def verdict(name, expected, into):
    """What is wrong with the verdict on a dishonest program's candidate."""
    result = subprocess.run([REKERNEL, "evaluate", into / name, "--samples", "10", "--reference", "none", "--json"],
                            capture_output=True, text=True, check=False)
    status = json.loads(result.stdout)["status"] if result.stdout else result.stderr
    print(f"| {name} | {status} |", flush=True)
    return None if status == expected else f"{status}; expected {expected}"


def main():
    seen = subprocess.run([sys.executable, "-c", "import torch; raise SystemExit(not torch.cuda.is_available())"],
                          capture_output=True, check=False)
    if seen.returncode != 0:
        print("skipped: no PyTorch that sees a GPU")
        return SKIPPED
    if os.environ.get("REKERNEL_SANDBOX") != "off" and not shutil.which("bwrap"):
        print("skipped: no bubblewrap to run programs in")
        return SKIPPED

    def chosen(programs):
        return [name for name in programs if not NAMED or name in NAMED]

    complaints = {}
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder)
        small = [("dishonest", name, DISHONEST[name]) for name in chosen(DISHONEST)]
        small += [("bad", name, BAD[name]) for name in chosen(BAD)]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = pool.map(lambda one: refused(*one, into), small)
            complaints.update({name: wrong for (_, name, _), wrong in zip(small, results, strict=True)})
        for name in chosen(DISHONEST):
            if (into / name).exists() and not complaints[name]:
                complaints[name] = verdict(name, DISHONEST[name], into)
        for name in chosen(HONEST):
            complaints[name] = judged(name, into)
    wrong = {name: complaint for name, complaint in complaints.items() if complaint}
    for name, complaint in wrong.items():
        print(f"{name}: {complaint}")
    return 1 if wrong else 0


sys.exit(main())
