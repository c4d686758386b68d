"""What the tests of the report share: the program, made-up projects, and reports made of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from whole_program import ROOT, ended_searches, rekernel, skip, take_option  # noqa: E402, F401


def make(program, folder, cwd=ROOT, **more):
    """A report. Without the wheels that make one, and without a network, there is nothing to test."""
    made = rekernel(program, "report", "--html", folder, cwd=cwd, **more)
    if "set-up: error:" in made.stderr:
        skip(made.stderr.strip())
    return made


def data_of(program, cwd, scratch):
    """The data that the program hands to the generator."""
    stand_in = scratch / "bin" / "python3"
    copy = scratch / "data.json"
    stand_in.parent.mkdir()
    # make.sh calls: python3 -s -m report_html FOLDER <DATA
    stand_in.write_text('#!/bin/bash\nset -o pipefail\n'
                        f'[[ $* == *report_html* ]] && exec < <(tee "{copy}")\n'
                        f'exec "{shutil.which("python3")}" "$@"\n')
    stand_in.chmod(0o755)
    path = f"{stand_in.parent}:{os.environ['PATH']}"
    made = make(program, scratch / "report", cwd=cwd, env={**os.environ, "PATH": path})
    assert made.returncode == 0, made.stderr
    return json.loads(copy.read_text())


def of_the_project(program, scratch, made):
    """The project's data and its report's folder: what project_report.py made in a folder, or new ones."""
    if made and (made / "data.json").exists():
        return json.loads((made / "data.json").read_text()), made / "report"
    return data_of(program, ROOT, scratch), scratch / "report"


def generate(data, folder):
    """Pages of any data: what the generator makes of it."""
    folder.mkdir()
    return subprocess.run([ROOT / "harness/report_html/make.sh", folder], input=json.dumps(data),
                          check=False, capture_output=True, text=True, timeout=300)


def small_project(folder):
    """One problem's kernels, results and search, and a few fixtures, as a project of its own."""
    for part in ("generated/softmax", "results/published.json", "results/h200",
                 "trajectories/softmax.jsonl", "tests/honest/softmax/row_on_chip",
                 "tests/mutants/softmax/row_on_chip.json", "tests/adversarial/result_cache",
                 "tests/adversarial/zeros"):
        source, target = ROOT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    return folder


def pages_of(folder):
    return sorted(folder.rglob("*.html"))


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}
