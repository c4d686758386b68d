"""The package: rewards by their formulas, the async client, what it imports, the service that it starts."""

import asyncio
import math
import os
import subprocess
import sys
import time
import unittest
import unittest.mock

from running_service import PLAN, ROOT, ServiceTest, source, submission

import rekernel


def verdict(status="passed", median=100, reference=200, light=50, badges=("strict",), **more):
    times = {}
    if median is not None:
        times = {
            "median_ns": median,
            "percent_of_speed_of_light": 100 * light / median,
            "references": [{"id": "r", "median_ns": reference, "percent": {"value": 100 * reference / median}}],
        }
    body = {"kind": "verdict", "tier": "timed", "status": status, "badges": list(badges), "times": times}
    body.update({"judged_by": {}, **more})
    return rekernel.Answer.of({"id": "1", "state": "answered", "answer": body})


class Rewards(unittest.TestCase):
    def test_each_shape_is_its_formula(self):
        for shape, reward in (
            ("speedup", 2.0),
            ("log_speedup", 1.0),
            ("speed_of_light", 0.5),
            ("correct", 0.0),
            ("sol_score", 1 / (1 + 50 / 150)),
        ):
            self.assertAlmostEqual(rekernel.Reward(shape, correct=0.0)(verdict()), reward, msg=shape)
        score = rekernel.Reward("sol_score", correct=0.0)
        self.assertAlmostEqual(score(verdict(median=200)), 0.5)
        self.assertAlmostEqual(score(verdict(median=50)), 1.0)
        self.assertEqual(score(verdict(median=60, reference=40)), 0.0)

    def test_caps_floors_and_gates(self):
        self.assertEqual(rekernel.Reward(cap=1.5)(verdict()), 1.8)
        self.assertEqual(rekernel.Reward(least=3)(verdict()), 0.3)
        self.assertEqual(rekernel.Reward(needs=("robust",), ungated=0.1)(verdict()), 0.1)
        with self.assertRaisesRegex(ValueError, "badges come with tier timed"):
            rekernel.Reward("correct", needs=("robust",))(verdict(tier="correct"))
        self.assertEqual(rekernel.Reward(wrong=-1)(verdict("wrong_result")), -1)
        self.assertEqual(rekernel.Reward(not_compiled=-2)(verdict("compile_failed")), -2)

    def test_what_is_no_verdict_is_never_a_number_by_itself(self):
        lost = rekernel.Answer.of({"id": "1", "state": "answered", "answer": {"kind": "machine_error", "code": "x"}})
        with self.assertRaises(rekernel.MachineError):
            rekernel.Reward()(lost)
        self.assertTrue(math.isnan(rekernel.Reward(on_machine_error=math.nan)(lost)))
        for answer in (verdict("compiles", median=None), verdict(median=None), verdict(judged_by={"made_up": True})):
            with self.assertRaises(ValueError):
                rekernel.Reward()(answer)

    def test_advantages_leave_lost_ones_out(self):
        self.assertEqual(rekernel.group_advantages([1.0, 3.0, math.nan]), [-1.0, 1.0, 0.0])
        self.assertEqual(rekernel.group_advantages([2.0, 2.0]), [0.0, 0.0])
        self.assertEqual(rekernel.group_advantages([1.0, 4.0], scale=False), [-1.5, 1.5])


def reply(text):
    return f"```cuda\n{source(text)}__global__ void k(float* y) {{}}\n```\n```json\n" + '{"launches": []}\n```\n'


class Trainers(ServiceTest):
    def setUp(self):
        super().setUp()
        self.function = rekernel.reward_function(rekernel.Reward(allow_made_up=True), client=self.serve().client())

    def test_trl(self):
        rewards = self.function(
            prompts=["p"] * 3,
            completions=[
                reply("a"),
                [{"role": "assistant", "content": reply("b")}],
                reply("x") + "// made-up: wrong_result",
            ],
            problem=["softmax"] * 3,
            completion_ids=[[1]] * 3,
        )
        self.assertEqual(len(rewards), 3)
        self.assertGreater(rewards[0], 0.3)
        self.assertEqual(rewards[2], 0.0)
        lost = self.function(prompts=["p"], completions=[reply("y") + "// made-up: device_lost "], problem=["softmax"])
        self.assertEqual(lost, [None])

    def test_verl(self):
        by_name = self.function(
            data_source="d", solution_str=reply("a"), ground_truth=None, extra_info={"problem": "softmax"}
        )
        self.assertEqual(by_name, self.function("d", reply("a"), "softmax", None))

    def test_openrlhf(self):
        result = self.function(["prompt" + reply("a")], ["prompt"], ["softmax"])
        self.assertEqual(result["rewards"], [self.function("d", reply("a"), "softmax")])


