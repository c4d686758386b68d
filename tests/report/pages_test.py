#!/usr/bin/env python3
"""The pages of `rekernel report --html`, without a browser. $1: the program; --made FOLDER: where
project_report.py made the project's."""

import base64
import html.parser
import json
import re
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import reports
from hostile import hostile

MADE = reports.take_option("--made")
PROGRAM = str(Path(sys.argv.pop(1)).resolve())
MOST_BYTES = 12_000_000  # of some fifty recorded searches with all their code

class Tags(html.parser.HTMLParser):
    """The elements of a page, and where they lead."""

    def __init__(self):
        super().__init__()
        self.counts, self.links, self.handlers = {}, [], []

    def handle_starttag(self, tag, attributes):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attributes:
            if name in ("href", "src"):
                self.links.append(value)
            if name.startswith("on") or name == "style":
                self.handlers.append(name)


def tags_of(page):
    tags = Tags()
    tags.feed(page.read_text())
    return tags


def packed(page):
    """What a page keeps for its script: code and the charts' data."""
    found = re.search(r'id="pack">([^<]*)</script>', page)
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


class Committed(unittest.TestCase):
    """The report of the project as it is."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.data, cls.folder = reports.of_the_project(PROGRAM, Path(cls.scratch.name), MADE)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_every_kernel_and_every_search_has_a_page(self):
        kernels = {path.parent.relative_to(reports.ROOT / "generated")
                   for path in reports.ROOT.glob("generated/*/*/kernel.json")}
        searches = {path.stem for path in reports.ended_searches()}
        pages = {path.relative_to(self.folder).with_suffix("")
                 for path in reports.pages_of(self.folder)}
        self.assertEqual({Path("kernels") / one for one in kernels},
                         {page for page in pages if page.parts[0] == "kernels" and page.parts[1:]})
        self.assertEqual({Path("searches") / one for one in searches},
                         {page for page in pages if page.parts[0] == "searches" and page.parts[1:]})

    def test_it_is_small(self):
        self.assertLess(sum(map(len, reports.contents(self.folder).values())), MOST_BYTES)

    def test_every_problem_has_a_page_with_its_definition_and_what_is_recorded(self):
        listed = (self.folder / "problems.html").read_text()
        recorded = {row["problem"]: row for device in self.data["devices"]
                    for row in device["of_definitions"]["mutants"]}
        self.assertGreater(len(recorded), 100)
        for problem in self.data["problems"]:
            self.assertIn(f'href="problems/{problem["id"]}.html"', listed)
            page = html.unescape((self.folder / "problems" / f"{problem['id']}.html").read_text())
            for statement in problem["definition"]:
                self.assertIn(statement, page)
            for kind in recorded[problem["id"]]["kinds"]:
                self.assertIn(f">{kind}</th>", page, problem["id"])

    def test_every_link_within_leads_somewhere_and_nothing_is_loaded_from_elsewhere(self):
        for page in reports.pages_of(self.folder):
            text = page.read_text()
            for link in tags_of(page).links:
                if link in ("data:,", ""):
                    continue
                self.assertNotRegex(link, r"^[a-z]+:", page)
                name, _, place = link.partition("#")
                target = page.parent / name if name else page
                self.assertTrue(target.exists(), f"{page}: {link}")
                if place:
                    there = target.read_text() if name else text
                    self.assertIn(f'id="{place}"', there, f"{page}: {link}")

    def test_the_readmes_pictures_show_the_present_figures(self):
        readme = (reports.ROOT / "README.md").read_text()
        names = re.findall(r"\(results/pictures/([^)]+)\)", readme)
        self.assertTrue(names)
        shows = re.compile(r'data-shows="([0-9a-f]{64})"')
        for name in names:
            committed = (reports.ROOT / "results/pictures" / name).read_text()
            made = (self.folder / "pictures" / name).read_text()
            self.assertEqual(shows.search(committed)[1], shows.search(made)[1],
                             f"{name} is out of date: run `rekernel report --readme`")

    def test_figures_are_those_of_the_record(self):
        kernels = (self.folder / "kernels.html").read_text()
        for path in reports.ROOT.glob("results/*/bench.json"):
            for row in json.loads(path.read_text())["rows"]:
                milliseconds = row["median_ns"] / 1e6
                shown = f"{milliseconds:.4f}" if milliseconds < 1 else f"{milliseconds:.3f}"
                lines = re.findall(rf"<tr[^>]*>\s*<td[^>]*>{row['problem']}</td>\s*<th[^>]*>"
                                   rf"<a[^>]*>{row['kernel']}</a>.*?</tr>", kernels, re.S)
                expected = [f">{shown}<"]
                if "percent_of_reference" in row:
                    expected.append(f">{row['percent_of_reference']['headline']:.1f}% ")
                self.assertTrue(any(all(one in line for one in expected) for line in lines),
                                f"{path}: {row['kernel']}: {expected} in none of {lines}")


class Small(unittest.TestCase):
    """Reports of a small project, as it is and with things wrong."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.project = reports.small_project(self.scratch / "project")
        self.folder = self.scratch / "report"

    def make(self, **more):
        return reports.make(PROGRAM, self.folder, cwd=self.project, **more)

    def test_what_cannot_be_read_is_named_and_the_rest_is_made(self):
        broken = {
            "results/h200/errors.json": lambda text: text[: len(text) // 2],
            "trajectories/softmax.jsonl": lambda text: text[: text.index("\n", 60_000) + 1] + "{}\n",
            "generated/softmax/cluster_with_prefetch/kernel.json":
                lambda text: text.replace('"schema": 1', '"schema": 7'),
            "tests/adversarial/zeros/expected.json": lambda text: "[]",
            "results/h200/replay/softmax.measured.json": lambda text: "{",
        }
        for name, damage in broken.items():
            path = self.project / name
            path.write_text(damage(path.read_text()))
        (self.project / "results/published.json").unlink()
        (self.project / "results/l40s/replay").mkdir(parents=True)
        made = self.make()
        self.assertEqual(made.returncode, 2, made.stderr)
        index = (self.folder / "index.html").read_text()
        named = [*broken, "results/published.json", "results/l40s/bench.json"]
        for name in named:
            name = name.removesuffix("/kernel.json")
            self.assertIn(f"rekernel: {name}: ", made.stderr)
            self.assertIn(f"<code>{name}</code>: ", index)
        self.assertNotIn(str(self.project), made.stderr)
        for page in ("kernels/softmax/row_on_chip_plain_stores.html", "searches/softmax.html",
                     "judge.html"):
            self.assertTrue((self.folder / page).exists(), page)
        self.assertIn("cannot be read to its end", (self.folder / "searches/softmax.html").read_text())
        self.assertIn("result_cache", (self.folder / "judge.html").read_text())

    def test_a_missing_result_is_named_and_no_failure_and_keys_that_are_new_are_shown(self):
        (self.project / "results/h200/bench.json").unlink()
        path = self.project / "results/h200/replay/softmax.ncu.json"
        profile = json.loads(path.read_text())
        profile["rounds"][0]["metrics"]["made_up__counter.sum"] = 4711
        path.write_text(json.dumps(profile))
        made = self.make()
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stdout, f"{self.folder}/index.html\n")
        self.assertIn("rekernel: results/h200/bench.json: no times are recorded", made.stderr)
        self.assertIn("rekernel: generated/softmax/cluster_with_prefetch: no time is recorded",
                      made.stderr)
        page = self.folder / "kernels/softmax/cluster_with_prefetch.html"
        self.assertIn("No time is recorded", page.read_text())
        search = (self.folder / "searches/softmax.html").read_text()
        self.assertIn("made_up__counter.sum", search)
        self.assertIn("4711", search)

    def test_a_folder_that_is_no_report_is_left_alone(self):
        self.folder.mkdir()
        (self.folder / "thesis.txt").write_text("years of work")
        made = self.make()
        self.assertEqual(made.returncode, 2)
        self.assertIn("is no report; expected a report of ours, an empty folder, or none",
                      made.stderr)
        (self.folder / "report.json").write_text('{"rekernel_report": 1, "files": []}')
        made = self.make()
        self.assertEqual(made.returncode, 2)
        self.assertIn("holds thesis.txt, which is not of the report", made.stderr)
        self.assertEqual((self.folder / "thesis.txt").read_text(), "years of work")
        file = self.scratch / "file"
        file.touch()
        made = reports.make(PROGRAM, file, cwd=self.project)
        self.assertEqual(made.returncode, 2)
        self.assertIn("is no folder", made.stderr)

    def test_a_report_is_replaced_as_a_whole_or_not_at_all(self):
        self.assertEqual(self.make().returncode, 0)
        before = reports.contents(self.folder)
        made = reports.rekernel(PROGRAM, "report", "--html", f"{self.folder}/", cwd=self.project)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(before, reports.contents(self.folder), "the same records, other bytes")
        # No file may grow beyond 64 KiB: the first that wants to fails, as it would on a full disk.
        limited = self.scratch / "limited"
        limited.write_text(f'#!/bin/bash\nulimit -f 64\nexec "{PROGRAM}" "$@"\n')
        limited.chmod(0o755)
        made = reports.rekernel(str(limited), "report", "--html", self.folder, cwd=self.project)
        self.assertEqual(made.returncode, 2, made.stdout)
        self.assertIn("File too large", made.stderr)
        self.assertIn("is as it was", made.stderr)
        self.assertNotIn("Traceback", made.stderr)
        self.assertEqual(before, reports.contents(self.folder))
        self.assertEqual({path.name for path in self.scratch.iterdir()},
                         {"project", "report", "limited"})


