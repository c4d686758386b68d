"""Makes a wheel for Linux that brings the program: the Python package with rekernel, the recorder and the problems.

platform_wheel.py WHEEL PROGRAM RECORDER PROJECT FOLDER: reads the package's wheel for every platform and writes one for
this system's C library, or a newer one, into FOLDER; prints its path. PROJECT is the folder that holds ops/problems.
Installed, the command `rekernel` starts the program, and rekernel.evaluate() a service of it."""
import base64
import hashlib
import os
import platform
import stat
import sys
import zipfile
from pathlib import Path

COMMAND = "rekernel = rekernel._local:run_program\n"


def platform_tag():
    """"manylinux_2_36_x86_64": what the program was linked with is what it needs."""
    library, version = platform.libc_ver()
    if library != "glibc":
        raise SystemExit(f"platform_wheel: expected glibc, found {library or 'another C library'}")
    return f"manylinux_{version.replace('.', '_')}_{platform.machine()}"


def project_files(project):
    """What makes a folder a project for the program: its problems, and places for kernels and results."""
    files = {f"rekernel/project/{path.relative_to(project)}": path.read_bytes()
             for path in sorted((project / "ops" / "problems").rglob("*.json"))}
    if not files:
        raise SystemExit(f"platform_wheel: expected problems in {project / 'ops' / 'problems'}")
    for name in ("generated/PLAN.md", "results/README.md"):
        files[f"rekernel/project/{name}"] = (project / name).read_bytes()
    return files


def with_command(entry_points):
    """The entry points with the command `rekernel`, which only a wheel with the program can have."""
    section = "[console_scripts]\n"
    if section not in entry_points:
        entry_points = (entry_points.rstrip("\n") + "\n\n" if entry_points else "") + section
    return entry_points.replace(section, section + COMMAND, 1)


def record_line(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(path, files, information):
    """The files as an archive, with RECORD last; what lies in bin/ can be executed."""
    record = f"{information}/RECORD"
    lines = "".join(record_line(name, content) for name, content in files.items()) + f"{record},,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, record: lines.encode()}.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same bytes whenever it is made
            entry.compress_type = zipfile.ZIP_DEFLATED
            mode = 0o755 if name.startswith("rekernel/bin/") else 0o644
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, content)


def main(wheel, program, recorder, project, folder):
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    information = next(name for name in files if name.endswith(".dist-info/WHEEL")).rpartition("/")[0]
    del files[f"{information}/RECORD"]
    files["rekernel/bin/rekernel"] = program.read_bytes()
    files[f"rekernel/bin/{recorder.name}"] = recorder.read_bytes()
    files.update(project_files(project))
    tag = f"py3-none-{platform_tag()}"
    about = files[f"{information}/WHEEL"].decode()
    files[f"{information}/WHEEL"] = about.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false").replace(
        "Tag: py3-none-any", f"Tag: {tag}").encode()
    if tag.encode() not in files[f"{information}/WHEEL"]:
        raise SystemExit(f"platform_wheel: {wheel}: expected the tag py3-none-any, got\n{about}")
    points = f"{information}/entry_points.txt"
    files[points] = with_command(files.get(points, b"").decode()).encode()
    made = folder / f"{information.removesuffix('.dist-info')}-{tag}.whl"
    write_wheel(made, files, information)
    print(os.fspath(made))


if __name__ == "__main__":
    if len(sys.argv) != 6:
        raise SystemExit("usage: platform_wheel.py WHEEL PROGRAM RECORDER PROJECT FOLDER")
    main(*map(Path, sys.argv[1:]))
