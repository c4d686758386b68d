#!/usr/bin/env python3
"""Data sets as `rekernel dataset` writes them: their rows, and what is refused. $1: the program; --made FOLDER: where
project_dataset.py made the project's."""

import hashlib
import json
import os
import resource
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import datasets_made

MADE = datasets_made.take_option("--made")
PROGRAM = str(Path(sys.argv.pop(1)).resolve())
parquet = datasets_made.import_pyarrow()
import pyarrow  # the same wheel's


def rows_of(folder, config, columns=None):
    """(split, row) of a config."""
    for path in sorted((folder / config).glob("*.parquet")):
        for row in parquet.read_table(path, columns=columns).to_pylist():
            yield path.name.split("-")[0], row


def events(kind):
    for path in datasets_made.ended_searches():
        for line in path.read_text().splitlines():
            event = json.loads(line)
            if event["event"] == kind:
                yield path.stem, event


class OfTheProject(unittest.TestCase):
    CONFIGS = ("candidates", "messages", "preferences", "repairs", "cheats", "mutants", "profiles")

    def test_every_evaluation_has_a_row(self):
        rows = {(row["search"], row["candidate"]): row
                for _, row in rows_of(MADE, "candidates") if row["origin"] == "search"}
        recorded = {(search, event["id"]): event for search, event in events("evaluation")}
        self.assertEqual(rows.keys(), recorded.keys())
        for key, event in recorded.items():
            self.assertEqual(rows[key]["status"], event["status"])
            self.assertEqual(rows[key]["sha256"], event.get("sha256"))
            timing = event.get("timing", {})
            self.assertEqual(rows[key]["median_ns"], timing.get("median_ns"))
            self.assertEqual(rows[key]["samples_ns"] or [], timing.get("samples_ns", []))

    def test_every_result_has_a_row(self):
        rows = {row["name"]: row for _, row in rows_of(MADE, "candidates") if row["origin"] == "results"}
        present = {row["sha256"] for row in rows.values()}
        for path in datasets_made.ROOT.glob("results/*/bench.json"):
            for one in json.loads(path.read_text())["rows"]:
                name = f"results/{path.parent.name}/{one['problem']}/{one['kernel']}"
                if name not in rows:  # of a version of the kernel whose code is not there any more
                    self.assertNotIn(one["sha256"], present)
                    continue
                row = rows[name]
                self.assertEqual(row["samples_ns"], one["samples_ns"])
                self.assertEqual(len(row["references"]),
                                 sum("median_ns" in reference for reference in one["references"].values()
                                     if isinstance(reference, dict)))
                self.assertTrue(row["judge"] and row["toolchain"])

    def test_prompts_are_those_that_were_recorded(self):
        recorded = {(search, event["id"]): event["prompt_sha256"] for search, event in events("request")}
        seen = set()
        for _, row in rows_of(MADE, "messages"):
            user, assistant = row["messages"]
            self.assertEqual((user["role"], assistant["role"]), ("user", "assistant"))
            digest = hashlib.sha256(user["content"].encode()).hexdigest()
            self.assertEqual(digest, recorded[row["search"], row["request"]])
            seen.add((row["search"], row["request"]))
        self.assertEqual(seen, recorded.keys())

    def test_ids_are_there_once_and_lead_somewhere(self):
        candidates = {}
        for config in self.CONFIGS:
            ids = [row["id"] for _, row in rows_of(MADE, config, ["id"])]
            self.assertTrue(ids, config)
            self.assertEqual(len(ids), len(set(ids)), config)
            if config == "candidates":
                candidates = set(ids)
        for _, row in rows_of(MADE, "preferences", ["chosen_id", "rejected_id"]):
            self.assertLessEqual(set(row.values()), candidates)
        for _, row in rows_of(MADE, "messages", ["candidates"]):
            self.assertLessEqual(set(row["candidates"] or []), candidates)
        for _, row in rows_of(MADE, "candidates", ["near_duplicate_of"]):
            self.assertTrue(row["near_duplicate_of"] is None or row["near_duplicate_of"] in candidates)

    def test_a_family_is_in_one_split(self):
        splits = {}
        for config in self.CONFIGS:
            for split, row in rows_of(MADE, config, ["family", "problem"]):
                splits.setdefault(row["family"], set()).add(split)
        self.assertEqual({name for name, where in splits.items() if len(where) != 1}, set())
        self.assertEqual(set().union(*splits.values()), {"train", "validation", "test"})

    def test_no_near_duplicate_crosses_splits(self):
        split_of = {row["id"]: split for split, row in rows_of(MADE, "candidates", ["id"])}
        for split, row in rows_of(MADE, "candidates", ["id", "near_duplicate_of"]):
            self.assertEqual(split_of.get(row["near_duplicate_of"], split), split, row["id"])

    def test_preferences_are_beyond_noise(self):
        for _, row in rows_of(MADE, "preferences"):
            self.assertEqual(row["chosen_status"], "passed")
            if row["by"] == "time":
                self.assertGreater(row["speedup_low"], 1)
                self.assertLessEqual(row["speedup_low"], row["speedup"])
            else:
                self.assertNotEqual(row["rejected_status"], "passed")

    def test_the_gallery_is_whole(self):
        cheats = {path.parent.name for path in datasets_made.ROOT.glob("tests/adversarial/*/expected.json")}
        self.assertEqual({row["name"] for _, row in rows_of(MADE, "cheats", ["name"])},
                         {f"cheats/{name}" for name in cheats})
        honest = {path.parent for path in datasets_made.ROOT.glob("tests/honest/*/*/expected.json")}
        kinds = [row["kind"] for _, row in rows_of(MADE, "mutants", ["kind"])]
        self.assertEqual(kinds.count("honest"), len(honest))
        for _, row in rows_of(MADE, "mutants"):
            self.assertTrue(row["outcomes"], row["name"])

    def test_the_card_lists_what_is_there(self):
        card = (MADE / "README.md").read_text()
        self.assertTrue(card.startswith("---\nlicense: apache-2.0\n"))
        for config in self.CONFIGS:
            self.assertIn(f"- config_name: {config}\n", card)
            for path in (MADE / config).glob("*.parquet"):
                self.assertIn(f"path: {config}/{path.name.split('-')[0]}-*.parquet", card)
                for column in parquet.read_schema(path).names:
                    self.assertIn(f"| `{column}` |", card)


