#!/usr/bin/env python3
"""The report in a real browser. $1: the program; $2, if there: a folder for screenshots, to be looked at;
--made FOLDER: where project_report.py made the project's."""

import collections
import html
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import browser
import reports
from hostile import HOSTILE, hostile

MADE = reports.take_option("--made")
PROGRAM = str(Path(sys.argv.pop(1)).resolve())
SCREENSHOTS = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and "/" in sys.argv[1] else None
READY = "document.documentElement?.dataset.ready !== undefined"
PHONE = 390


def axe():
    """The accessibility checker, from its wheel."""
    fetched = subprocess.run(
        ["bash", "-c", 'source "$0" && alone provide_list wheels-report-test.txt report-test && '
         'printf "%s" "$deps"', reports.ROOT / "harness/setup/setup.sh"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if fetched.returncode != 0:
        reports.skip(fetched.stderr.strip())
    folder = Path(fetched.stdout.splitlines()[-1]) / "report-test"
    return (folder / "axe_playwright_python" / "axe.min.js").read_text()


def is_part(part):
    return lambda row: row.get("part") == part


def is_kind(kind):
    return lambda row: row.get("kind") == kind


def edges(part):
    """Lines are one mark each, however many points they have."""
    def count(rows):
        return len({row["edge"] for row in rows if row.get("part") == "edge" and
                    bool(row.get("line_of_best")) == part})
    return count


# How many marks each layer of a chart must have, by the rows of its data.
MARKS = {
    "bars": {"kernels": is_kind("kernel"), "published": is_kind("published"),
             "strongest": lambda row: "strongest" in row,
             "values": lambda row: row["kind"] in ("kernel", "published"),
             "intervals": lambda row: "low" in row},
    "run": {"rounds": is_part("round"), "references": is_part("reference"),
            "reference_names": is_part("reference")},
    "times": {"passed": lambda row: row["part"] == "candidate" and "ms" in row,
              "failed": lambda row: row["part"] == "candidate" and "ms" not in row,
              "measured_again": is_part("again"), "references": is_part("reference")},
    "tree": {"candidates": is_part("candidate"), "survivors": lambda row: row.get("survived"),
             "best": lambda row: row.get("best"), "edges": edges(False),
             "line_of_the_best": edges(True)},
    "tokens": {"tokens": lambda row: True},
    "at_k": {"points": lambda row: True, "values": lambda row: True},
    "fast_p": {"steps": lambda row: row["step"]},
    "distribution": {"searches": is_kind("search"), "published": is_kind("published")},
    "so_far": {"points": lambda row: True},
    "plan": {"lanes": is_part("lane"), "steps": is_part("step"), "uses": is_part("use")},
    "samples": {"samples": is_part("sample"), "quartiles": is_part("quartiles")},
    "errors": {"errors": lambda row: True},
    "roofline": {"this": lambda row: row["part"] == "kernel" and row["this"],
                 "others": lambda row: row["part"] == "kernel" and not row["this"]},
    "matrix": {"cells": lambda row: True, "counts": lambda row: True},
    "bounds": {"errors": lambda row: True},
    "noise": {"intervals": lambda row: True, "values": lambda row: True},
}

# For each chart: its kind, its rows, its signals, and its marks by layer, one element each.
DRAWN = """
Promise.all([...document.querySelectorAll("figure.chart")].map(async (figure) => {
  const marks = {};
  for (const group of figure.querySelectorAll("svg g.role-mark")) {
    const name = [...group.classList].find((one) => one.endsWith("_marks"));
    if (name) marks[name.replace("_marks", "")] = (marks[name.replace("_marks", "")] ?? 0) +
      [...group.children].filter((one) => one.tagName !== "g").length;
  }
  const piece = figure.querySelector(".view").dataset.piece;
  const { rows, signals } = (await content()).pieces[Number(piece)];
  return { kind: figure.dataset.kind, rows, signals, marks, svg: !!figure.querySelector("svg") };
}))
"""

# The checker takes long over tables of thousands of cells and galleries of hundreds of entries. Of what stands
# side by side and is made alike (elements, classes and roles, whatever their words), five stay.
FEW_OF_EVERY_MAKE = """
for (const parent of document.querySelectorAll("main, main *")) {
  const seen = {};
  for (const one of [...parent.children]) {
    const make = [one, ...one.querySelectorAll("*")].map((part) =>
      `${part.tagName} ${part.getAttribute("class")} ${part.getAttribute("role")}`).join();
    seen[make] = (seen[make] ?? 0) + 1;
    if (seen[make] > 5) one.remove();
  }
}
"""


class InABrowser(unittest.TestCase):
    """One browser, and reports of the project as it is and of hostile data."""

    @classmethod
    def setUpClass(cls):
        program = browser.find_browser()
        if not program:
            reports.skip("no Chromium")
        cls.axe = axe()
        cls.scratch = tempfile.TemporaryDirectory()
        scratch = Path(cls.scratch.name)
        cls.data, cls.folder = reports.of_the_project(PROGRAM, scratch, MADE)
        kernels = cls.data["kernels"][:2]
        theirs = {kernel["problem"] for kernel in kernels}
        problems = sorted(cls.data["problems"], key=lambda problem: problem["id"] not in theirs)[:12]
        small = {**cls.data, "kernels": kernels, "problems": problems,
                 "searches": cls.data["searches"][:1],
                 "gallery": {key: value[:3] for key, value in cls.data["gallery"].items()}}
        cls.hostile = scratch / "hostile"
        made = reports.generate(hostile(json.loads(json.dumps(small))), cls.hostile)
        assert made.returncode == 0, made.stderr
        cls.browser = browser.Browser(program)

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.scratch.cleanup()

    def setUp(self):
        self.browser.resize(1280)
        self.browser.prefer("light")

    def open(self, page, place=""):
        self.browser.open(f"{page.as_uri()}{place}")
        self.browser.wait_until(READY)

    def everything(self, page):
        """Unfolds all there is on a page, as far as it is not a gallery of hundreds."""
        limit = 12 if page.name == "judge.html" else 1000
        self.browser.run(f"""(async () => {{
          for (const one of [...document.querySelectorAll("details")].slice(0, {limit})) one.open = true;
          await new Promise((done) => setTimeout(done, 50));
        }})()""")
        self.browser.wait_until("[...document.querySelectorAll('details[open] .packed[data-shown]')]"
                                ".every((one) => one.childElementCount > 0)")

    def pages(self):
        """Of kernels' pages those of plans that differ, of problems' pages one of each group; all others."""
        stand_for = {}
        for kernel in self.data["kernels"]:
            plan = kernel["plan"]
            of_a_search = bool(kernel["origin"]["trajectory"])
            stand_for.setdefault((len(plan["launches"]), "memset" in str(plan), of_a_search),
                                 f"kernels/{kernel['problem']}/{kernel['name']}.html")
        for problem in self.data["problems"]:
            stand_for.setdefault(problem["group"], f"problems/{problem['id']}.html")
        return [page for page in reports.pages_of(self.folder)
                if not {"kernels", "problems"} & {page.parent.name, page.parent.parent.name} or
                str(page.relative_to(self.folder)) in stand_for.values()]

    def test_every_page_opens_without_an_error_and_its_charts_have_as_many_marks_as_the_data(self):
        seen = collections.Counter()
        for page in self.pages():
            self.open(page)
            self.assertEqual(self.browser.complaints(), [], page)
            for address in self.browser.requests():
                self.assertRegex(address, rf"^(data:|{re.escape(self.folder.as_uri())}/)")
            for chart in self.browser.run(DRAWN):
                kind, rows = chart["kind"], chart["rows"]
                self.assertTrue(chart["svg"], f"{page}: {kind}")
                divisor = chart["signals"].get("divisor")
                shown = [row for row in rows if not divisor or row.get("divisor") in (None, divisor)]
                for layer, wanted in MARKS[kind].items():
                    count = (wanted(shown) if wanted.__name__ == "count"
                             else sum(bool(wanted(row)) for row in shown))
                    seen[kind, layer] += count
                    self.assertEqual(chart["marks"].get(layer, 0), count,
                                     f"{page.name}: {layer} of {kind}")
        # Every kind of chart was there, and with marks; samples are recorded by newer runs only.
        for kind, layers in MARKS.items():
            if kind == "so_far" and not any(study["searches"] for study in self.data.get("studies", [])):
                continue  # no study has ended
            self.assertTrue(any(seen[kind, layer] for layer in layers), kind)

    def test_a_click_on_a_round_opens_its_code_and_its_change(self):
        search = next(one for one in self.data["searches"] if one.get("published"))
        best = next(one["best"] for one in search["rounds"] if one["round"] == 5)
        candidate = next(one for one in search["candidates"] if one["id"] == best)
        self.open(self.folder / "index.html")
        place = self.browser.run("""(() => {
          const figure = document.querySelector('figure[data-kind="run"]');
          figure.scrollIntoView({ block: "center" });
          const marks = [...figure.querySelectorAll(".rounds_marks > path")];
          const mark = marks.find((one) => one.getAttribute("aria-label").startsWith("%s:"));
          const box = mark.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        })()""" % best)
        self.browser.hover(*place)
        tip = self.browser.run("document.getElementById('tip').innerText")
        self.assertIn(candidate["idea"], tip)
        self.browser.click(*place)
        self.browser.wait_until(f"location.hash === '#{best}' && {READY}")
        opened = f"document.getElementById('{best}')"
        self.browser.wait_until(f"{opened}.open && {opened}.querySelector('.packed code') !== null")
        self.assertTrue(self.browser.run(
            f"{opened}.getBoundingClientRect().top < innerHeight && {opened}.getBoundingClientRect().top >= 0"))
        change = self.browser.run(f"{opened}.querySelector('.packed code').textContent")
        expected = [line for line in candidate["change"]["source"].splitlines()
                    if not line.startswith(("---", "+++", "@@"))]
        self.assertEqual([line for line in change.splitlines() if not line.startswith("@@")], expected)
        self.browser.run(f"[...{opened}.querySelectorAll('details')].forEach((one) => one.open = true)")
        self.browser.wait_until(f"[...{opened}.querySelectorAll('.packed')].every((one) => one.querySelector('code'))")
        blocks = self.browser.run(
            f"[...{opened}.querySelectorAll('.packed code')].map((one) => one.textContent)")
        self.assertIn(candidate["source"].rstrip("\n"), [block.rstrip("\n") for block in blocks])
        self.assertEqual(self.browser.complaints(), [])

    def test_unfolded_nothing_is_wider_than_a_phone_and_all_code_is_what_was_recorded(self):
        self.browser.resize(PHONE, 844, phone=True)
        searches = {Path(search["file"]).stem: search for search in self.data["searches"]}
        for page in [*self.pages(), *reports.pages_of(self.hostile)]:
            self.open(page)
            self.everything(page)
            if page.parent == self.folder / "searches":
                self.compare_code(searches.pop(page.stem))
            self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), PHONE, page)
            wide = self.browser.run(f"""[...document.querySelectorAll("main *")].filter((one) =>
              one.getBoundingClientRect().right > {PHONE} + 1 && !one.closest("pre, .scroll, svg, math")
            ).map((one) => one.outerHTML.slice(0, 120))""")
            self.assertEqual(wide, [], page)
        self.assertEqual(searches, {}, "without a page")

    def compare_code(self, search):
        """Every candidate's, on the search's page."""
        shown = dict(self.browser.run("""[...document.querySelectorAll(".candidate")].map((one) =>
          [one.id, [...one.querySelectorAll(".packed code")].map((code) => code.textContent)])"""))
        for candidate in search["candidates"]:
            if "source" in candidate:
                self.assertIn(candidate["source"].rstrip("\n"),
                              [code.rstrip("\n") for code in shown[candidate["id"]]])

    def test_the_accessibility_checker_finds_nothing_serious(self):
        kinds = ["index.html", "kernels.html", "searches.html", "judge.html"]
        pages = [self.folder / one for one in kinds]
        pages += [next(iter(sorted((self.folder / "searches").iterdir()))),
                  next(iter(sorted(self.folder.glob("kernels/*/*.html"))))]
        # Only contrasts can differ between light and dark.
        for scheme, rules in (("light", ""), ("dark", "runOnly: ['color-contrast'],")):
            self.browser.prefer(scheme)
            for page in pages:
                self.open(page)
                self.browser.run("""[...document.querySelectorAll("details.metric, details.data")]
                  .slice(0, 3).forEach((one) => one.open = true);
                  [...document.querySelectorAll(".candidate, .group, .entry")].slice(0, 3)
                  .forEach((one) => one.open = true)""")
                self.browser.wait_until("[...document.querySelectorAll('.packed[data-shown]')]"
                                        ".every((one) => one.childElementCount > 0)")
                self.browser.run(FEW_OF_EVERY_MAKE)
                self.browser.run(self.axe + "; 0")
                found = self.browser.run(f"""axe.run({{ {rules} resultTypes: ["violations"] }}).then((result) =>
                  result.violations.map((one) => [one.impact, one.id, one.nodes.slice(0, 3).map(
                    (node) => node.html + " " + node.failureSummary)]))""")
                serious = [one for one in found if one[0] in ("serious", "critical")]
                self.assertEqual(serious, [], f"{page.name}, {scheme}")

    def test_the_filter_hides_what_was_not_asked_for(self):
        self.open(self.folder / "kernels.html")
        problem = self.data["devices"][0]["rows"][0]["problem"]
        self.browser.run(f"""(() => {{ const select = document.querySelector('[name="problem"]');
          select.value = "{problem}"; select.dispatchEvent(new Event("input", {{ bubbles: true }}));
          select.dispatchEvent(new Event("change", {{ bubbles: true }})); }})()""")
        shown = self.browser.run("""[...document.querySelectorAll("tbody tr")].filter((row) =>
          row.checkVisibility()).map((row) => row.dataset.problem)""")
        self.assertEqual(set(shown), {problem})
        # The next page begins with what was chosen, and its charts follow.
        self.open(self.folder / "index.html")
        self.assertEqual(self.browser.run("document.querySelector('[name=\"problem\"]').value"), problem)
        marks = self.browser.run("document.querySelectorAll('figure[data-kind=\"bars\"] .kernels_marks')[0].childElementCount")
        rows = [row for row in self.data["devices"][0]["rows"]
                if row["problem"] == problem and row["status"] == "passed"]
        self.assertEqual(marks, min(len(rows), 3))
        self.browser.run("sessionStorage.clear()")
        self.open(self.folder / "judge.html")
        mutant = self.data["gallery"]["mutants"][0]
        self.browser.run(f"""(() => {{ const field = document.querySelector('[name="words"]');
          field.value = {json.dumps(mutant["what"])};
          field.dispatchEvent(new Event("input", {{ bubbles: true }})); }})()""")
        shown = self.browser.run("""[...document.querySelectorAll(".entry")].filter((one) =>
          one.checkVisibility()).map((one) => one.id)""")
        self.assertIn(f"mutant-{mutant['id']}", shown)
        self.assertLess(len(shown), 20)

    def test_hostile_words_stay_words(self):
        for page in reports.pages_of(self.hostile):
            self.open(page)
            self.everything(page)
            self.assertEqual(self.browser.complaints(), [], page)
            self.assertEqual(self.browser.run("document.querySelectorAll('main img, main iframe').length"), 0)
            # Hostile words may stand in a page's title, and no script has made it another one.
            title = re.search("<title>(.*?)</title>", page.read_text(), re.DOTALL).group(1)
            self.assertEqual(self.browser.run("document.title"), " ".join(html.unescape(title).split()))
            self.assertNotEqual(self.browser.run("document.title"), "owned")
            for address in self.browser.requests():
                self.assertTrue(address.startswith(("data:", self.hostile.as_uri())), address)
            # Hovering shows words, too.
            for place in self.browser.run("""[...document.querySelectorAll("figure svg [aria-label]")]
              .slice(0, 400).filter((_, i) => i % 40 === 0).map((mark) => {
                const box = mark.getBoundingClientRect();
                return [box.x + box.width / 2, box.y + box.height / 2]; })"""):
                self.browser.hover(*place)
            self.assertEqual(self.browser.run("document.querySelectorAll('#tip *:not(strong, dl, dt, dd, p)').length"), 0)
        self.open(self.hostile / "index.html")
        listed = self.browser.run("document.getElementById('complaints').innerText")
        for words in HOSTILE[:6]:
            self.assertIn(words, listed)

    def test_light_and_dark_can_be_chosen(self):
        self.open(self.folder / "index.html")
        colour = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.run(colour)
        self.browser.run("document.getElementById('theme').click()")
        dark = self.browser.run(colour)
        self.assertNotEqual(light, dark)
        self.open(self.folder / "judge.html")
        self.assertEqual(self.browser.run(colour), dark)
        self.browser.run("localStorage.clear()")

    def test_screenshots_for_those_who_look(self):
        if not SCREENSHOTS:
            self.skipTest("no folder was named")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        for width, scheme in ((1280, "light"), (1280, "dark"), (PHONE, "light"), (PHONE, "dark")):
            self.browser.resize(width, 900, phone=width == PHONE)
            self.browser.prefer(scheme)
            for page in self.pages():
                self.open(page)
                name = "-".join(page.relative_to(self.folder).with_suffix("").parts)
                self.browser.screenshot(SCREENSHOTS / f"{name}-{width}-{scheme}.png")


if __name__ == "__main__":
    unittest.main()
