#!/usr/bin/env python3
"""Whatever the program prints as CSV is a table that other programs read: names that are unique and have
units, a cell for each, one number a cell. $1: the program."""

import csv
import functools
import io
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from whole_program import ROOT, ended_searches  # noqa: E402

PROGRAM = sys.argv.pop(1)
COMMANDS = ["report", "report --problem softmax", "report --on h200 --badge strict", "list",
            "list --badge strict", "results best", "results best softmax --on h200", "results compare h200 h100_80gb_hbm3",
            "doctor", "check generated/softmax/cluster_with_prefetch",
            *(f"replay {path.stem}" for path in ended_searches())]
# Columns that hold numbers by their names: every cell of them is one, or empty.
NUMERIC = re.compile(r"(^|_)(ms|percent|mhz|s|bytes|mb|gb|rank|error|rms|share|registers|round|candidates|passed|kernels)"
                     r"(_|$)|^(strict|robust|deterministic|any_size|gigaoperations)$")
TEXT = {"measured", "reference", "strongest_library", "message"}


@functools.cache
def printed(command):
    """What the command prints as CSV, with the status that says whether it found fault."""
    made = subprocess.run([PROGRAM, *command.split(), "--csv"], cwd=ROOT, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=300)
    return made.returncode, made.stdout, made.stderr


def is_number(cell):
    return re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", cell) is not None


class Csv(unittest.TestCase):
    def test_every_table(self):
        for command in COMMANDS:
            with self.subTest(command):
                status, text, error = printed(command)
                if "libnvrtc" in error:
                    continue  # nothing compiles here
                self.assertIn(status, (0, 1), error)
                names, *rows = csv.reader(io.StringIO(text), strict=True)
                self.assertEqual(len(names), len(set(names)), names)
                self.assertGreater(len(rows), 0)
                numbers = [name for name in names if NUMERIC.search(name) and name not in TEXT]
                for row in rows:
                    self.assertEqual(len(row), len(names), row)
                    for name, cell in zip(names, row, strict=True):
                        if name in numbers:
                            self.assertTrue(cell == "" or is_number(cell), f"{name}: {cell}")
                        # What people read in a cell of several figures.
                        self.assertNotRegex(cell, r"\d ± \d|^[\d.]+%|^–$", name)

    def test_a_column_with_numbers_has_nothing_else(self):
        for command in COMMANDS:
            names, *rows = csv.reader(io.StringIO(printed(command)[1]))
            for i, name in enumerate(names):
                cells = [row[i] for row in rows if row[i]]
                with self.subTest(command=command, column=name):
                    if name not in ("what", "idea", "kernel", "detail", "device") and any(map(is_number, cells)):
                        self.assertTrue(all(map(is_number, cells)), cells)

    def test_the_figures_are_the_records(self):
        names, *rows = csv.reader(io.StringIO(printed("report --kernel softmax/cluster_with_prefetch --on h200")[1]))
        self.assertEqual(len(rows), 1)
        row = dict(zip(names, rows[0], strict=True))
        low, time, high = (float(row[name]) for name in ("time_low_ms", "time_ms", "time_high_ms"))
        self.assertTrue(0 < low <= time <= high, row)
        share = 100 * float(row["reference_ms"]) / time
        self.assertAlmostEqual(share, float(row["percent_of_reference"]), delta=0.06)
        low, high = float(row["percent_of_reference_low"]), float(row["percent_of_reference_high"])
        self.assertTrue(low <= share <= high, row)
        self.assertEqual((row["status"], row["device"]), ("passed", "NVIDIA H200"))


unittest.main()
