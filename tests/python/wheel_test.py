"""The wheel that brings the program: its layout, and what it does once pip has installed it. The program is a script that
stands in for the static one, which is built for releases alone."""

import base64
import csv
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "harness" / "python"
PROGRAM = """#!/bin/sh
[ "$1" = serve ] || { echo "rekernel $*"; exit 3; }
pwd >"$STARTED_IN"
echo "listening on http://127.0.0.1:1"
exec sleep 60
"""
# What setuptools writes into the wheel for every platform.
ABOUT = "Wheel-Version: 1.0\nGenerator: setuptools (68.0.0)\nRoot-Is-Purelib: true\nTag: py3-none-any\n\n"
METADATA = "Metadata-Version: 2.1\nName: rekernel\nVersion: 0.1.0\n"
ENTRY_POINTS = "[console_scripts]\nrekernel-mcp = rekernel.adapters.mcp:main\n"


def made(folder):
    """A wheel for every platform, and the one that platform_wheel.py makes of it."""
    wheel = folder / "rekernel-0.1.0-py3-none-any.whl"
    information = {"WHEEL": ABOUT, "METADATA": METADATA, "entry_points.txt": ENTRY_POINTS, "RECORD": ""}
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted((PACKAGE / "rekernel").rglob("*.py")):
            archive.write(path, path.relative_to(PACKAGE))
        for name, text in information.items():
            archive.writestr(f"rekernel-0.1.0.dist-info/{name}", text)
    (folder / "program").write_text(PROGRAM)
    (folder / "librekernel_recorder.so").write_text("the recorder")
    return subprocess.run(
        [sys.executable, ROOT / "harness/setup/platform_wheel.py", wheel, folder / "program",
         folder / "librekernel_recorder.so", ROOT, folder], capture_output=True, text=True, check=False)


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = Path(cls.temporary.name).resolve()
        run = made(cls.folder)
        assert run.returncode == 0, run.stderr
        cls.wheel = Path(run.stdout.strip())

    def test_it_is_for_this_c_library_or_newer(self):
        self.assertRegex(self.wheel.name, r"^rekernel-0\.1\.0-py3-none-manylinux_2_\d+_\w+\.whl$")
        about = self.files()["rekernel-0.1.0.dist-info/WHEEL"].decode()
        self.assertIn("Tag: " + self.wheel.stem.partition("rekernel-0.1.0-")[2] + "\n", about)
        self.assertIn("Root-Is-Purelib: false\n", about)

    def files(self):
        with zipfile.ZipFile(self.wheel) as archive:
            self.assertIsNone(archive.testzip())
            return {name: archive.read(name) for name in archive.namelist()}

    def test_it_holds_package_programs_and_problems(self):
        files = self.files()
        self.assertEqual(files["rekernel/bin/rekernel"].decode(), PROGRAM)
        self.assertEqual(files["rekernel/bin/librekernel_recorder.so"], b"the recorder")
        problems = {str(path.relative_to(ROOT)) for path in (ROOT / "ops/problems").rglob("*.json")}
        self.assertGreater(len(problems), 100)
        for problem in problems:
            self.assertEqual(files[f"rekernel/project/{problem}"], (ROOT / problem).read_bytes())
        for path in (PACKAGE / "rekernel").rglob("*.py"):
            self.assertEqual(files[str(path.relative_to(PACKAGE))], path.read_bytes())

    def test_its_record_names_every_file_with_its_digest(self):
        files = self.files()
        record = "rekernel-0.1.0.dist-info/RECORD"
        rows = list(csv.reader(io.StringIO(files[record].decode())))
        self.assertEqual({name for name, _, _ in rows}, set(files))
        for name, digest, size in rows:
            if name != record:
                exact = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, size), (f"sha256={exact}", str(len(files[name]))), name)

    def test_it_is_the_same_whenever_it_is_made(self):
        before = self.wheel.read_bytes()
        self.assertEqual(made(self.folder).returncode, 0)
        self.assertEqual(self.wheel.read_bytes(), before)

    def test_installed_it_is_a_judge(self):
        target = self.folder / "installed"
        pip = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir",
                              "--target", target, self.wheel], capture_output=True, text=True, check=False)
        if "No module named pip" in pip.stderr:
            self.skipTest("this Python has no pip")
        self.assertEqual(pip.returncode, 0, pip.stderr)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("REKERNEL_")}
        environment.update(PYTHONPATH=str(target), STARTED_IN=str(self.folder / "started_in"), PYTHONDONTWRITEBYTECODE="1")
        run = subprocess.run([target / "bin" / "rekernel", "list", "a b"], cwd=elsewhere, env=environment,
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (3, "rekernel list a b\n"), run.stderr)

        script = "import rekernel._local as local; one = local.start_service(); print(one.address); one.stop()"
        for folder, project in ((elsewhere, target / "rekernel" / "project"), (ROOT / "harness", ROOT / "harness")):
            run = subprocess.run([sys.executable, "-c", script], cwd=folder,
                                 env=environment, capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(run.stdout, "http://127.0.0.1:1\n", run.stderr)
            self.assertEqual((self.folder / "started_in").read_text().strip(), str(project))

    def test_what_it_cannot_be_made_of(self):
        (self.folder / "empty").mkdir(exist_ok=True)
        run = subprocess.run([sys.executable, ROOT / "harness/setup/platform_wheel.py", self.wheel, self.folder / "program",
                              self.folder / "librekernel_recorder.so", self.folder / "empty", self.folder],
                             capture_output=True, text=True, check=False)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("expected problems in", run.stderr)


if __name__ == "__main__":
    unittest.main()
