"""The scripts of harness/problem_import as the program joins them, for tests and for making graphs."""

import json
import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "harness" / "problem_import"


def parts():
    """In the program's order, which stands in its CMakeLists.txt."""
    text = (ROOT / "harness" / "project" / "CMakeLists.txt").read_text()
    return re.search(r"foreach\(part ([^)]*)\)", text).group(1).split()


def names(wanted=None):
    """What the scripts define; of some parts alone, if these are given."""
    space = {"__name__": "scripts"}
    for part in wanted or parts():
        exec(compile((FOLDER / f"{part}.py").read_text(), f"{part}.py", "exec"), space)
    return space


def without_torch():
    return names([part for part in parts() if part not in ("trace", "session", "as_program", "check_values")])


def graph_of(space, path, problem):
    """The traced graph of a program in KernelBench's manner, for a test that has no PyTorch."""
    request = {"kind": "kernelbench", "path": path.name, "text": path.read_text(), "id": problem, "title": problem}
    own = space["traced"](request)
    small = space["traced"](request, space["CAPS"][0])
    return space["named"](space["merged"](own, small), request)


if __name__ == "__main__":  # makes the graphs again; needs PyTorch
    space = names()
    for program in sorted((pathlib.Path(__file__).parent / "programs").glob("*.py")):
        made = graph_of(space, program, program.stem)
        target = pathlib.Path(__file__).parent / "graphs" / f"{program.stem}.json"
        target.write_text(json.dumps(made, indent=1) + "\n")