class Made(unittest.TestCase):
    """Small projects, as they are and with something wrong."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.scratch = Path(scratch.name)
        self.project = datasets_made.small_project(self.scratch / "project")
        self.folder = self.scratch / "data"

    def make(self, *arguments, **more):
        return datasets_made.make(PROGRAM, self.folder, *arguments, cwd=self.project, **more)

    def expect_refused(self, made, *words):
        self.assertEqual(made.returncode, 2, made.stderr)
        for word in words:
            self.assertIn(word, made.stderr)
        self.assertNotIn("Traceback", made.stderr)
        self.assertEqual(sorted(path.name for path in self.scratch.iterdir()), ["project"])

    def rewrite(self, change):
        """The search with its events changed, and the chain that belongs to them."""
        path = self.project / "trajectories/softmax.jsonl"
        chain, lines = hashlib.sha256(b"rekernel trajectory 1").hexdigest(), []
        for line in path.read_text().splitlines():
            event = json.loads(line)
            del event["chain"]
            change(event)
            text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
            chain = hashlib.sha256((chain + text).encode()).hexdigest()
            lines.append(text[:-1] + f',"chain":"{chain}"}}\n')
        path.write_text("".join(lines))

    def change_last_reply(self, beginning):
        """Its words before the kernel change nothing that comes after it, as long as they are as many."""
        last = [event["id"] for search, event in events("response") if search == "softmax"][-1]

        def rewrite(event):
            if event["event"] == "response" and event["id"] == last:
                event["text"] = beginning + event["text"][len(beginning):]
        self.rewrite(rewrite)

    def test_the_same_records_give_the_same_bytes(self):
        self.assertEqual(self.make().returncode, 0)
        first = datasets_made.contents(self.folder)
        self.folder = self.scratch / "again"
        self.assertEqual(self.make().returncode, 0)
        self.assertEqual(first, datasets_made.contents(self.folder))

    def test_an_empty_folder_is_taken_and_another_is_not(self):
        self.folder.mkdir()
        self.assertEqual(self.make().returncode, 0)
        before = datasets_made.contents(self.folder)
        again = self.make()
        self.assertEqual(again.returncode, 2)
        self.assertIn("is not empty", again.stderr)
        self.assertEqual(datasets_made.contents(self.folder), before)

    def test_a_search_is_left_out(self):
        self.assertEqual(self.make("--leave-out", "softmax").returncode, 0)
        self.assertFalse((self.folder / "messages").exists())
        self.folder = self.scratch / "none"
        self.assertIn("no such search", self.make("--leave-out", "softmaxx").stderr)

    def test_an_unknown_licence(self):
        self.expect_refused(self.make("--license", "WTFPL-ish"), "WTFPL-ish", "Apache-2.0")

    def test_a_trajectory_that_does_not_replay(self):
        path = self.project / "trajectories/softmax.jsonl"
        path.write_text(path.read_text().replace("wrote", "wr0te", 1).replace("rows", "r0ws", 1))
        self.expect_refused(self.make(), "softmax.jsonl: line ")

    def test_a_secret_is_named_and_not_shown(self):
        secret = "sk-" + "a1B2c3D4e5F6g7H8i9J0k1L2"
        self.change_last_reply(f"My key is {secret}.")
        made = self.make()
        self.expect_refused(made, "messages softmax/", "messages[1].content", "from byte 10", "OpenAI")
        self.assertNotIn("a1B2c3", made.stderr)

    def test_two_searches_of_one_name(self):
        source = self.project / "trajectories/softmax.jsonl"
        (self.project / "trajectories/copy.jsonl").write_bytes(source.read_bytes())
        self.expect_refused(self.make(), "is called softmax too")

    def test_a_disk_that_is_full(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        self.expect_refused(self.make(preexec_fn=limit), "nothing was written")


class Read(unittest.TestCase):
    """Rows that are taken out of data sets, ours and others'."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name) / "data"
        (self.folder / "candidates").mkdir(parents=True)
        for path in (MADE / "candidates").glob("train-*.parquet"):
            shutil.copy(path, self.folder / "candidates")

    def evaluate(self, *arguments):
        """Without a GPU."""
        return datasets_made.rekernel(PROGRAM, "evaluate", "--from-dataset", self.folder, *arguments,
                                      env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})

    def expect_refused(self, got, words):
        self.assertEqual(got.returncode, 2, got.stderr)
        self.assertIn(words, got.stderr)
        self.assertNotIn("Traceback", got.stderr)

    def test_a_row_is_asked_for_by_id_or_name(self):
        for arguments, words in (
                (("--row", "softmax/r9.i9.b9"), "no candidate has this id"),
                (("--row", "softmax/r1.i1.b1"), "held no candidate"),
                ((), "expected both"),
                (("--row", "softmax/r1.i2.b1", "somewhere"), "expected KERNEL, or")):
            self.expect_refused(self.evaluate(*arguments), words)
        # A row that is there comes as far as the GPU, which is not.
        got = self.evaluate("--row", "softmax/r1.i2.b1")
        self.assertEqual(got.returncode, 2)
        self.assertNotIn(str(self.folder), got.stderr)

    def test_a_row_that_is_not_what_was_judged(self):
        path = next((self.folder / "candidates").glob("*.parquet"))
        table = parquet.read_table(path)
        place = table.schema.get_field_index("code")
        spoilt = [code and code.replace("float", "double", 1) for code in table["code"].to_pylist()]
        parquet.write_table(table.set_column(place, table.schema.field(place), pyarrow.array(spoilt)), path)
        self.expect_refused(self.evaluate("--row", "softmax/r1.i2.b1"), "not what was judged")

    def test_a_name_that_several_rows_have(self):
        path = next((self.folder / "candidates").glob("*.parquet"))
        shutil.copy(path, path.with_name("train-00001-of-00002.parquet"))
        self.expect_refused(self.evaluate("--row", "softmax/r1.i2.b1"), "several rows are called so")

    def test_files_that_are_no_data_set(self):
        path = next((self.folder / "candidates").glob("*.parquet"))
        path.write_bytes(b"PAR1 and no more")
        self.expect_refused(self.evaluate("--row", "a"), "no Parquet file")
        parquet.write_table(pyarrow.table({"text": ["other people's"]}), path)
        self.expect_refused(self.evaluate("--row", "a"), "has no columns id, name")
        path.unlink()
        self.expect_refused(self.evaluate("--row", "a"), "no data set of ours")


if __name__ == "__main__":
    unittest.main()
