"""What the tests of data sets share: the program, made-up projects, and data sets made of them."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77  # what ctest takes for "skipped"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def rekernel(program, *arguments, cwd=ROOT, **more):
    return subprocess.run([program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=300, **more)


def make(program, folder, *arguments, cwd=ROOT, **more):
    """A data set. Without the wheel that writes one, and without a network, there is nothing to test."""
    made = rekernel(program, "dataset", folder, *arguments, cwd=cwd, **more)
    if "set-up: error:" in made.stderr:
        skip(made.stderr.strip())
    return made


def take_option(name):
    """The folder that follows an option of the command line, which loses both."""
    place = sys.argv.index(name)
    folder = Path(sys.argv[place + 1])
    del sys.argv[place:place + 2]
    return folder


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
