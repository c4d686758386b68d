#!/usr/bin/env python3
"""The commands of harness/TUTORIAL.md, run one after the other in a copy of the project, print what the page says.

Arguments: the program; --gpu: runs the steps that need a GPU too; --record: writes what those print into the page.
Exit status 77: skipped, since no compiler is here, or the program reads problems from its own folder alone.

The page is read as Markdown. A block after `<!-- file: PATH -->` is saved under that path. In a block of the language
`console`, a line that begins with `$ ` is a command and the lines after it are its output, on either stream; `…` is
any text in a line, or, alone, any lines. A block `console gpu` needs a GPU; of its output the words are compared, and
for a number stands any number. `<!-- status: N -->` before a block is its last command's exit status (else 0), and
`<!-- test: COMMAND -->` is what others do in between."""
import argparse
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from whole_program import ROOT, skip  # noqa: E402

PAGE = ROOT / "harness" / "TUTORIAL.md"
HOME = "/home/you/rekernel"  # where the page's reader has the project
UNRECORDED = "(not recorded)"
NUMBER = re.compile(r"\b[0-9a-f]{12,64}\b|-?\d[\d.,:-]*(?:e[-+]?\d+)?")


@dataclasses.dataclass
class Step:
    kind: str  # file, test, command
    text: str  # content or command
    path: str = ""
    output: list[str] = dataclasses.field(default_factory=list)
    status: int = 0
    gpu: bool = False
    lines: range = range(0)  # of the page, that hold the output; counted from 0


def steps_of(page):
    """What the page has its reader do, in its order."""
    steps, lines, path, status = [], page.splitlines(), "", 0
    i = 0
    while i < len(lines):
        directive = re.fullmatch(r"<!-- (file|test|status): (.*) -->", lines[i])
        fence = re.match(r"(`{3,})(.*)$", lines[i])
        i += 1
        if directive:
            kind, value = directive.groups()
            if kind == "test":
                steps.append(Step("test", value))
            path = value if kind == "file" else path
            status = int(value) if kind == "status" else status
        elif fence:
            end = lines.index(fence[1], i)
            language = fence[2].split()
            if path:
                steps.append(Step("file", "\n".join(lines[i:end]) + "\n", path))
            elif language[:1] == ["console"]:
                commands = [at for at in range(i, end) if lines[at].startswith("$ ")]
                assert commands[:1] == [i], f"line {i + 1}: expected a command first"
                for at, after in zip(commands, [*commands[1:], end], strict=True):
                    steps.append(Step("command", lines[at][2:], output=lines[at + 1:after], gpu="gpu" in language,
                                      lines=range(at + 1, after), status=status if after == end else 0))
            path, status, i = "", 0, end + 1
    return steps


def as_compared(line, loosely):
    """A line without what may differ."""
    line = line.rstrip()
    return re.sub(r"[-–\s]+", " ", NUMBER.sub("0", line)) if loosely else line


def fits(expected, printed, loosely=False):
    """Whether lines are as expected, with `…` for anything."""
    if not expected:
        return not printed
    if expected[0].strip() == "…":
        return any(fits(expected[1:], printed[skipped:], loosely) for skipped in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(re.escape(part) for part in as_compared(expected[0], loosely).split("…"))
    return re.fullmatch(pattern, as_compared(printed[0], loosely)) is not None and fits(
        expected[1:], printed[1:], loosely)


def check_itself():
    page = ("<!-- file: a -->\n```json\n{}\n```\n<!-- status: 3 -->\n```console gpu\n$ one\n…\nlast 5 ms\n$ two\n```\n"
            "```sh\nnot run\n```\n<!-- test: three -->\n")
    steps = steps_of(page)
    assert [(one.kind, one.text, one.status) for one in steps] == [
        ("file", "{}\n", 0), ("command", "one", 0), ("command", "two", 3), ("test", "three", 0)], steps
    assert steps[1].output == ["…", "last 5 ms"] and steps[1].gpu and list(steps[1].lines) == [7, 8]
    assert fits(["…", "last 5 ms"], ["a", "b", "last 5 ms"]) and not fits(["…", "last 5 ms"], ["last 6 ms"])
    assert fits(["last 5 ms"], ["last  6.25 ms"], loosely=True) and not fits(["5 ms"], ["5 s"], loosely=True)
    assert not fits(["a"], ["a", "b"]) and not fits(["a", "b"], ["a"]) and fits(["a … c"], ["a b c"])


def copy_of_project(folder, program):
    """The project's files as they are here, in a repository of one commit, with the program where ./run puts it."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        skip("this is no clone: " + listed.stderr.strip())
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / "build").mkdir(exist_ok=True)
    (folder / "build" / "rekernel").symlink_to(program)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "the project"],
                    ["update-ref", "refs/remotes/upstream/main", "HEAD"]):
        subprocess.run(["git", *command], cwd=folder, env=environment(), check=True)


def environment():
    person = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
              for what, value in (("NAME", "You"), ("EMAIL", "you@example.com"))}
    return {**os.environ, **person, "COLUMNS": "100", "NO_COLOR": "1", "PAGER": "cat", "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1"}


def run(command, folder):
    """The exit status, and what the command printed, in lines, with the page's folder instead of the copy's."""
    made = subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=900)
    return made.returncode, [line.rstrip() for line in made.stdout.replace(str(folder), HOME).splitlines()]


def complaint(step, status, printed):
    """How what a command did differs from the page; nothing if it does not."""
    if step.output == [UNRECORDED]:
        return "its output is not recorded: run this test with --gpu --record on a machine with a GPU"
    if status == step.status and fits(step.output, printed, loosely=step.gpu):
        return ""
    return "\n".join([f"expected status {step.status} and", *step.output, f"got status {status} and", *printed])


def follow(page, folder, gpu, record):
    """Runs the steps. Complaints, and the page's lines as recorded: {range of lines: lines}."""
    complaints, recorded, count = [], {}, 0
    for step in steps_of(page):
        if step.kind == "file":
            (folder / step.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.path).write_text(step.text, encoding="utf-8")
        elif step.kind == "test":
            subprocess.run(["bash", "-c", step.text], cwd=folder, env=environment(), check=True)
        elif gpu or not step.gpu:
            status, printed = run(step.text, folder)
            if "libnvrtc" in "\n".join(printed):
                skip("nothing compiles here: no NVRTC")
            count += 1
            if record and step.gpu:
                if status != step.status:
                    complaints.append(f"$ {step.text}\nended with status {status}:\n" + "\n".join(printed))
                recorded[step.lines] = printed
            elif found := complaint(step, status, printed):
                complaints.append(f"{PAGE.name}:{step.lines.start}: $ {step.text}\n{found}")
    return complaints, recorded


def main():
    check_itself()
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    commands = [step for step in steps_of(page) if step.kind == "command"]
    assert len([step for step in commands if not step.gpu]) >= 8 and len([step for step in commands if step.gpu]) >= 4
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "rekernel"
        folder.mkdir()
        copy_of_project(folder, asked.program.resolve())
        complaints, recorded = follow(page, folder, asked.gpu, asked.record)
    lines = page.splitlines()
    for place in sorted(recorded, key=lambda one: one.start, reverse=True):
        lines[place.start:place.stop] = recorded[place]
    if recorded and not complaints:
        PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n\n".join(complaints))
    print(f"{len(commands)} commands, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
