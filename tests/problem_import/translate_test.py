"""From a traced graph to a problem's file, without PyTorch: the graphs were traced from programs/ (scripts.py)."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import scripts

HERE = pathlib.Path(__file__).parent
SPACE = scripts.without_torch()


def node(op, arguments, shape, name="made", dtype="f32", **more):
    return {"name": name, "op": op, "arguments": arguments, "args": list(arguments.values()), "kwargs": {},
            "shape": shape, "dtype": dtype, **more}


def ref(name, **more):
    return {"node": name, **more}


def tensor(name, shape, dtype="f32"):
    return {"name": name, "dtype": dtype, "shape": shape, "draw": {"normal": [0, 1]}, "how": ""}


def problem(inputs, nodes, outputs, names=()):
    graph = {"id": "made", "title": "made", "inputs": inputs, "nodes": nodes, "outputs": outputs, "names": list(names)}
    return SPACE["problem_of"](graph)["problem"]


B, N = [64, 4], [100, 6]


class Traced(unittest.TestCase):
    maxDiff = None

    def made(self, name):
        graph = json.loads((HERE / "graphs" / f"{name}.json").read_text())
        for one in graph["inputs"]:
            self.assertIsNotNone(one["draw"])
        return SPACE["problem_of"](graph)

    def test_scaled_rows(self):
        made = self.made("scaled_rows")
        self.assertEqual(made["problem"]["axes"], {"rows": 4096, "channels": 1024})
        self.assertEqual(made["small"], {"rows": 8, "channels": 8})
        self.assertEqual(made["problem"]["definition"], [
            "part[i] = sqrt((sum(j) x[i, j] * x[i, j]) / channels + 1e-05)",
            "output[i, j] = x[i, j] / part[i] * weight[j]"])
        self.assertEqual(made["problem"]["inputs"]["weight"],
                         {"dtype": "f32", "shape": ["channels"], "draw": {"constant": 1}})

    def test_convolution(self):
        made = self.made("convolution")["problem"]
        self.assertEqual(made["inputs"]["x"]["draw"], {"uniform": [-1, 1]})
        self.assertEqual(made["inputs"]["conv_weight"]["draw"],
                         {"uniform": ["-1 / sqrt(in_channels * 3 * 3)", "1 / sqrt(in_channels * 3 * 3)"]})
        self.assertEqual(made["definition"][0].split(" = ")[1],
                         "maximum((sum(m, n, o) x[i, m, k * 2 + n - 1, l * 2 + o - 1 else 0] * conv_weight[j, m, n, o]) "
                         "+ conv_bias[j], 0)")
        self.assertEqual(len(made["outputs"]["output"]["shape"]), 4)

    def test_triangles(self):
        made = self.made("triangles")["problem"]
        self.assertEqual(made["made"], ["a[i, j, k] = where(k <= j, a[i, j, k], 0)"])
        self.assertEqual([one["dtype"] for one in made["outputs"].values()], ["f32", "i64"])
        self.assertIn("sqrt(width)", " ".join(made["definition"]))

    def test_what_was_made_is_a_problem(self):
        for graph in sorted((HERE / "graphs").glob("*.json")):
            made = self.made(graph.stem)
            with tempfile.TemporaryDirectory(dir=HERE.parents[1] / "build") as folder:
                path = pathlib.Path(folder) / f"{made['problem']['id']}.json"
                path.write_text(SPACE["file_text"](made["problem"]))
                outcome = subprocess.run([PROGRAM, "show", path, "--json"], capture_output=True, text=True)
                self.assertEqual(outcome.returncode, 0, outcome.stderr)


class Operators(unittest.TestCase):
    def test_what_is_broadcast_and_summed_is_computed_once(self):
        made = problem([tensor("x", [B, N])], [
            node("sum", {"self": ref("x"), "dim": [1], "keepdim": True}, [B, [1, 1]], "total"),
            node("div", {"self": ref("x"), "other": ref("total")}, [B, N])], [ref("made")])
        self.assertEqual(made["definition"], ["part[i] = sum(j) x[i, j]", "output[i, j] = x[i, j] / part[i]"])

    def test_a_running_sum_is_a_statement_of_its_own(self):
        rows = node("cumsum", {"self": ref("x"), "dim": 1}, [B, N], "sums")
        made = problem([tensor("x", [B, N])], [rows, node("neg", {"self": ref("sums")}, [B, N])], [ref("made")])
        self.assertEqual(made["definition"], [
            "running[i, j < size_2] = sum(k : k <= j) x[i, k]", "output[i, j] = -running[i, j]"])
        alone = problem([tensor("x", [B, N])], [rows], [ref("sums")])
        self.assertEqual(alone["definition"], ["output[i, j] = sum(k : k <= j) x[i, k]"])

    def test_a_number_that_follows_from_sizes_is_an_expression(self):
        made = problem([tensor("x", [B, N])], [
            node("mul", {"self": ref("x"), "other": {"pair": [1 / 100 ** 0.5, 1 / 6 ** 0.5]}}, [B, N])],
            [ref("made")], [["rows", B], ["width", N]])
        self.assertEqual(made["definition"], ["output[i, j] = x[i, j] * (1 / sqrt(width))"])
        self.assertEqual(made["pytorch"], "torch.ops.aten.mul(x, 1 / (width) ** 0.5)")

    def test_a_number_that_follows_from_nothing_known_is_refused(self):
        with self.assertRaisesRegex(SPACE["Untranslatable"], "not recognised"):
            problem([tensor("x", [B])], [
                node("mul", {"self": ref("x"), "other": {"pair": [17.5, 3.25]}}, [B])], [ref("made")])

    def test_what_is_changed_in_place_is_what_is_read_later(self):
        made = problem([tensor("x", [B])], [
            node("relu_", {"self": ref("x")}, [B], "first", mutates="x"),
            node("neg", {"self": ref("x")}, [B])], [ref("made")])
        self.assertEqual(made["definition"], ["output[i] = -maximum(x[i], 0)"])

    def test_views_that_merge_and_cut(self):
        made = problem([tensor("x", [B, N])], [
            node("view", {"self": ref("x"), "size": [-1]}, [[6400, 24]], "flat"),
            node("view", {"self": ref("flat"), "size": [64, 100]}, [B, N])], [ref("made")])
        self.assertEqual(len(made["definition"]), 1)
        self.assertEqual(made["outputs"]["output"]["shape"], made["inputs"]["x"]["shape"])

    def test_without_a_translation(self):
        with self.assertRaisesRegex(SPACE["Untranslatable"], "'linalg_qr' has no translation"):
            problem([tensor("x", [B])], [node("linalg_qr", {"A": ref("x")}, [B])], [ref("made")])
        with self.assertRaisesRegex(SPACE["Untranslatable"], "random"):
            problem([tensor("x", [B])], [
                node("dropout", {"input": ref("x"), "p": 0.5, "train": True}, [B])], [ref("made")])

    def test_what_no_output_needs_may_be_anything(self):
        made = problem([tensor("x", [B])], [
            node("linalg_qr", {"A": ref("x")}, [B], "unused"), node("neg", {"self": ref("x")}, [B])], [ref("made")])
        self.assertEqual(made["definition"], ["output[i] = -x[i]"])

    def test_names_that_the_language_has(self):
        made = problem([tensor("x", [B])], [node("neg", {"self": ref("x")}, [B])], [ref("made")], [["sum", B]])
        self.assertEqual(made["axes"], {"sum_2": 64})


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
