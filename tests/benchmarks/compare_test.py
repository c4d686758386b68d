#!/usr/bin/env python3
"""What compare.py says of made-up runs."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import compare


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_of(self, name, benchmarks):
        """A file as Google Benchmark writes it."""
        path = Path(self.folder.name) / name
        path.write_text(json.dumps({"benchmarks": [
            {"name": one, "run_type": kind, "cpu_time": time, "time_unit": "us"}
            for one, kind, samples in benchmarks for time in samples]}))
        return str(path)

    def compared(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = compare.main(list(arguments))
        return status, out.getvalue() + err.getvalue()

    def test_ranks_are_those_of_the_harness(self):
        # Values of median_rank's test, tests/harness/evaluation/statistics_test.cpp.
        for samples, tail, expected in ((1, 0.0125, 1), (6, 0.0125, 1), (7, 0.0125, 1),
                                        (8, 0.0125, 1), (10, 0.0125, 2), (20, 0.0125, 5),
                                        (60, 0.0125, 21)):
            below = sum(compare.math.comb(samples, k) for k in range(expected)) * 0.5 ** samples
            more = below + compare.math.comb(samples, expected) * 0.5 ** samples
            self.assertEqual(compare.rank(samples, tail), expected, samples)
            self.assertTrue(below <= tail or expected == 1)
            self.assertGreater(more, tail)

    def test_a_difference_is_told_where_intervals_allow(self):
        before = self.run_of("before", [("slow", "iteration", [100 + i for i in range(20)]),
                                        ("same", "iteration", [100 + i for i in range(20)]),
                                        ("fast", "iteration", [100 + i for i in range(20)])])
        after = self.run_of("after", [("slow", "iteration", [200 + i for i in range(20)]),
                                      ("same", "iteration", [101 + i for i in range(20)]),
                                      ("fast", "iteration", [50 + i for i in range(20)]),
                                      ("fast", "aggregate", [1])])
        status, text = self.compared(before, after)
        self.assertEqual(status, 0)
        fast, same, slow = text.splitlines()
        self.assertTrue(slow.endswith("slower"), slow)
        self.assertIn("+91.3% (+77.4 to +106.7)", slow)
        self.assertTrue(same.endswith("no difference seen"), same)
        self.assertTrue(fast.endswith("faster"), fast)
        self.assertEqual(self.compared(before, after, "--fail-above", "70")[0], 1)
        self.assertEqual(self.compared(before, after, "--fail-above", "90")[0], 0)

    def test_few_repetitions_and_other_benchmarks_are_named(self):
        before = self.run_of("before", [("a", "iteration", [1, 2]), ("gone", "iteration", [1])])
        after = self.run_of("after", [("a", "iteration", [1, 2]), ("new", "iteration", [1])])
        text = self.compared(before, after)[1]
        for line in ("only 2 repetitions", "gone: only before", "new: only after"):
            self.assertIn(line, text)

    def test_bad_input_is_status_two(self):
        good = self.run_of("good", [("a", "iteration", [1])])
        other = self.run_of("other", [("b", "iteration", [1])])
        broken = Path(self.folder.name) / "broken"
        broken.write_text("{")
        for path in ("/nowhere", str(broken), other):
            status, text = self.compared(good, path)
            self.assertEqual(status, 2)
            self.assertTrue(text.startswith("compare.py: "), text)


if __name__ == "__main__":
    unittest.main()
