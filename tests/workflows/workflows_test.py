#!/usr/bin/env python3
"""The workflows of GitHub Actions: GitHub's schema, zizmor's audits, shellcheck on every step and script, and
what this project asks beyond them. The tools are pinned wheels, fetched when this runs."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from lint_tools import FOLDER as LINT, fetch, tool  # noqa: E402

SKIPPED = 77  # what ctest takes for "skipped"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run(*command, **more):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **more)


def parsed(path):
    from ruamel.yaml import YAML
    return YAML(typ="safe", pure=True).load(path.read_text())


def jobs_of(workflow):
    return [(name, job) for name, job in workflow["jobs"].items()]


def steps_of(workflow):
    return [step for _, job in jobs_of(workflow) for step in job["steps"]]


class Workflows(unittest.TestCase):
    def test_all_are_there(self):
        self.assertEqual([path.stem for path in WORKFLOWS], ["checks", "comment", "gpu", "release", "verify"])

    def test_schema(self):
        import fastjsonschema
        schema = json.loads((LINT / "check_jsonschema/builtin_schemas/vendor/github-workflows.json").read_text())
        validate = fastjsonschema.compile(schema)
        for path in WORKFLOWS:
            with self.subTest(path.name):
                validate(parsed(path))
        with self.assertRaises(fastjsonschema.JsonSchemaException):  # it can tell
            validate({"on": "push", "jobs": {"one": {"steps": []}}})

    def test_audits(self):
        audit = run(tool("zizmor"), "--offline", "--no-progress", "--persona=pedantic", "--min-severity=low",
                    *map(str, WORKFLOWS))
        self.assertEqual(audit.returncode, 0, audit.stdout + audit.stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as bad:
            bad.write("on: pull_request_target\n"
                      "jobs: {one: {runs-on: x, steps: [{run: 'echo ${{ github.head_ref }}'}]}}\n")
            bad.flush()
            self.assertNotEqual(run(tool("zizmor"), "--offline", "--no-progress", bad.name).returncode, 0)

    def test_steps_are_good_shell(self):
        for path in WORKFLOWS:
            for step in steps_of(parsed(path)):
                if "run" in step:
                    checked = run(tool("shellcheck"), "--shell=bash", "-", input=step["run"])
                    self.assertEqual(checked.returncode, 0, f"{path.name}: {checked.stdout}")
                    self.assertNotIn("${{", step["run"], f"{path.name}: a step's text comes from outside")

    def test_scripts_are_good_shell(self):
        files = run("git", "ls-files", "--cached", "--others", "--exclude-standard").stdout.split("\n")
        scripts = [path for path in files if path.endswith(".sh") and (ROOT / path).is_file()]
        self.assertIn(".github/comment.sh", scripts)
        checked = run(tool("shellcheck"), "-x", "run", "test", ".ci/run", *scripts)
        self.assertEqual(checked.returncode, 0, checked.stdout)

    def test_every_action_is_pinned(self):
        pin = re.compile(r"[a-z-]+/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
        pins = {}
        for path in WORKFLOWS:
            for line in path.read_text().splitlines():
                if "uses:" in line:
                    used = line.split("uses:", 1)[1].strip()
                    self.assertRegex(used, f"^{pin.pattern}$", path.name)
                    pins.setdefault(used.split("@")[0], set()).add(used)
        self.assertEqual({name: len(versions) for name, versions in pins.items()}, dict.fromkeys(pins, 1))

    def test_nobody_may_more_than_needed(self):
        allowed = {"checks": {"contents": "read"}, "verify": {"contents": "read"}, "gpu": {"contents": "read"},
                   "comment": {"contents": "read", "actions": "read", "pull-requests": "write"},
                   "release/build": {"contents": "read"}, "release/publish": {"contents": "write"}}
        for path in WORKFLOWS:
            workflow = parsed(path)
            self.assertEqual(workflow["permissions"], {}, path.name)
            for name, job in jobs_of(workflow):
                key = path.stem if path.stem in allowed else f"{path.stem}/{name}"
                self.assertEqual(job["permissions"], allowed[key])
                self.assertLessEqual(job["timeout-minutes"], 60)
            for step in steps_of(workflow):
                if "checkout" in step.get("uses", ""):
                    self.assertIs(step["with"]["persist-credentials"], False, path.name)

    def test_what_a_fork_can_reach(self):
        for path in WORKFLOWS:
            workflow, text = parsed(path), path.read_text()
            # Both run the main branch's own text with more than a fork may.
            self.assertEqual("pull_request_target" in workflow["on"], path.stem in ("gpu", "verify"))
            self.assertEqual("workflow_run" in workflow["on"], path.stem == "comment")
            self.assertEqual("self-hosted" in text, path.stem == "gpu")
        gpu = parsed(ROOT / ".github/workflows/gpu.yml")
        self.assertEqual(gpu["on"]["pull_request_target"], {"types": ["labeled"]})
        self.assertEqual(gpu["jobs"]["verdict"]["if"], "github.event.label.name == 'gpu'")
        for name in ("gpu", "verify"):
            # Nothing of the head's folder is started: it is where the base's program looks.
            in_head = [step["run"] for step in steps_of(parsed(ROOT / f".github/workflows/{name}.yml"))
                       if step.get("working-directory") == "head"]
            self.assertEqual(len(in_head), 1)
            self.assertRegex(in_head[0], r"^mkdir .*\necho .*\necho .*\n\.\./base/build/rekernel verify ")
        comment = (ROOT / ".github/workflows/comment.yml").read_text()
        self.assertNotIn("ref: ${{ github.event.workflow_run", comment)

    def test_what_judges_is_the_bases(self):
        """A pull request brings its own verify.yml, or a workflow of the same name: neither speaks for the bot."""
        comment = parsed(ROOT / ".github/workflows/comment.yml")
        judges = {name: parsed(ROOT / f".github/workflows/{name}.yml") for name in ("verify", "gpu")}
        self.assertEqual(sorted(comment["on"]["workflow_run"]["workflows"]),
                         sorted(workflow["name"] for workflow in judges.values()))
        self.assertIn("github.event.workflow_run.event == 'pull_request_target'", comment["jobs"]["comment"]["if"])
        script = (ROOT / ".github/comment.sh").read_text()
        for name, workflow in judges.items():
            self.assertEqual(set(workflow["on"]), {"pull_request_target"}, name)
            # It must be known by its path, with a marker of its own.
            self.assertEqual(len(re.findall(rf"\.github/workflows/{name}\.yml\) marker='<!-- rekernel-{name} -->'",
                                            script)), 1)
            for step in steps_of(workflow):
                self.assertNotIn("actions/cache", step.get("uses", ""), name)
            commits = [step["with"]["ref"] for step in steps_of(workflow) if "checkout" in step.get("uses", "")]
            self.assertEqual(commits, ["${{ github.event.pull_request.base.sha }}",
                                       "${{ github.event.pull_request.head.sha }}"], name)
            verify = next(step for step in steps_of(workflow) if step.get("name") == "Verify")
            self.assertEqual(verify["env"]["COMMIT"], "${{ github.event.pull_request.head.sha }}")
        sent = next(step for step in steps_of(comment) if "comment.sh" in step.get("run", ""))["env"]
        self.assertEqual(sent["EVENT"], "${{ github.event.workflow_run.event }}")
        self.assertEqual(sent["WORKFLOW_PATH"], "${{ github.event.workflow_run.path }}")


if __name__ == "__main__":
    if why := fetch():
        print(f"skipped: {why}")
        sys.exit(SKIPPED)
    unittest.main()
