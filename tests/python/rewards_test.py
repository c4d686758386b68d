"""rewards.py with the judge for tests: goes on where a log ends, and compares two."""

import json
import subprocess
import sys
import unittest
from collections import Counter

import rewards
from running_service import ServiceTest


def rows_of(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


class Rewards(ServiceTest):
    def run_it(self, *arguments):
        command = [sys.executable, "rewards.py", *map(str, arguments), "--made-up", "--count", "24"]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_log_is_gone_on_with_and_compared(self):
        first, second = self.folder / "first.jsonl", self.folder / "second.jsonl"
        self.assertEqual(self.run_it(first)[0], 0)
        whole = rows_of(first)
        self.assertEqual(sorted(row["number"] for row in whole), list(range(24)))
        # A run that was killed: ten lines, and a half.
        first.write_text("".join(json.dumps(row) + "\n" for row in whole[:10]) + '{"number": 3, "pro')
        self.assertEqual(self.run_it(first)[0], 0)
        self.assertEqual(rows_of(first)[:10], whole[:10])
        self.assertEqual(sorted(row["number"] for row in rows_of(first)), list(range(24)))

        code, said = self.run_it(first, "--again", second)
        self.assertEqual(code, 0, said)
        self.assertIn("24 evaluations in both", said)
        changed = rows_of(second)
        timed = next(row for row in changed if row["median_ns"])
        timed["status"] = "wrong_result"
        second.write_text("".join(json.dumps(row) + "\n" for row in changed))
        code, said = self.run_it(first, "--again", second)
        self.assertEqual(code, 1)
        self.assertIn(": passed, then wrong_result", said)

    def test_times_that_are_apart_are_named(self):
        row = {"problem": "softmax", "kind": "fast", "status": "passed", "judge": "j"}
        first = {n: {**row, "median_ns": 1000000} for n in range(40)}
        second = {n: {**one, "median_ns": 1019000} for n, one in first.items()}
        self.assertTrue(rewards.compare(first, second))
        second[7]["median_ns"] = 900000
        self.assertTrue(rewards.compare(first, second), "39 of 40 are 97.5%")
        for n in (8, 9):
            second[n]["median_ns"] = 1100000
        self.assertFalse(rewards.compare(first, second))

    def test_what_is_drawn_is_of_every_kind(self):
        kernels = {"softmax": "cluster_with_prefetch"}
        asked = [rewards.drawn(number, kernels) for number in range(200)]
        self.assertEqual(set(Counter(one["kind"] for one in asked)), set(rewards.SHARES))
        self.assertEqual(asked, [rewards.drawn(number, kernels) for number in range(200)])
        slow = {"source": "a; b;", "plan": {"launches": [{"kernel": "k", "grid": [8, 2]}]}}
        bodies = {one["kind"]: rewards.body_of(7, one, {"softmax": slow}) for one in asked}
        self.assertEqual(bodies["half"]["plan"]["launches"][0]["grid"], [4, 2])
        self.assertTrue(bodies["typo"]["source"].startswith("a b;"))
        self.assertIn("cluster", bodies["fast"]["source"])
        self.assertEqual(slow["plan"]["launches"][0]["grid"], [8, 2], "nothing of it was changed")

    def test_a_log_says_what_is_evaluated_again(self):
        row = {"number": 3, "problem": "softmax", "kind": "fast", "kernel": "row_on_chip_plain_stores"}
        self.assertEqual(rewards.logged(row)["kernel"], "row_on_chip_plain_stores")
        del row["kernel"]
        self.assertEqual(rewards.logged(row)["kernel"], rewards.fastest()["softmax"]["kernel"])
        self.assertEqual(rewards.logged({**row, "kind": "typo"})["kernel"], "")


if __name__ == "__main__":
    unittest.main()
