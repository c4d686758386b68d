"""What tests in Python share that start the program as a user does."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = 77  # what ctest takes for "skipped"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def rekernel(program, *arguments, cwd=ROOT, **more):
    return subprocess.run([program, *map(str, arguments)], cwd=cwd, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, check=False, timeout=300, **more)


def ended_searches():
    """Files of the recorded searches, without a user's own that are on the way."""
    return [path for path in sorted(ROOT.glob("trajectories/*.jsonl"))
            if path.read_bytes().splitlines()[-1].startswith(b'{"event":"stop"')]


def take_option(name):
    """The folder that follows an option of the command line, which loses both; None without it."""
    if name not in sys.argv:
        return None
    place = sys.argv.index(name)
    folder = Path(sys.argv[place + 1])
    del sys.argv[place:place + 2]
    return folder
