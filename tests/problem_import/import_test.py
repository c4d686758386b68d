"""`rekernel problem import`: programs become problems that agree with them; what is none is one line."""

import base64
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
COMPLAINTS = {
    "missing_package": "No module named 'a_package_that_nobody_has'",
    "nan_in_the_truth": "the outputs have NaN on the program's own inputs",
    "no_model": "no 'Model'",
    "no_syntax": "SyntaxError",
    "other_shapes_each_call": "get_inputs gives other shapes from call to call",
    "output_of_another_type": "output",
    "random_inside": "randomness inside of the model",
    "runs_forever": "not traced within 15 s",
    "uses_the_network": "Error",
}


def run(*arguments):
    return subprocess.run([PROGRAM, "problem", "import", *map(str, arguments)], capture_output=True, text=True)


def safetensors(path, tensors):
    """A file in that format, of tensors as (type, shape, bytes) by name."""
    header, data = {}, b""
    for name, (dtype, shape, values) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Into(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def refused(self, why, *arguments):
        outcome = run(*arguments, "--into", self.folder)
        self.assertEqual(outcome.returncode, 2, outcome.stdout)
        self.assertTrue(outcome.stderr.startswith("rekernel: "), outcome.stderr)
        self.assertEqual(outcome.stderr.count("\n"), 1, outcome.stderr)
        self.assertIn(why, outcome.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])


class Arguments(Into):
    def test_arguments(self):
        program = HERE / "programs" / "scaled_rows.py"
        self.refused("no such file", HERE / "programs" / "none.py")
        self.refused("--axis rows", program, "--axis", "rows")
        self.refused("Definition of FlashInfer's", program, "--workload", HERE / "workloads.jsonl")
        outcome = run(program, "--into", self.folder / "none")
        self.assertEqual((outcome.returncode, "no such folder" in outcome.stderr), (2, True))


