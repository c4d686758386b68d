#!/usr/bin/env python3
"""Makes the report of the project as it is, once for all tests that look at it, and keeps its data beside it.
$1: the program; $2: the folder for both."""

import shutil
import sys
from pathlib import Path

import reports

program, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
reports.data_of(str(program), reports.ROOT, folder)
