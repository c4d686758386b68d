"""What the tests of data sets share: the program, made-up projects, and data sets made of them."""

import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from whole_program import ROOT, ended_searches, rekernel, skip, take_option  # noqa: E402, F401


def make(program, folder, *arguments, cwd=ROOT, **more):
    """A data set. Without the wheel that writes one, and without a network, there is nothing to test."""
    made = rekernel(program, "dataset", folder, *arguments, cwd=cwd, **more)
    if "set-up: error:" in made.stderr:
        skip(made.stderr.strip())
    return made


def small_project(folder):
    """One problem's kernels, results and search, and a few fixtures, as a project of its own."""
    for part in ("generated/softmax", "results/published.json", "trajectories/softmax.jsonl",
                 "tests/honest/softmax/row_on_chip", "tests/mutants/softmax/row_on_chip.json",
                 "tests/adversarial/result_cache", "tests/adversarial/zeros"):
        source, target = ROOT / part, folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    (folder / "results/h200").mkdir()
    return folder


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def import_pyarrow():
    """The pinned wheel, which the program fetched."""
    version = ".".join(map(str, sys.version_info[:2]))
    sys.path.insert(0, str(ROOT / ".deps" / f"dataset-{version}"))
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        skip(f"no PyArrow: {error}")
    return parquet
