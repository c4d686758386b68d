"""Pages and messages do not use the words that HACKING.md rejects: those in code quotes in the last column of its
table of terms.

Looks at all pages (but not at what is generated into them), and at the sources and their comments where words may
change. Prints each place. Exit status 77: skipped, since this is no clone."""
import re
import sys

from pages import ROOT, line_of, tracked, without_generated_parts

PAGE = "HACKING.md"
# In the rooms of the judge, a message is part of what a verdict depends on, and changes with the judge alone.
SOURCES = ["run", "test", "harness/capture", "harness/jobs", "harness/records", "harness/audit", "harness/measuring",
           "harness/project", "harness/pull_request", "harness/report", "harness/report_html", "harness/setup",
           "harness/cli", "harness/terminal", "harness/export", "harness/explain", "harness/plan", "harness/dataset",
           "harness/service", "harness/python", "replay", ".github"]
READ = (".md", ".cpp", ".h", ".py", ".sh", ".html", ".js", ".yml", "run", "test")
# Made from recorded words.
RECORDED = re.compile(r"^results/.*\.measured\.md$")


def terms_of(page):
    """The section of the page that holds the table."""
    return page[page.index("\n## Terms\n"):]


def rejected_words(page):
    """The words in code quotes in the last column of the table of terms."""
    words = []
    for line in terms_of(page).splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5:
            words += re.findall(r"`([^`]+)`", cells[3])
    return words


def pattern_of(words):
    """Matches any of them, whatever its case, over a line's end too."""
    return re.compile(r"\b(" + "|".join(r"\s+".join(map(re.escape, word.split())) for word in words) + r")\b",
                      re.IGNORECASE)


def check_itself():
    """The rules on a made-up page."""
    page = "# A\n## Terms\n\n| term | meaning | not |\n|---|---|---|\n| fix | repair | `mend`, patch |\n| a | b | |\n"
    assert rejected_words(page) == ["mend"], rejected_words(page)
    assert pattern_of(["of no use"]).search("it is Of no\nuse") and not pattern_of(["mend"]).search("amend")
    assert without_generated_parts("a\n<!-- x:start -->\nmend\n<!-- x:end -->\nb").split() == ["a", "b"]


def main():
    check_itself()
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    words = rejected_words(page)
    pattern = pattern_of(words)
    files = [file for file in tracked("*.md", *SOURCES) if file.endswith(READ) and not RECORDED.match(file)]
    complaints = 0
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8")
        if file.endswith(".md"):
            text = without_generated_parts(text)
        if file == PAGE:
            text = text[:text.index("\n## Terms\n")]
        for found in pattern.finditer(text):
            complaints += 1
            print(f"{file}:{line_of(text, found.start())}: '{found[1]}': {PAGE}'s terms have another word for it")
    print(f"{len(words)} words, {len(files)} files, {complaints} complaints")
    return 1 if complaints or len(words) < 5 or len(files) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