class Package(ServiceTest):
    def test_imports_the_standard_library_alone(self):
        loaded = subprocess.run(
            [
                sys.executable,
                "-I",
                "-c",
                "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules); "
                "import rekernel; print(*{name.split('.')[0] for name in set(sys.modules) - before})",
                str(ROOT / "harness" / "python"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
        foreign = set(loaded.stdout.split()) - set(sys.stdlib_module_names) - {"rekernel"}
        self.assertEqual(foreign, set())

    def test_a_service_is_started_where_none_runs_and_goes_with_its_starter(self):
        script = (
            "import rekernel, sys; answer = rekernel.evaluate('// x', plan={}, problem='softmax'); "
            "print(answer.status, rekernel.local_client().address, flush=True); sys.stdin.read()"
        )
        environment = dict(
            os.environ,
            PYTHONPATH=str(ROOT / "harness" / "python"),
            REKERNEL_SERVICE="",
            REKERNEL_STORE=str(self.folder / "store"),
            REKERNEL_SERVE_OPTIONS="--made-up-judge 0",
        )
        command = [sys.executable, "-c", script]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (
            subprocess.Popen(command, env=environment, **pipes) as one,
            subprocess.Popen(command, env=environment, **pipes) as other,
        ):
            said = [process.stdout.readline().split() for process in (one, other)]
            one.stdin.close()
            other.stdin.close()
        self.assertEqual(said[0], said[1], "several processes share one service")
        status, address = said[0]
        self.assertEqual(status, "passed")
        with self.assertRaises(rekernel.Unreachable):
            rekernel.Client(address).request(rekernel._protocol.service())

    def test_a_service_that_never_answered_is_not_waited_for_long(self):
        service = self.serve()
        candidate = {"source": source("a"), "plan": PLAN, "problem": "softmax"}

        async def ask(timeout):
            async with rekernel.AsyncClient(service.address) as client:
                await client.evaluate(**candidate, timeout=timeout)

        with unittest.mock.patch.object(rekernel._protocol, "FIRST_CONTACT_S", 0.5):
            known, stranger = service.client(), service.client()
            self.assertTrue(known.evaluate(**candidate).passed)
            service.stop()
            for asked in (lambda: stranger.evaluate(**candidate, timeout=60), lambda: asyncio.run(ask(60))):
                begin = time.monotonic()
                with self.assertRaises(rekernel.Unreachable):
                    asked()
                self.assertLess(time.monotonic() - begin, 20)
            begin = time.monotonic()
            with self.assertRaises(rekernel.Unreachable):  # one that restarts
                known.evaluate(**candidate, timeout=3)
            self.assertGreater(time.monotonic() - begin, 1)

    def test_five_hundred_wait_at_once(self):
        service = self.serve("--made-up-devices", "4")

        async def ask():
            async with rekernel.AsyncClient(service.address) as client:
                return await asyncio.gather(
                    *(client.evaluate(source(str(i)), plan=PLAN, problem="softmax") for i in range(500))
                )

        answers = asyncio.run(ask())
        self.assertTrue(all(answer.passed for answer in answers))
        self.assertEqual(len({answer.id for answer in answers}), 500)

    def test_over_a_unix_socket(self):
        service = self.serve(listen=f"unix:{self.folder}/socket")

        async def ask():
            async with rekernel.AsyncClient(service.address) as client:
                return await client.evaluate_many([submission("a"), submission("b")])

        self.assertTrue(all(answer.passed for answer in asyncio.run(ask())))


class Groups(ServiceTest):
    def test_the_log_of_the_example_gives_every_reward_again(self):
        example, log = ROOT / "harness/python/examples/groups.py", self.folder / "log.jsonl"
        environment = dict(os.environ, PYTHONPATH=str(ROOT / "harness/python"))

        def run(*arguments):
            command = [sys.executable, str(example), str(log), "--tier", "timed", "--made-up", *arguments]
            return subprocess.run(command, env=environment, capture_output=True, text=True).returncode

        self.assertEqual(run("--service", self.serve().address), 0)
        self.assertEqual(len(log.read_text().splitlines()), 24)
        self.assertEqual(run("--replay"), 0)
        log.write_text(log.read_text().replace('"turn": 1', '"turn": 2', 1))
        self.assertEqual(run("--replay"), 1)


if __name__ == "__main__":
    unittest.main()
