"""Programs as the truth, on a GPU: a correct candidate passes, an empty one does not, and a bad program is no verdict."""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


class OnAGpu(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def done(self, *arguments):
        outcome = run(*arguments)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)
        return outcome.stdout

    def imported(self, name, *options):
        into = self.folder / ("_".join(["of", name, *options]))
        into.mkdir(parents=True)
        self.done("problem", "import", HERE / f"{name}.py", "--into", into, *options)
        return into / f"{pathlib.Path(name).name}.json"

    def status(self, candidate, problem, *options):
        outcome = run("evaluate", candidate, "--problem", problem, "--json", *options)
        self.assertIn(outcome.returncode, (0, 1), outcome.stderr)
        return json.loads(outcome.stdout)

    def test_a_definition_and_the_program_give_the_same_verdict(self):
        definition = self.imported("programs/scaled_rows")
        program = self.imported("programs/scaled_rows", "--as-program")
        self.done("new", "slow", "--into", self.folder, "--problem", definition)
        for problem in (definition, program):
            verdict = self.status(self.folder / "slow", problem, "--pytorch")
            self.assertEqual(verdict["status"], "passed", verdict["message"])
            self.assertTrue(verdict["robust"], verdict["badge_notes"])
            self.assertGreaterEqual(len(verdict["references"]), 2)
            self.assertEqual({one["unavailable"] for one in verdict["references"]}, {""})

    def test_inputs_that_the_program_draws(self):
        definition = json.loads(self.imported("programs/triangles").read_text())
        path = self.imported("programs/triangles", "--as-program")
        program = json.loads(path.read_text())
        self.assertEqual(program["program"]["draws"], ["a"])
        program["axes"] = definition["axes"]  # names that the slow candidate's source uses
        path.write_text(json.dumps(program))
        made = self.folder / "of_programs" / "triangles.json"
        made.parent.mkdir(exist_ok=True)
        made.write_text(json.dumps(definition))
        self.done("new", "slow", "--into", self.folder, "--problem", made)
        verdict = self.status(self.folder / "slow", path)
        self.assertEqual(verdict["status"], "passed", verdict["message"])

    def test_an_empty_candidate_is_wrong(self):
        program = self.imported("as_programs/sorted_network")
        self.done("new", "empty", "--into", self.folder, "--problem", program)
        self.assertEqual(self.status(self.folder / "empty", program)["status"], "wrong_result")

    def test_a_program_that_fails_is_no_verdict(self):
        path = self.imported("programs/scaled_rows", "--as-program")
        self.done("new", "slow", "--into", self.folder, "--problem", path)
        for change, why in [(("import torch", "import nobody"), "No module named 'nobody'"),
                            (("x.square()", "x.log()"), "has NaN")]:
            problem = json.loads(path.read_text())
            problem["program"]["text"] = problem["program"]["text"].replace(*change)
            path.with_name("bad.json").write_text(json.dumps(problem))
            outcome = run("evaluate", self.folder / "slow", "--problem", path.with_name("bad.json"))
            self.assertEqual(outcome.returncode, 2, outcome.stdout)
            self.assertIn(why, outcome.stderr)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    if subprocess.run(["python3", "-c", "import torch"], capture_output=True).returncode:
        print("skipped: python3 here cannot import torch")
        sys.exit(77)
    if not pathlib.Path("/dev/nvidiactl").exists():
        print("skipped: no GPU")
        sys.exit(77)
    unittest.main()
