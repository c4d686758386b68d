"""Every relative link of a page leads to a file of the repository, and every anchor to a heading.

Prints what does not, with file and line. Exit status 77: skipped, since this is no clone."""
import functools
import posixpath
import re
import sys
import urllib.parse

from pages import ROOT, blanked, line_of, tracked, without_fences

LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def plain(heading):
    """A heading's text without its Markdown."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[`*]", "", heading).strip()


def anchors_of(text):
    """The anchors that GitHub gives the headings of a page."""
    anchors = set()
    for found in re.finditer(r"^#{1,6}\s+(.*?)\s*#*\s*$", without_fences(text), re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", plain(found[1]).lower()).replace(" ", "-")
        unique, number = slug, 0
        while unique in anchors:
            number += 1
            unique = f"{slug}-{number}"
        anchors.add(unique)
    return anchors | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


@functools.lru_cache(maxsize=None)
def anchors_in(path):
    """The same of a file."""
    return anchors_of((ROOT / path).read_text(encoding="utf-8"))


def complaint(page, target, files):
    """What is wrong with a link of a page, or nothing."""
    if ELSEWHERE.match(target):
        return None
    path, _, anchor = urllib.parse.unquote(target).partition("#")
    there = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    if there.startswith("..") or path.startswith("/"):
        return "leads out of the repository"
    is_folder = any(file.startswith(there + "/") for file in files)
    if there not in files and not is_folder:
        return "no such file in the repository"
    if anchor and (not there.endswith(".md") or anchor not in anchors_in(there)):
        return f"{there} has no heading with this anchor"
    return None


def check_itself():
    """The rules on made-up pages."""
    anchors = anchors_of("# What a verdict means\n```\n# code\n```\n## `new`: a *word*\n## What a verdict means\n")
    assert anchors == {"what-a-verdict-means", "new-a-word", "what-a-verdict-means-1"}, anchors
    files = {"README.md", "harness/README.md"}
    assert complaint("harness/README.md", "../README.md", files) is None
    assert complaint("README.md", "harness", files) is None
    assert complaint("README.md", "https://example.com/#there", files) is None
    assert complaint("README.md", "harness/TIMING.md", files) == "no such file in the repository"
    assert complaint("README.md", "../elsewhere.md", files) == "leads out of the repository"
    assert "no heading" in complaint("README.md", "#no-such-heading", files)


def main():
    check_itself()
    files = set(tracked())
    complaints = links = 0
    for page in sorted(file for file in files if file.endswith(".md")):
        text = blanked(r"`[^`\n]*`", without_fences((ROOT / page).read_text(encoding="utf-8")))
        for found in LINK.finditer(text):
            links += 1
            wrong = complaint(page, found[1], files)
            if wrong:
                complaints += 1
                print(f"{page}:{line_of(text, found.start())}: {found[1]}: {wrong}")
    print(f"{links} links, {complaints} complaints")
    return 1 if complaints or links < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
