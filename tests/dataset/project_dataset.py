#!/usr/bin/env python3
"""Makes the data set of the project as it is, once for all tests that look at it. $1: the program; $2: the folder.
It has to take at most 20 s of processor time and 1 GiB."""

import resource
import shutil
import sys
from pathlib import Path

import datasets_made

MOST_SECONDS, MOST_BYTES = 20, 1 << 30

program, folder = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.parent.mkdir(parents=True, exist_ok=True)
made = datasets_made.make(program, folder)
if made.returncode != 0:
    sys.exit(made.stderr)
print(made.stdout)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.1f} s of processor time, {used.ru_maxrss >> 10} MiB at most in one process")
# Two cores, and twice the memory: the program and the writer run side by side.
if used.ru_utime + used.ru_stime > 2 * MOST_SECONDS or 2 * (used.ru_maxrss << 10) > MOST_BYTES:
    sys.exit("the data set took too much")
