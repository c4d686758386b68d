"""Every header of the program compiles by itself: it includes what it needs of ours.

Arguments: a folder for what is made and for the record of what passed; the C++ compiler; the rest: options for include
folders. The standard library and Boost.JSON are there already, since the build precompiles them for everybody; a
header that includes no other Boost than names is asked without Boost, which takes half of the time.

A header is asked again when it or what it includes changed. One that another header includes while nothing
of ours stands before it but what it includes itself is seen by the compiler as if it were alone, so that
the other's test is its own."""
import concurrent.futures
import os
import re
import subprocess
import sys
from pathlib import Path

from sources import ROOT, closure, digest, headers, includes, other_includes, text_of


def precompiled():
    """The headers that the build precompiles."""
    listed = (ROOT / "harness/cmake/precompiled.cmake").read_text()
    found = re.findall(r"<([^>]+)>", listed[listed.index("target_precompile_headers(rekernel_precompiled"):])
    assert len(found) > 5, f"expected headers in harness/cmake/precompiled.cmake, found {found}"
    return found


def proved_by(header):
    """Headers that a compiler sees as if they were alone while it compiles this one alone."""
    seen, proved = set(), set()

    def enter(file, open_files):
        if file in seen:
            return
        if seen - open_files <= closure(file):
            proved.add(file)
        seen.add(file)
        for name in includes(file):
            enter(name, open_files | {file})
    enter(header, frozenset())
    return proved


def chosen():
    """Headers to ask, which prove all others."""
    proved = {header: proved_by(header) for header in headers()}
    left, asked = set(proved), []
    while left:
        best = max(sorted(left), key=lambda header: (len(proved[header] & left), len(closure(header))))
        asked.append(best)
        left -= proved[best]
    return asked


class Compiler:
    def __init__(self, folder, command, options):
        self.folder, self.command = folder, [command, "-std=c++20", "-I.", *options]
        self.version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout

    def run(self, *arguments):
        return subprocess.run([*self.command, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    def precompile(self, name, listed):
        """Precompiles these headers, unless they are. The header's path, which stands for the precompiled one too."""
        header = self.folder / f"{name}.h"
        content = "".join(f"// {line}\n" for line in [*self.version.splitlines(), " ".join(self.command)])
        content += "".join(f"#include <{entry}>\n" for entry in listed)
        made = Path(f"{header}.gch")
        if not made.exists() or not header.exists() or header.read_text() != content:
            made.unlink(missing_ok=True)
            header.write_text(content)
            run = self.run("-x", "c++-header", header, "-o", made)
            if run.returncode != 0:
                sys.exit(run.stderr)
        return header

    def complaint(self, header, before):
        """What the compiler says of a header alone; nothing if it compiles, or did in its present state."""
        key = digest(before.read_text(), header, *(text_of(file) for file in sorted(closure(header))))
        record = self.folder / "passed" / key
        if record.exists():
            return ""
        unit = self.folder / f"{key[:16]}.cpp"
        unit.write_text(f'#include "{header}"\n')
        run = self.run("-fsyntax-only", "-Winvalid-pch", "-include", before, unit)
        unit.unlink()
        if run.returncode != 0:
            return f"{run.stderr}{header} does not compile by itself"
        record.touch()
        return ""


def main(folder, command, options):
    (folder / "passed").mkdir(parents=True, exist_ok=True)
    compiler = Compiler(folder, command, options)
    listed = precompiled()
    with_boost = compiler.precompile("common", listed)
    without_boost = compiler.precompile("standard", [name for name in listed if not name.startswith("boost/")])

    def before(header):
        others = {name for name in other_includes(header) if name.startswith("boost/")}
        return without_boost if others <= {"boost/json/fwd.hpp"} else with_boost

    wrong = folder / "wrong.h"  # the test sees what it is for
    wrong.write_text("#pragma once\nrekernel::Problem problem();\n")
    assert "does not compile by itself" in compiler.complaint(os.path.relpath(wrong, ROOT), without_boost)

    asked = chosen()
    print(f"{len(headers())} headers, of which {len(asked)} prove the others")
    assert len(headers()) > 100 and len(asked) > 50
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for text in pool.map(lambda header: compiler.complaint(header, before(header)), asked) if text]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]))