class Generator(unittest.TestCase):
    """The generator alone, with data that no reader would let pass."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        folder = Path(cls.scratch.name)
        cls.project = reports.small_project(folder / "project")
        cls.plain = folder / "report"
        cls.data = reports.data_of(PROGRAM, cls.project, folder)
        cls.hostile = folder / "hostile"
        cls.made = reports.generate(hostile(json.loads(json.dumps(cls.data))), cls.hostile)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_hostile_words_stay_words(self):
        self.assertEqual(self.made.returncode, 0, self.made.stderr)
        for page in reports.pages_of(self.hostile):
            tags = tags_of(page)
            self.assertEqual(tags.handlers, [], page)
            self.assertNotIn("img", tags.counts, page)
            for link in tags.links:
                self.assertNotRegex(link, r"^(?!data:,$)[a-z]+:", page)
            self.assertNotRegex(page.read_text(), "[\u202a-\u202e\u2066-\u2069\u200b\ufeff\x00\x07\x1b\x9b]")
        search = next((self.hostile / "searches").iterdir())
        self.assertNotIn("<", search.name)
        # What a page is made of does not depend on the words in it.
        calm = tags_of(self.plain / "kernels/softmax/cluster_with_prefetch.html").counts
        wild = tags_of(self.hostile / "kernels/softmax/cluster_with_prefetch.html").counts
        self.assertEqual(calm["script"], wild["script"])

    def test_pictures_are_well_formed_whatever_the_words(self):
        import xml.etree.ElementTree
        pictures = list((self.hostile / "pictures").iterdir())
        self.assertTrue(pictures)
        for picture in pictures:
            tree = xml.etree.ElementTree.parse(picture)
            names = {element.tag.rsplit("}", 1)[-1] for element in tree.iter()}
            self.assertFalse(names & {"script", "foreignObject", "image", "a"}, picture)

    def test_samples_are_all_shown(self):
        data = json.loads(json.dumps(self.data))
        row = next(row for row in data["devices"][0]["rows"]
                   if row["kernel"] == "cluster_with_prefetch")
        row["samples_ns"] = [row["median_ns"] + 10 * i for i in range(-30, 30)]
        row["references"][0]["samples_ns"] = [row["references"][0]["median_ns"]] * 60
        row["resources"] = [{"name": "made_up_kernel", "registers": 77, "static_shared_bytes": 0,
                             "stack_bytes": 0, "spill_store_bytes": 0, "spill_load_bytes": 0}]
        row["also_recorded"] = {"witness": {"median_ns": 511999, "verdict": "agrees"}}
        folder = Path(self.scratch.name) / "samples"
        made = reports.generate(data, folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        page = (folder / "kernels/softmax/cluster_with_prefetch.html").read_text()
        charts = [point for piece in packed(page)["pieces"] for point in piece.get("rows", [])]
        recorded = [row, *row["references"]]
        self.assertEqual(sum(point.get("part") == "sample" for point in charts),
                         sum(len(one.get("samples_ns", [])) for one in recorded))
        for part in ("made_up_kernel", "witness.median_ns", "511999", "agrees"):
            self.assertIn(part, page)

    def test_an_empty_project_has_pages_too(self):
        folder = Path(self.scratch.name) / "empty"
        made = reports.generate(
            {"schema": 1, "badges": {}, "problems": self.data["problems"], "kernels": [], "devices": [],
             "searches": [], "gallery": {"cheats": [], "mutants": [], "honest": []},
             "complaints": []}, folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn("None can be read", (folder / "judge.html").read_text())

    def test_claims_stand_beside_what_was_measured(self):
        def row(name, **more):
            return {"name": name, "problem": "matmul_fp16", "axes": {"m": 64}, "file": f"{name}.cu", "line": 0,
                    "sha256": "ab" * 32, "outcome": "judged", "reason": "", "status": "", "badges": [],
                    "libraries": [], "note": "", "median_ns": 0, "own_device_ns": 0, "own_call_ns": 0,
                    "tolerance_share": 0, "rms_error": 0, "device": "", "references": [], "claimed": [], **more}

        figure = {"quantity": "speedup over torch.matmul", "value": 1.25, "unit": "x", "over": "pytorch_eager",
                  "reference": "", "holds": False}
        eager = {"id": "pytorch_eager", "unavailable": "", "median_ns": 960000, "percent": 120.4, "low": 119.0,
                 "high": 121.0}
        library = {**eager, "id": "cublas_fp16", "median_ns": 800000, "percent": 100.4}
        measured = {**figure, "reference": "pytorch_eager",
                    "measured": {"value": 120.4, "low": 119.0, "high": 121.0}}
        fast = row("fast", status="passed", badges=["robust"], median_ns=797000, rms_error=1.5e-4,
                   device="NVIDIA H200", references=[eager, library], claimed=[measured])
        gone = row("gone", outcome="missing", reason="<b>gone.cu</b>: there is no such file", claimed=[figure])
        record = {"name": "others", "title": "Kernels of <i>others</i>", "repository": "https://example.org",
                  "revision": "abc", "licence": "MIT", "device": "NVIDIA H100", "method": "a warm cache",
                  "rows": [fast, gone]}
        unclaimed = {**record, "name": "unclaimed", "title": "A compiler's", "rows": [{**fast, "claimed": []}]}
        folder = Path(self.scratch.name) / "claims"
        made = reports.generate(
            {"schema": 1, "badges": {}, "problems": [], "kernels": [], "devices": [], "searches": [],
             "gallery": {"cheats": [], "mutants": [], "honest": []}, "complaints": [],
             "claims": [record, unclaimed]}, folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        page = folder / "claims.html"
        text = page.read_text()
        self.assertIn("claims.html", tags_of(folder / "index.html").links)
        for part in ("Kernels of &lt;i&gt;others", "&lt;b&gt;gone.cu&lt;/b&gt;: there is no such file", "1 of 2",
                     "0 of 2", "1.25× pytorch_eager", "1.2× pytorch_eager [1.19, 1.21]", "120.4%", "100.4%",
                     "1.5e-04", "a warm cache", "abababababab…", "NVIDIA H200"):
            self.assertIn(part, text)
        bars = [one for piece in packed(text)["pieces"] for one in piece.get("rows", [])]
        self.assertEqual([(one["kind"], one.get("value")) for one in bars],
                         [("head", None), ("kernel", 120.4), ("published", 125), ("head", None),
                          ("published", 125)])
        # Where nothing is claimed, no figure is said to hold or not to.
        self.assertEqual(text.count("claimed figures hold"), 1)
        self.assertEqual(text.count("Dashed: claimed"), 1)

    def test_a_defect_is_one_line(self):
        folder = Path(self.scratch.name) / "defect"
        made = reports.generate({"complaints": []}, folder)
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stderr, r"^report: .*KeyError.*\n$")


if __name__ == "__main__":
    unittest.main()
