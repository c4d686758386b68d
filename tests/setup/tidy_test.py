"""clang-tidy has nothing to say about the program's sources (the tests' are not asked).

Arguments: a folder for the compile commands and for the record of what passed; the C++ compiler of the build. Exit
status 77: skipped, since clang-tidy-14 is missing.

Most of its time goes into headers, which it reads, and walks, for every unit again. So sources are asked in a few
large units instead of those of the build: of all targets, with all their options. Sources whose private names clash
do not share a unit. Where that was not seen and a unit does not compile, its halves are asked, and theirs, until
what is left is an error of one source. A unit that passed is asked again when a source or header of it, or
the settings, changed."""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from sources import ROOT, clash, closure, digest, private_names, text_of, public_names

UNITS = 6
# Commands are GCC's, with options that clang may not know. With modules, which C++20 has and nobody uses here, it
# would read every header twice.
TIDY = ["clang-tidy-14", "--quiet", *("--extra-arg=" + option for option in (
    "-Wno-unknown-warning-option", "-Wno-unused-command-line-argument", "-Xclang", "-fno-cxx-modules"))]


def configured(folder, compiler):
    """The compile commands of the program, which need no build but for what it generates."""
    for command in (["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}",
                     "-DBUILD_TESTING=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON"],
                    ["cmake", "--build", folder, "--target", "rekernel_harness_digest"]):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            sys.exit(made.stdout + made.stderr)
    return json.loads((folder / "compile_commands.json").read_text())


def options_of(command):
    """A compile command's options: lists of one word, or of two that belong together."""
    words = shlex.split(command)[1:]
    options = []
    while words:
        count = 2 if words[0] in ("-isystem", "-o", "-c") else 1
        option, words = words[:count], words[count:]
        if option[0] not in ("-o", "-c"):
            options.append(option)
    return options


def members(file):
    """The sources of a unit of the build, or the source itself; paths below the root."""
    listed = re.findall(r'^#include "(/[^"]*)"', Path(file).read_text(), re.MULTILINE) if "/Unity/" in file else [file]
    return [os.path.relpath(source, ROOT) for source in listed]


def in_order(lists):
    """The entries of all lists, each once."""
    return list(dict.fromkeys(tuple(entry) if isinstance(entry, list) else entry for entry in sum(lists, [])))


class Unit:
    """Sources that are asked together, with what decides whether another fits."""

    def __init__(self):
        self.sources, self.names, self.headers = [], {}, set()

    def takes(self, source, names, headers):
        """Adds the source unless a name of it, or of a header that it brings, has another meaning here."""
        def hides(private, others):
            return any(clash(private, public_names(header)) for header in others)
        if (clash(self.names, names) or hides(names, self.headers - headers)
                or hides(self.names, headers - self.headers)):
            return False
        self.sources.append(source)
        for name, what in names.items():
            self.names.setdefault(name, set()).update(what)
        self.headers |= headers
        return True


def packed(sources):
    """The sources in units, about equal in number; neighbours, which include the same headers, stay together."""
    units = [Unit() for _ in range(UNITS)]
    for number, source in enumerate(sources):
        names, headers = private_names(source), closure(source) - {source}
        own = number * UNITS // len(sources)
        choices = units[own:UNITS] + units[:own] + units[UNITS:]
        if not any(unit.takes(source, names, headers) for unit in choices):
            units.append(Unit())
            units[-1].takes(source, names, headers)
    return [sorted(unit.sources, key=sources.index) for unit in units if unit.sources]


def complaints(folder, sources, options):
    """What clang-tidy says of the sources, as one unit if that compiles."""
    unit = folder / f"{digest(*sources)[:16]}.cpp"
    unit.write_text("".join(f'#include "{ROOT / source}"\n' for source in sources))
    asked = subprocess.run([*TIDY, unit, "--", *options], cwd=ROOT, capture_output=True, text=True, check=False)
    unit.unlink()
    if asked.returncode == 0:
        return ""
    if len(sources) > 1 and "[clang-diagnostic-error" in asked.stdout:
        middle = len(sources) // 2
        return complaints(folder, sources[:middle], options) + complaints(folder, sources[middle:], options)
    return asked.stdout or asked.stderr


def check(folder, sources, options):
    """The same, unless it is known that they have none."""
    files = sorted(set().union(*(closure(source) for source in sources)))
    settings = (ROOT / ".clang-tidy").read_text() + "\n".join(options)
    key = digest(settings, *sources, *(text_of(file) for file in files))
    record = folder / "passed" / key
    if record.exists():
        record.touch()
        return ""
    found = complaints(folder, sources, options)
    if not found:
        record.touch()
    return found


def check_itself(folder, options):
    """Sources that clash get units of their own; of a unit that does not compile, what a source does wrong is found."""
    scratch = folder / "harness" / "itself"  # .clang-tidy names the folders whose sources it looks at
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    sources = []
    for name, private, public in (("right", "int same() { return 1; }", "return same();"),
                                  ("clashes", "int same() { return 2; }", "return same();"),
                                  ("wrong", "double half(int value) { return value / 2; }", "return long(half(3));")):
        file = scratch / f"{name}.cpp"
        file.write_text(f"namespace {{\n\n{private}\n\n}}  // namespace\nlong {name}() {{ {public} }}\n")
        sources.append(os.path.relpath(file, ROOT))
    unit = Unit()
    taken = [unit.takes(source, private_names(source), frozenset()) for source in sources]
    assert taken == [True, False, True], taken
    found = complaints(folder, sources, options)
    assert "bugprone-integer-division" in found and "redefinition" not in found, found
    shutil.rmtree(scratch)


def main(folder, compiler):
    if not shutil.which("clang-tidy-14"):
        print("skipped: clang-tidy-14 is not installed")
        return 77
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "passed").mkdir(exist_ok=True)
    commands = [command for command in configured(folder, compiler)
                if not re.search(r"pch\.|/precompiled\.cpp$", command["file"])]
    # The recorder is loaded into programs of others, and is compiled as no other source.
    alone = [command for command in commands if "_EXPORTS" in command["command"]]
    together = [command for command in commands if command not in alone]

    def merged(some):
        return [word for option in in_order([options_of(command["command"]) for command in some]) for word in option]
    options = merged(together)
    work = [(members(command["file"]), merged([command])) for command in alone]
    sources = in_order([members(command["file"]) for command in together])
    work += [(unit, options) for unit in packed(sources)]
    assert len(sources) > 200 and len(work) < 20, (len(sources), len(work))
    check_itself(folder, options)
    print(f"{len(sources) + len(alone)} sources in {len(work)} units")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda one: check(folder, *one), work))
    print("\n".join(filter(None, found)))
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
