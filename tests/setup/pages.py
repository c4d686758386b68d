"""The repository's pages, as the tests of their links and of their words read them."""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tracked(*patterns):
    """Paths of the files that git tracks here, as it spells them. Ends the test as skipped without a clone."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                             *patterns], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print("skipped: this is no clone: " + listed.stderr.strip())
        sys.exit(77)
    # A file that was deleted and not yet committed is still listed.
    return sorted({path for path in listed.stdout.split("\0") if path and (ROOT / path).exists()})


def blanked(pattern, text):
    """The text with blanks for what matches, so that lines keep their numbers."""
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found[0]), text, flags=re.DOTALL | re.MULTILINE)


def without_fences(text):
    """Markdown without its fenced code."""
    return blanked(r"^ *(```+)[^\n]*\n.*?^ *\1 *$", text)


def without_generated_parts(text):
    """Markdown without what `rekernel report --readme` writes into it."""
    return blanked(r"<!-- ([a-z0-9_-]+):start -->.*?<!-- \1:end -->", text)


def line_of(text, offset):
    """The number of the line that holds the character at the offset."""
    return text.count("\n", 0, offset) + 1
