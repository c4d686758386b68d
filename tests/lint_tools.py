"""The pinned wheels that tests check workflows and exported Python with, fetched when a test needs them."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".deps" / "lint"


def fetch():
    """Nothing once they are there and can be imported; else why they are not."""
    made = subprocess.run(["bash", "-c", f'set -euo pipefail; source "{ROOT}/harness/setup/setup.sh"; '
                           "alone provide_list wheels-lint.txt lint"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return made.stderr.strip()
    for program in FOLDER.glob("*.data/scripts/*"):  # wheels keep no permissions
        program.chmod(0o755)
    sys.path.insert(0, str(FOLDER))
    return None


def tool(name):
    return str(next(FOLDER.glob(f"{name}*.data/scripts/{name}")))
