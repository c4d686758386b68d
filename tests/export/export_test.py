#!/usr/bin/env python3
"""`rekernel export` without a GPU: every committed kernel both ways. What an export asks the driver for is
written down by a stand-in for it, and must be what the launch plan says.
$1: the program, $2: the C++ compiler, $3: include folders (a:b), $4: the folder of the stand-in driver."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
import lint_tools  # noqa: E402

PROGRAM, COMPILER, INCLUDES, DRIVER = (sys.argv.pop(1) for _ in range(4))
KERNELS = sorted(str(path.parent.relative_to(ROOT / "generated")) for path in ROOT.glob("generated/*/*/kernel.json"))
STREAM, WORKSPACE = 0x77, 1 << 46
MULTIPROCESSORS, RESIDENT = 132, 2  # the stand-in's
SCALARS = {"i32": "<i", "u32": "<I", "i64": "<q", "u64": "<Q", "f32": "<f", "f64": "<d"}
MAP_TYPES = {"u8": 0, "i32": 3, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}


MAIN = """int main(int, char** arguments) {
  try {
    return launch(arguments[1], std::stoi(arguments[2]), std::stol(arguments[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\\n", error.what());
    return 1;
  }
}
"""


def run(*command, cwd=ROOT, **more):
    return subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=500, **more)


def export(kernel, to, into, *options):
    """What is made up here nobody judged."""
    unjudged = () if str(kernel).startswith(str(ROOT / "generated")) or not Path(kernel).is_absolute() else (
        "--unjudged",)
    made = run(PROGRAM, "export", kernel, "--to", to, "--into", into, *unjudged, *options)
    assert made.returncode == 0, made.stderr
    assert made.stdout == f"{into}\n"


def name_of(kernel):
    return kernel.replace("/", "_")


def folder_of(kernel):
    """Of a candidate: committed, or made up here."""
    made_up = SCRATCH / "candidates" / kernel
    return made_up if made_up.is_dir() else ROOT / "generated" / kernel


def plan_of(kernel):
    """At the problem's own sizes: what expressions of its axes give there, and the launches that run there."""
    plan = json.loads((folder_of(kernel) / "kernel.json").read_text())
    (path,) = (ROOT / "ops/problems").glob(f"*/{plan['problem']}.json")
    problem = json.loads(path.read_text())
    names = {**vars(math), "ceil_div": lambda a, b: -(-a // b), "min": min, "max": max, **plan.get("compile", {}).get("defines", {})}
    for name, size in {**problem["axes"], **problem.get("constants", {})}.items():
        names[name] = eval(size, {}, names) if isinstance(size, str) else size

    def whole(value):
        return eval(value, {}, names) if isinstance(value, str) else value

    launches = []
    for step in plan["launches"]:
        if not whole(step.pop("when", "True")):
            continue
        for key in ("grid", "block", "cluster"):
            if key in step:
                step[key] = [whole(one) for one in step[key]]
        for key in ("dynamic_shared_bytes", "value", "offset_bytes", "bytes"):
            if key in step:
                step[key] = whole(step[key])
        if "args" in step:
            step["args"] = [{kind: whole(value) for kind, value in one.items()} if isinstance(one, dict) else one
                            for one in step["args"]]
        launches.append(step)
    plan["launches"] = launches
    plan["workspace"] = {name: whole(size) for name, size in plan.get("workspace", {}).items()}
    return plan


MADE_UP_SOURCE = """
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void all(const float* x, float* y, int a, unsigned b, long long c, unsigned long long d,
                               float e, double f, const __grid_constant__ Map map, unsigned* counters) {
  if (a && b && c && d && e && f && map.bytes[0]) y[threadIdx.x] = x[threadIdx.x] + counters[0];
}
extern "C" __global__ void none() {}
"""


def make_up():
    """A candidate with everything that no committed one has."""
    plan = plan_of("softmax/cluster_with_prefetch")
    scalars = [{"i32": -2**31}, {"u32": 2**32 - 1}, {"i64": -2**63}, {"u64": 2**64 - 1}, {"f32": -0.1}, {"f64": 1e300}]
    map_of_x = {"of": "x", "dtype": "i32", "offset_bytes": 32, "dims": [64, 8], "strides_bytes": [1024],
                "box": [8, 4], "element_strides": [2, 1], "swizzle": "32B", "l2_promotion": "64B"}
    plan.update(name="made_up", workspace={"class": 1000, "counters": 4096}, compile={"defines": {"N": "int"}})
    plan["launches"] = [
        {"kernel": "none", "grid": [1], "block": [1], "programmatic_launch": True, "args": []},
        {"memset": "counters", "value": 7, "offset_bytes": 16, "bytes": 100},
        {"memset": "counters", "value": 255, "offset_bytes": 4000},
        {"kernel": "all", "grid": [{"per_sm": 5}, 2, 3], "block": [8, 4, 2], "cluster": [7, 1, 1],
         "programmatic_launch": True, "shared_memory_carveout": 60, "args": ["x", "y", *scalars, {"tensor_map": map_of_x}, "counters"]},
        {"kernel": "none", "grid": [{"per_sm": 30}], "block": [32], "cooperative": True, "args": []}]
    made = SCRATCH / "candidates/softmax/made_up"
    made.mkdir(parents=True)
    (made / "kernel.json").write_text(json.dumps(plan))
    (made / "kernel.cu").write_text(MADE_UP_SOURCE)


def sizes_of(kernel):
    return json.loads((SCRATCH / "pytorch" / name_of(kernel) / name_of(kernel) / "sizes.json").read_text())


def compile_cpp(*arguments):
    includes = [word for folder in INCLUDES.split(":") for word in ("-isystem", folder)]
    return run(COMPILER, "-Wall", "-Wextra", "-Werror", *includes, *arguments)


def setUpModule():
    """Exports everything, and compiles one program that can launch any of the kernels."""
    global SCRATCH, folder
    folder = tempfile.TemporaryDirectory()
    SCRATCH = Path(folder.name)
    make_up()
    KERNELS.append("softmax/made_up")
    # Two outputs, of different types, and no library that has the function.
    made = run(PROGRAM, "new", "top_k", "definition_itself", "--into", SCRATCH / "candidates/top_k")
    assert made.returncode == 0, made.stderr
    KERNELS.append("top_k/definition_itself")
    for to in ("cpp", "pytorch"):
        (SCRATCH / to).mkdir()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda job: export(folder_of(job[0]), job[1], SCRATCH / job[1] / name_of(job[0])),
                      [(kernel, to) for kernel in KERNELS for to in ("cpp", "pytorch")]))
    (SCRATCH / "launch_any.cpp").write_text(launcher_source())


def tearDownModule():
    folder.cleanup()


def launcher_source():
    includes, branches = [], []
    for kernel in KERNELS:
        name, sizes = name_of(kernel), sizes_of(kernel)
        includes.append(f'#include "cpp/{name}/{name}.h"')
        types = {"torch.float32": "float", "torch.float16": "__half", "torch.bfloat16": "__nv_bfloat16",
                 "torch.float8_e4m3fn": "__nv_fp8_e4m3", "torch.int64": "std::int64_t", "torch.int32": "std::int32_t"}
        arguments = [f"reinterpret_cast<CUstream>({STREAM})"]
        tensors = [*sizes["inputs"], *sizes["outputs"]]
        for i, tensor in enumerate(tensors):
            const = "const " if i < len(sizes["inputs"]) else ""
            first = "shape" if i == 0 else f"{name}::{tensor['name']}_shape"
            arguments.append(f"{{reinterpret_cast<{const}{types[tensor['dtype']]}*>({address(i)} + offset), {first}}}")
        if sizes["workspace_bytes"]:
            arguments.append(f"reinterpret_cast<void*>({WORKSPACE})")
        branches.append(f'''  if (name == "{name}") {{
    const {name}::Kernel kernel;
    auto shape = {name}::{tensors[0]["name"]}_shape;
    shape[0] += larger;
    kernel.launch({", ".join(arguments)});
    return 0;
  }}''')
    return "\n".join([*includes, "#include <cstdio>",
                      "static int launch(const std::string& name, int larger, long offset) {", *branches,
                      "  return 3;", "}", MAIN])



def address(number):
    """Of a problem's tensor."""
    return (number + 1) << 40


def size_of(argument):
    """Of a kernel's parameter."""
    if isinstance(argument, str):
        return 8
    return 128 if "tensor_map" in argument else struct.calcsize(SCALARS[next(iter(argument))])


def environment(kernel, recording, capability="9.0", **more):
    parameters = {}
    for step in plan_of(kernel)["launches"]:
        if "kernel" in step:
            parameters[step["kernel"]] = ",".join(str(size_of(argument)) for argument in step["args"])
    return {**os.environ, "LD_LIBRARY_PATH": DRIVER, "RECORDING": str(recording), "CAPABILITY": capability,
            "PARAMETERS": ";".join(f"{name}:{sizes}" for name, sizes in parameters.items()),
            "PYTHONPATH": f"{Path(__file__).parent / 'stand_in'}:{SCRATCH / 'pytorch' / name_of(kernel)}", **more}


def launch_cpp(kernel, larger=0, offset=0, **more):
    recording = SCRATCH / f"{name_of(kernel)}.cpp.jsonl"
    recording.unlink(missing_ok=True)
    outcome = run(SCRATCH / "launch_any", name_of(kernel), larger, offset, env=environment(kernel, recording, **more))
    return outcome, calls_of(recording)


PYTHON_LAUNCH = """
import importlib, sys, torch
name, larger, offset, dtype, kind, swap, *addresses = sys.argv[1:]
package = importlib.import_module(name)
operator, sizes = getattr(package, name), package._kernel
*addresses, workspace = [int(one) for one in addresses]
addresses, outputs = addresses[:len(sizes.inputs)], addresses[len(sizes.inputs):]
torch.allocated[:] = [*outputs, workspace]
tensors = [torch.Tensor(one["shape"], one["dtype"], address=address + int(offset))
           for one, address in zip(sizes.inputs, addresses, strict=True)]
first = tensors[0]
first.shape = (first.shape[0] + int(larger), *first.shape[1:])
first.dtype = dtype or first.dtype
first.device = torch.Device(*kind.split(":")) if kind else first.device
if swap:
    first.strides = first.strides[::-1]
assert operator.name == f"rekernel::{name}" and operator.options["mutates_args"] == ()
try:
    made = operator.fake(*tensors)
    result = operator(*tensors)
except (ValueError, RuntimeError) as error:
    sys.exit(str(error))
of = lambda result: result if isinstance(result, tuple) else (result,)
expected = [(one["shape"], one["dtype"]) for one in sizes.outputs]
assert [(one.shape, one.dtype) for one in of(result)] == [(one.shape, one.dtype) for one in of(made)] == expected
assert isinstance(result, tuple) == (len(expected) > 1)
assert [one.address for one in of(result)] == outputs
"""


def launch_python(kernel, larger=0, offset=0, dtype="", kind="", swap="", **more):
    recording = SCRATCH / f"{name_of(kernel)}.py.jsonl"
    recording.unlink(missing_ok=True)
    count = len(sizes_of(kernel)["inputs"]) + len(sizes_of(kernel)["outputs"])
    outcome = run(sys.executable, "-c", PYTHON_LAUNCH, name_of(kernel), larger, offset, dtype, kind, swap,
                  *map(address, range(count)), WORKSPACE, env=environment(kernel, recording, **more))
    return outcome, calls_of(recording)


def calls_of(recording):
    return [json.loads(line) for line in recording.read_text().splitlines()] if recording.exists() else []


def split(calls):
    """Loads and settings by kernel, tensor maps in any order (C++ leaves that of arguments open), the rest."""
    maps = sorted((json.dumps(call["of"]) for call in calls if call["call"] == "map"))
    return ([call for call in calls if call["call"] in ("load", "set")], maps,
            [call for call in calls if call["call"] in ("memset", "launch")])


def expected_calls(kernel):
    """What the plan says, on the stand-in's GPU."""
    plan, sizes = plan_of(kernel), sizes_of(kernel)
    addresses = {one["name"]: address(i) for i, one in enumerate([*sizes["inputs"], *sizes["outputs"]])}
    end = WORKSPACE
    for name, size in plan.get("workspace", {}).items():
        addresses[name] = end
        end += -(-size // 1024) * 1024
    maps, calls = [], []
    for i, step in enumerate(plan["launches"]):
        if "memset" in step:
            offset = step.get("offset_bytes", 0)
            calls.append({"call": "memset", "address": addresses[step["memset"]] + offset, "value": step["value"],
                          "bytes": step.get("bytes", plan["workspace"][step["memset"]] - offset), "stream": STREAM})
            continue
        first, *others = step["grid"]
        grid = [first, *others, 1, 1][:3]
        cluster = [*step.get("cluster", []), 1, 1, 1][:3]
        if isinstance(first, dict):
            blocks = first["per_sm"]
            grid[0] = MULTIPROCESSORS * (min(blocks, RESIDENT) if step.get("cooperative") else blocks)
            grid[0] -= grid[0] % cluster[0]  # whole clusters
        attributes = []
        if cluster != [1, 1, 1]:
            attributes.append([4, cluster])
        if step.get("cooperative"):
            attributes.append([2, [1]])
        if step.get("programmatic_launch") and i > 0:
            attributes.append([6, [1]])
        if "shared_memory_carveout" in step:
            attributes.append([14, [step["shared_memory_carveout"]]])
        arguments = []
        for one in step["args"]:
            if isinstance(one, str):
                arguments.append(struct.pack("<Q", addresses[one]).hex())
            elif "tensor_map" in one:
                given = one["tensor_map"]
                rank = len(given["dims"])
                maps.append(json.dumps([
                    MAP_TYPES[given["dtype"]], addresses[given["of"]] + given.get("offset_bytes", 0), given["dims"],
                    given["strides_bytes"], given["box"], given.get("element_strides", [1] * rank), 0,
                    ("none", "32B", "64B", "128B").index(given.get("swizzle", "none")),
                    ("none", "64B", "128B", "256B").index(given.get("l2_promotion", "none")),
                    ("zeros", "nan").index(given.get("fill", "zeros"))]))
                arguments.append(None)
            else:
                (kind, value), = one.items()
                arguments.append(struct.pack(SCALARS[kind], value).hex())
        calls.append({"call": "launch", "kernel": step["kernel"], "grid": grid,
                      "block": [*step["block"], 1, 1][:3], "shared": step.get("dynamic_shared_bytes", 0),
                      "stream": STREAM, "attributes": attributes, "arguments": arguments})
    return sorted(maps), calls


class Cpp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = compile_cpp("-std=c++17", "-O0", SCRATCH / "launch_any.cpp", "-o", SCRATCH / "launch_any",
                           "-L", DRIVER, "-lcuda")
        assert made.returncode == 0, made.stderr

    def test_every_header_is_clean_cpp20_as_well(self):
        made = compile_cpp("-std=c++20", "-fsyntax-only", SCRATCH / "launch_any.cpp")
        self.assertEqual(made.returncode, 0, made.stderr)

    def test_the_tests_and_the_form_with_nvrtc_compile(self):
        last = {kernel.split("/")[0]: kernel for kernel in KERNELS}  # of each problem
        sources = [SCRATCH / "cpp" / name_of(kernel) / "test.cpp" for kernel in last.values()]
        for number, kernel in enumerate(list(last.values())[:2]):
            export(kernel, "cpp", SCRATCH / f"nvrtc{number}", "--code", "nvrtc")
            sources.append(SCRATCH / f"nvrtc{number}" / "test.cpp")
        made = compile_cpp("-std=c++17", "-fsyntax-only", *sources)
        self.assertEqual(made.returncode, 0, made.stderr)

    def test_it_does_what_the_plan_says(self):
        for kernel in KERNELS:
            with self.subTest(kernel):
                self.compare(kernel, *launch_cpp(kernel))

    def compare(self, kernel, outcome, calls):
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        (load, *settings), maps, rest = split(calls)
        expected_maps, expected = expected_calls(kernel)
        self.assertEqual(maps, expected_maps)
        digests = set()
        for given, wanted in zip(rest, expected, strict=True):
            for i, one in enumerate(wanted.get("arguments", [])):
                if one is None:  # a tensor map: whole, and another for every one that was encoded
                    self.assertEqual(len(given["arguments"][i]), 2 * 128)
                    digests.add(given["arguments"][i])
                    given["arguments"][i] = None
        self.assertEqual(rest, expected)
        self.assertEqual(len(digests), len(set(maps)))
        wanted = [(step["kernel"], 8, step.get("dynamic_shared_bytes", 0)) for step in plan_of(kernel)["launches"]
                  if "kernel" in step]
        self.assertEqual([(one["kernel"], one["attribute"], one["value"]) for one in settings], wanted)
        self.assertEqual(architecture(load), 90)

    def test_other_sizes_are_refused_with_both_named(self):
        for kernel in KERNELS:
            outcome, calls = launch_cpp(kernel, larger=1)
            tensor = sizes_of(kernel)["inputs"][0]
            shape = tensor["shape"]
            self.assertEqual(outcome.returncode, 1)
            larger = text_of([shape[0] + 1, *shape[1:]])
            self.assertEqual(outcome.stderr, f"{name_of(kernel)}: {tensor['name']} is {larger}; "
                                             f"this kernel was made for {text_of(shape)}\n")
            self.assertEqual(split(calls)[1:], ([], []))

    def test_an_address_between_is_refused(self):
        outcome, calls = launch_cpp("softmax/cluster_with_prefetch", offset=16)
        self.assertEqual((outcome.returncode, outcome.stderr), (
            1, "softmax_cluster_with_prefetch: x: its address is not a multiple of 256\n"))
        self.assertEqual(split(calls)[2], [])

    def test_the_gpu_decides_which_code_is_loaded(self):
        for capability, code in (("8.0", 80), ("8.6", 80), ("8.9", 89), ("9.0", 90)):
            outcome, calls = launch_cpp("conv2d/published_round_13", capability=capability)
            self.assertEqual((outcome.returncode, architecture(calls[0])), (0, code), outcome.stderr)
        for kernel, capability, words in (
                ("conv2d/published_round_13", "7.5", "compute capability 8.0 or newer; this one has 7.5"),
                ("conv2d/published_round_13", "12.1", "none of which a GPU of compute capability 12.1 runs"),
                ("softmax/cluster_with_prefetch", "8.9", "needs a GPU of compute capability 9.0; this one has 8.9")):
            for launch in (launch_cpp, launch_python):
                outcome, calls = launch(kernel, capability=capability)
                self.assertIn(words, outcome.stderr)
                self.assertEqual((outcome.returncode, calls), (1, []))

    def test_too_little_shared_memory_is_an_error(self):
        for launch in (launch_cpp, launch_python):
            outcome, _ = launch("softmax/row_on_chip_plain_stores", SHARED_BYTES="65536")
            self.assertIn("softmax needs 98304 bytes of shared memory a block; this GPU has 65536", outcome.stderr)
            self.assertEqual(outcome.returncode, 1)


class PyTorch(Cpp):
    """The same of the packages, with a stand-in for PyTorch."""

    @classmethod
    def setUpClass(cls):
        pass

    test_every_header_is_clean_cpp20_as_well = test_the_tests_and_the_form_with_nvrtc_compile = None
    test_the_gpu_decides_which_code_is_loaded = test_too_little_shared_memory_is_an_error = None

    def test_it_does_what_the_plan_says(self):
        for kernel in KERNELS:
            with self.subTest(kernel):
                self.compare(kernel, *launch_python(kernel))

    def refused(self, kernel, **wrong):
        outcome, calls = launch_python(kernel, **wrong)
        self.assertEqual((outcome.returncode, calls), (1, []), outcome.stderr)
        return outcome.stderr.strip()

    def test_other_sizes_are_refused_with_both_named(self):
        for kernel in KERNELS:
            tensor = sizes_of(kernel)["inputs"][0]
            shape = tensor["shape"]
            self.assertEqual(self.refused(kernel, larger=1),
                             f"{name_of(kernel)}: {tensor['name']} is {(shape[0] + 1, *shape[1:])}; "
                             f"this kernel was made for {tuple(shape)}")

    def test_an_address_between_is_refused(self):
        self.assertEqual(self.refused("softmax/cluster_with_prefetch", offset=16),
                         "softmax_cluster_with_prefetch: x begins at 0x10000000010; "
                         "expected a multiple of 256 bytes: clone() it")

    def test_other_dtypes_devices_and_strides_are_refused(self):
        kernel, where = "matmul_fp32/split_in_registers", "matmul_fp32_split_in_registers: "
        self.assertEqual(self.refused(kernel, dtype="torch.float16"),
                         where + "a is torch.float16; this kernel was made for torch.float32")
        self.assertEqual(self.refused(kernel, kind="cpu"), where + "a is on cpu; expected a tensor on a CUDA device")
        self.assertEqual(self.refused(kernel, kind="cuda:1"), where + "b is on cuda:0, a on cuda:1")
        self.assertEqual(self.refused(kernel, swap="1"),
                         where + "a has strides (1, 4096); expected (4096, 1): make it contiguous()")

    def test_the_source_that_is_there_is_the_kernels(self):
        for kernel in KERNELS:
            package = SCRATCH / "pytorch" / name_of(kernel) / name_of(kernel)
            source = folder_of(kernel) / "kernel.cu"
            self.assertEqual((package / "kernel.cu").read_bytes(), source.read_bytes())

    def test_every_file_is_clean_python(self):
        if why := lint_tools.fetch():
            self.skipTest(why)
        checked = run(lint_tools.tool("ruff"), "check", "--isolated", "--no-cache", "--target-version=py310",
                      "--select=E,F,W,B", "--line-length=120", SCRATCH / "pytorch")
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertIn("All checks passed", checked.stdout)


class Command(unittest.TestCase):
    def refuse(self, *arguments):
        outcome = run(PROGRAM, "export", *arguments)
        self.assertEqual((outcome.returncode, outcome.stdout), (2, ""))
        return outcome.stderr

    def test_bad_arguments(self):
        softmax = "softmax/cluster_with_prefetch"
        self.assertIn("expected --to cpp or --to pytorch", self.refuse(softmax))
        self.assertIn("--to java: expected cpp or pytorch", self.refuse(softmax, "--to", "java"))
        self.assertIn("--code ptx: expected cubin or nvrtc", self.refuse(softmax, "--to", "cpp", "--code", "ptx"))
        self.assertIn("--target is for --code cubin",
                      self.refuse(softmax, "--to", "cpp", "--code", "nvrtc", "--target", "sm_90a"))
        self.assertIn("--target sm_89: this kernel is for sm_90a; expected one of sm_90a",
                      self.refuse(softmax, "--to", "cpp", "--target", "sm_89"))
        self.assertIn("unknown kernel 'softmax/none': expected PROBLEM/NAME",
                      self.refuse("softmax/none", "--to", "cpp"))

    def test_what_exists_is_left_alone(self):
        into = SCRATCH / "there"
        into.mkdir()
        self.assertIn("exists already; remove it, or choose another with --into",
                      self.refuse("softmax/cluster_with_prefetch", "--to", "cpp", "--into", into))
        self.assertEqual(list(into.iterdir()), [])

    def test_a_place_that_cannot_be_made_leaves_nothing(self):
        file = SCRATCH / "file"
        file.write_text("")
        self.assertIn("cannot be made",
                      self.refuse("softmax/cluster_with_prefetch", "--to", "cpp", "--into", file / "in"))
        self.assertEqual(file.read_text(), "")

    def test_captured_code_is_refused(self):
        candidate = SCRATCH / "captured"
        candidate.mkdir()
        plan = plan_of("softmax/made_up")
        plan["launches"][3]["args"][2] = {"bytes": "00" * 4}
        (candidate / "kernel.json").write_text(json.dumps(plan))
        (candidate / "kernel.cu").write_text(MADE_UP_SOURCE)
        self.assertIn("launches[3].args[2]: bytes cannot be exported; expected a buffer, a scalar or a tensor map",
                      self.refuse(candidate, "--to", "cpp"))

    def test_texts_of_strangers_stay_text(self):
        candidate = SCRATCH / "strange"
        candidate.mkdir()
        plan = plan_of("softmax/cluster_with_prefetch")
        plan["idea"] = 'ends with \\ and ??/\nnot a """ comment */ <img src=x> \\\\'
        plan["workspace"] = {"class": 8, "stream": 8}
        (candidate / "kernel.json").write_text(json.dumps(plan))
        source = (ROOT / "generated/softmax/cluster_with_prefetch/kernel.cu").read_text()
        (candidate / "kernel.cu").write_text(source + '// )cuda"; )cuda0" ??/\n')
        for code in ("cubin", "nvrtc"):
            export(candidate, "cpp", SCRATCH / f"strange_{code}", "--code", code)
            made = compile_cpp("-std=c++17", "-fsyntax-only", SCRATCH / f"strange_{code}/test.cpp")
            self.assertEqual(made.returncode, 0, made.stderr)
        export(candidate, "pytorch", SCRATCH / "strange_pytorch")
        for path in (SCRATCH / "strange_pytorch").glob("**/*.py"):
            compile(path.read_text(), str(path), "exec")
        for page in ("strange_cubin", "strange_pytorch"):
            self.assertNotIn("<img", (SCRATCH / page / "README.md").read_text())
            self.assertIn("&lt;img src=x&gt;", (SCRATCH / page / "README.md").read_text())


class Verdict(unittest.TestCase):
    """What is recorded of a kernel stands in every file that says what it is."""

    KERNEL = "softmax/cluster_with_prefetch"

    def rows(self):
        """By device, of the committed records."""
        found = {}
        for path in ROOT.glob("results/*/bench.json"):
            record = json.loads(path.read_text())
            for row in record["rows"]:
                if f"{row['problem']}/{row['kernel']}" == self.KERNEL:
                    found[record["device"]["name"]] = row
        self.assertGreater(len(found), 0)
        return found

    def files(self, to):
        folder = SCRATCH / to / name_of(self.KERNEL)
        name = name_of(self.KERNEL)
        places = {"cpp": [f"{name}.h", "README.md"], "pytorch": [f"{name}/__init__.py", "README.md"]}[to]
        return [(place, (folder / place).read_text()) for place in places]

    def test_every_place_has_the_recorded_row(self):
        rows = self.rows()
        last_day = max(row["measured"] for row in rows.values())
        for to in ("cpp", "pytorch"):
            for place, text in self.files(to):
                # Comments and literals are broken at blanks.
                flat = " ".join(text.replace("//", " ").replace('"', " ").split())
                told_whole = []
                for device, row in rows.items():
                    percent = row["percent_of_reference"]
                    parts = [device, row["status"], ", ".join(row["badges"]), row["harness"], row["measured"],
                             row["sha256"], f"{row['median_ns'] / 1e6:.4f} ms (95% interval ",
                             f"{percent['headline']:.1f}% of the speed of {percent['reference']} "
                             f"(95% interval {percent['low']:.1f}% to {percent['high']:.1f}%)",
                             "fp32: every element within 0.01 + 0.01·"]
                    more = [row["toolchain"]["driver"], f"root mean square {row['rms_error']} (at most ",
                            f"largest {row['max_error']} (at most "]
                    if not place.endswith(".h"):
                        parts += more
                    elif row["measured"] == last_day and all(part in flat for part in more):
                        told_whole.append(device)
                    for part in parts:
                        with self.subTest(place=place, device=device, part=part):
                            self.assertIn(part, flat)
                if place.endswith(".h"):  # a comment has all of the newest row, of the others the short form
                    self.assertTrue(told_whole, place)

    def test_package_metadata_has_it_too(self):
        text = (SCRATCH / "pytorch" / name_of(self.KERNEL) / "pyproject.toml").read_text()
        self.assertIn("; passed (strict, robust, deterministic) on NVIDIA ", text)
        if sys.version_info < (3, 11):
            self.skipTest("Python before 3.11 reads no TOML")
        import tomllib
        project = tomllib.loads(text)
        judged = project["tool"]["rekernel"]
        row = self.rows()[judged["device"].split(" (")[0]]
        self.assertEqual((judged["verdict"], judged["measured"], judged["sha256"]),
                         (row["status"], row["measured"], row["sha256"]))
        self.assertIn(judged["judge"].split(":")[0], row["harness"])
        self.assertEqual(judged["badges"].split(", "), row["badges"])
        self.assertEqual(project["project"]["readme"], "README.md")

    def test_constants_of_cpp_are_strings(self):
        source = SCRATCH / "constants.cpp"
        name = name_of(self.KERNEL)
        source.write_text(f'#include "cpp/{name}/{name}.h"\n#include <cstdio>\n'
                          f"int main() {{ std::puts({name}::judgement::verdict); }}\n")
        made = compile_cpp("-std=c++17", "-O0", source, "-o", SCRATCH / "constants", "-L", DRIVER, "-lcuda",
                           f"-Wl,-rpath,{DRIVER}")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(run(SCRATCH / "constants").stdout, "passed\n")

    def test_what_nobody_judged_is_refused_and_says_so_where_it_may_be(self):
        for to in ("cpp", "pytorch"):
            refused = run(PROGRAM, "export", folder_of("softmax/made_up"), "--to", to, "--into", SCRATCH / "none")
            self.assertEqual((refused.returncode, refused.stdout), (2, ""))
            self.assertIn("nobody judged exactly this source and plan", refused.stderr)
            self.assertIn("`rekernel bench softmax/made_up --record`", refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)
            self.assertFalse((SCRATCH / "none").exists())
            folder, name = SCRATCH / to / "softmax_made_up", "softmax_made_up"
            for place in [f"{name}.h", "README.md"] if to == "cpp" else [f"{name}/__init__.py", "README.md",
                                                                         "pyproject.toml"]:
                with self.subTest(place):
                    self.assertIn("not judged", (folder / place).read_text().lower())

    def test_the_bytes_count_and_not_the_name(self):
        """A copy under another folder's name is what was judged; one more blank in its source is not."""
        copy = SCRATCH / "copy"
        copy.mkdir()
        for file in (ROOT / "generated" / self.KERNEL).iterdir():
            (copy / file.name).write_bytes(file.read_bytes())
        judged = run(PROGRAM, "export", copy, "--to", "cpp", "--into", SCRATCH / "copied", "--code", "nvrtc")
        self.assertEqual(judged.returncode, 0, judged.stderr)
        (copy / "kernel.cu").write_text((copy / "kernel.cu").read_text() + " \n")
        changed = run(PROGRAM, "export", copy, "--to", "cpp", "--into", SCRATCH / "changed", "--code", "nvrtc")
        self.assertEqual(changed.returncode, 2)

    def test_a_row_of_another_judge_is_said_to_be_that(self):
        project = SCRATCH / "project"
        (project / "results/h200").mkdir(parents=True)
        (project / "generated/softmax").mkdir(parents=True)
        (project / "generated" / self.KERNEL).symlink_to(ROOT / "generated" / self.KERNEL)
        record = json.loads((ROOT / "results/h200/bench.json").read_text())
        row = next(row for row in record["rows"] if f"{row['problem']}/{row['kernel']}" == self.KERNEL)
        judge = run(PROGRAM, "--version").stdout.split("judge ")[1].split()[0]
        older = "-".join(["0123456789abcdef"] * 3)
        row["harness"] = older
        (project / "results/h200/bench.json").write_text(json.dumps(record))
        made = run(PROGRAM, "export", ROOT / "generated" / self.KERNEL, "--to", "cpp", "--code", "nvrtc", "--into",
                   SCRATCH / "older", cwd=project)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn(f"{older}: an older judge than this program's, which is {judge}-",
                      (SCRATCH / "older/README.md").read_text())


def text_of(shape):
    return "(" + ", ".join(map(str, shape)) + ")"


def architecture(load):
    """Of machine code: a byte of the file's flags, which one depends on the compiler."""
    header = bytes.fromhex(load["elf"])
    flags = struct.unpack_from("<I", header, 48)[0]
    return next((value for value in (flags & 0xFF, flags >> 8 & 0xFF) if 80 <= value <= 121), None)


unittest.main()