class Programs(Into):
    def test_programs(self):
        for program in sorted((HERE / "programs").glob("*.py")):
            outcome = run(program, "--into", self.folder, "--json")
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            told = json.loads(outcome.stdout)
            self.assertEqual(told["id"], program.stem)
            graph = json.loads((HERE / "graphs" / f"{program.stem}.json").read_text())
            self.assertEqual(len(told["outputs"]), len(graph["outputs"]))
            again = run(program, "--into", self.folder)
            self.assertEqual((again.returncode, "exists already" in again.stderr), (2, True))

    def test_it_may_be_checked_on_many_values(self):
        # Megabytes of text: there are no smaller sizes.
        program = self.folder / "doubled.py"
        program.write_text("import torch\n\n\nclass Model(torch.nn.Module):\n"
                           "    def forward(self, x):\n        return 2 * x\n\n\n"
                           "def get_inputs():\n    return [torch.rand(300, 500)]\n\n\n"
                           "def get_init_inputs():\n    return []\n")
        outcome = run(program, "--into", self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)

    def test_programs_that_the_language_cannot_say(self):
        for name, why in [("orthogonal", "the operator 'linalg_qr' has no translation"),
                          ("sorted_network", "data-dependent")]:
            outcome = run(HERE / "as_programs" / f"{name}.py", "--into", self.folder, "--json")
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            told = json.loads(outcome.stdout)
            self.assertTrue(told["truth"].startswith("the program: "), told)
            self.assertIn(why, told["truth"])
            checked = subprocess.run([PROGRAM, "problem", "check", self.folder / f"{name}.json"], capture_output=True,
                                     text=True)
            self.assertEqual(checked.returncode, 0, checked.stderr)
        made = json.loads((self.folder / "sorted_network.json").read_text())
        self.assertEqual(made["program"]["arguments"], ["x", None, "output_in"])
        self.assertEqual(made["program"]["draws"], ["output_in"])
        self.assertEqual(made["inputs"]["output_in"], {"dtype": "i64", "shape": [64], "draw": {"integers": [0, 64]}})
        self.assertEqual(made["program"]["parameters"]["norm_running_var"], "norm.running_var")
        self.assertEqual([one["dtype"] for one in made["outputs"].values()], ["f32", "i64"])

    def test_a_program_where_there_could_be_a_definition(self):
        outcome = run(HERE / "programs" / "triangles.py", "--as-program", "--into", self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        made = json.loads((self.folder / "triangles.json").read_text())
        self.assertEqual(made["program"]["draws"], ["a"])
        self.assertNotIn("definition", made)

    def test_a_definition_at_a_workload(self):
        self.refused("axis 'rows' is variable", HERE / "definition.json")
        outcome = run(HERE / "definition.json", "--workload", HERE / "workloads.jsonl", "--into", self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        made = json.loads((self.folder / "definition.json").read_text())
        self.assertEqual(made["axes"], {"rows": 320, "inner": 128, "columns": 96})
        self.assertEqual(made["definition"], ["c[i, j] = (sum(k) a[i, k] * b[j, k]) * 0.5"])

    def test_a_scalar_is_a_workloads(self):
        definition = HERE / "scaled_definition.json"
        self.refused("input 'scale' is a scalar", definition, "--axis", "rows=64")
        outcome = run(definition, "--workload", HERE / "workloads.jsonl", "--into", self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        made = json.loads((self.folder / "scaled_definition.json").read_text())
        self.assertEqual(list(made["inputs"]), ["x"])
        self.assertEqual(made["definition"], ["y[i, j] = x[i, j] * 0.125"])

    def test_constants_that_the_program_insists_on_stay(self):
        outcome = run(HERE / "fixed_definition.json", "--axis", "rows=8192", "--into", self.folder)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        made = json.loads((self.folder / "fixed_definition.json").read_text())
        self.assertEqual(made["inputs"]["x"]["shape"], ["rows", 4096])
        self.assertEqual(made["axes"]["rows"], 8192)
        self.assertIn("sum(", " ".join(made["definition"]))

    def test_integers_are_a_workloads(self):
        definition = HERE / "gathered_definition.json"
        self.refused("input 'order': expected --workload FILE", definition, "--axis", "rows=50", "--axis", "chosen=7")
        order = [3, 0, 49, 7, 7, 1, 20]
        data_set = self.folder / "set"
        for part in ("definitions", "workloads", "blob"):
            (data_set / part).mkdir(parents=True)
        shutil.copy(definition, data_set / "definitions" / "gathered.json")
        tensors = {"order": ("I32", [7], struct.pack("<7i", *order)), "scale": ("F32", [1], struct.pack("<f", 0.5))}
        safetensors(data_set / "blob" / "values.safetensors", tensors)
        place = {"type": "safetensors", "path": "blob/values.safetensors"}
        inputs = {"x": {"type": "random"}, **{name: {**place, "tensor_key": name} for name in tensors}}
        workload = {"definition": "gathered_rows", "workload": {"axes": {"rows": 50}, "inputs": inputs}}
        workloads = data_set / "workloads" / "gathered.jsonl"
        workloads.write_text(json.dumps(workload) + "\n")
        into = self.folder / "into"
        into.mkdir()
        outcome = run(data_set / "definitions" / "gathered.json", "--into", into)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        made = json.loads((into / "gathered.json").read_text())
        self.assertEqual(made["axes"], {"rows": 50, "chosen": 7, "columns": 96})
        self.assertEqual(made["inputs"]["order"], {"dtype": "i32", "shape": [7], "draw": {"integers": [0, 50]}})
        program = made["program"]
        self.assertEqual((program["arguments"], program["numbers"]), (["x", "order", None], [0.5]))
        self.assertEqual(struct.unpack("<7i", base64.b64decode(program["values"]["order"])), tuple(order))
        checked = subprocess.run([PROGRAM, "problem", "check", into / "gathered.json"],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        for change, why in [({"rows": 50, "chosen": 8}, "has 7 for the axis 'chosen': expected 8"),
                            ({"rows": 20}, "IndexError")]:
            workload["workload"]["axes"] = change
            workloads.write_text(json.dumps(workload) + "\n")
            outcome = run(data_set / "definitions" / "gathered.json", "--into", into, "--id", "other")
            self.assertEqual((outcome.returncode, why in outcome.stderr), (2, True), outcome.stderr)
        (data_set / "blob" / "values.safetensors").unlink()
        outcome = run(data_set / "definitions" / "gathered.json", "--into", into, "--id", "other")
        self.assertIn("no file blob/values.safetensors in ", outcome.stderr)

    def test_bad_programs(self):
        programs = sorted((HERE / "bad").glob("*.py"))
        self.assertEqual([one.stem for one in programs], sorted(COMPLAINTS))
        for program in programs:
            with self.subTest(program.stem):
                deadline = 15 if program.stem == "runs_forever" else 120
                self.refused(COMPLAINTS[program.stem], program, "--deadline", deadline)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if "Programs" in sys.argv and subprocess.run(["python3", "-c", "import torch"], capture_output=True).returncode:
        print("skipped: python3 here cannot import torch")
        sys.exit(77)
    unittest.main()
