"""Each adapter against the real package, where this Python has it: another Python is named by REKERNEL_ADAPTERS_PYTHON.
Only what is not installed is skipped."""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from running_service import PLAN, ROOT, ServiceTest, source

import rekernel
from rekernel.adapters import harbor
from rekernel.prompts import problem_text


def needs(package):
    return unittest.skipUnless(importlib.util.find_spec(package), f"{package} is not installed")


def reply(text, word=""):
    return f"```cuda\n{source(text, word)}```\n```json\n{json.dumps(PLAN)}\n```\n"


class Adapters(ServiceTest):
    def setUp(self):
        super().setUp()
        self.service = self.serve()
        self.client = self.service.client()
        self.reward = rekernel.Reward(allow_made_up=True)

    @needs("mcp")
    def test_mcp(self):
        from mcp import Client, StdioServerParameters, stdio_client

        record = self.folder / "agent.json"

        async def ask():
            command = StdioServerParameters(
                command=sys.executable,
                args=["-m", "rekernel.adapters.mcp", "--record", str(record), "--agent", "tests", "--model", "none"],
                env=dict(os.environ, PYTHONPATH=str(ROOT / "harness/python"), REKERNEL_SERVICE=self.service.address),
            )
            async with Client(stdio_client(command)) as client:
                tools = {tool.name for tool in (await client.list_tools()).tools}
                self.assertEqual(tools, {"list_problems", "show_problem", "check", "evaluate", "profile"})
                candidate = {"source": source("a"), "plan": PLAN, "problem": "softmax"}
                good = await client.call_tool("evaluate", candidate)
                lost = await client.call_tool("evaluate", {**candidate, "source": source("b", "device_lost")})
                shown = await client.call_tool("show_problem", {"problem": "softmax"})
                profiled = await client.call_tool("profile", candidate)
                return [result.content[0].text for result in (good, lost, shown, profiled)]

        good, lost, shown, profiled = asyncio.run(ask())
        self.assertTrue(good.startswith("status: passed"), good)
        self.assertTrue(lost.startswith("No verdict"), lost)
        self.assertIn("namespace problem", shown)
        self.assertIn("No profile: ", profiled)
        asyncio.run(ask())  # another process goes on with the record
        steps = json.loads(record.read_text())["steps"]
        called = ["evaluate", "evaluate", "show_problem", "profile"]
        self.assertEqual([step["tool_calls"][0]["function_name"] for step in steps], 2 * called)
        self.assertEqual(steps[0]["tool_calls"][0]["arguments"]["source"], source("a"))
        results = [step["observation"]["results"][0] for step in steps]
        self.assertEqual([result["content"] for result in results[:4]], [good, lost, shown, profiled])
        self.assertEqual(results[0]["extra"]["answer"]["answer"]["status"], "passed")
        if importlib.util.find_spec("atif"):
            import atif

            atif.Trajectory.model_validate(json.loads(record.read_text()))

    def test_one_records_a_session_at_a_time(self):
        from rekernel.adapters.session import Session

        record = self.folder / "session.json"
        first = Session(record)
        first.add("list_problems", {}, "softmax", None)
        with self.assertRaisesRegex(rekernel.RekernelError, "records into it"):
            Session(record)
        first.close()
        second = Session(record)
        second.add("list_problems", {}, "softmax", None)
        second.close()
        self.assertEqual(len(json.loads(record.read_text())["steps"]), 2)
        with self.assertRaisesRegex(rekernel.RekernelError, "No such file"):
            Session(self.folder / "nowhere" / "session.json")

    @needs("atif")
    def test_committed_sessions(self):
        import atif

        sessions = sorted((ROOT / "trajectories/agents").glob("*.json"))
        self.assertTrue(sessions)
        for session in sessions:
            document = json.loads(session.read_text())
            atif.Trajectory.model_validate(document)
            answers = [step["observation"]["results"][0].get("extra", {}) for step in document["steps"]]
            judged = [extra["answer"]["answer"] for extra in answers if "answer" in extra]
            self.assertTrue(judged)
            self.assertFalse([one for one in judged if one["judged_by"].get("made_up")])

    @needs("openenv")
    def test_openenv(self):
        from fastapi.testclient import TestClient
        from openenv.core.env_server.http_server import create_fastapi_app

        from rekernel.adapters.openenv import KernelAction, KernelEnvironment, KernelObservation

        def environment():
            return KernelEnvironment("softmax", self.reward, self.client, steps=2)

        direct = environment()
        self.assertIn("problem.h", direct.reset().text)
        first = direct.step(KernelAction(reply=reply("a")))
        lost = direct.step(KernelAction(reply=reply("b", "device_lost ")))
        wrong = direct.step(KernelAction(reply=reply("c", "wrong_result")))
        self.assertGreater(first.reward, 0.3)
        self.assertEqual((lost.reward, lost.done), (None, False))
        self.assertEqual((wrong.reward, wrong.done), (0.0, True))
        served = TestClient(create_fastapi_app(environment, KernelAction, KernelObservation))
        observed = served.post("/reset", json={}).json()
        self.assertIn("softmax", json.dumps(observed).lower())

    @needs("verifiers")
    def test_verifiers(self):
        import verifiers.v1 as vf

        from rekernel.adapters.verifiers import KernelTaskConfig, KernelTaskset, KernelTasksetConfig

        config = KernelTaskConfig(service=self.service.address, reward={"allow_made_up": True})
        tasks = list(KernelTaskset(KernelTasksetConfig(problems=["softmax"], task=config)))
        self.assertEqual(len(tasks), 1)
        self.assertIn("problem.h", tasks[0].data.prompt)

        def scored(text):
            # A trace as a rollout leaves it, as far as scoring reads it.
            class Trace:
                last_reply = text
                info, rewards, metrics, recorded = {}, {}, {}, {}

                def record_reward(self, name, value, weight=1.0):
                    self.recorded[name] = value * weight

            trace = Trace()
            asyncio.run(tasks[0].score(trace))
            return trace.recorded["verdict"]

        self.assertGreater(scored(reply("a")), 0.3)
        self.assertEqual(scored(reply("n", "wrong_result ")), 0.0)
        with self.assertRaises(vf.TaskError):
            scored(reply("b", "device_lost "))

    def task(self):
        problem = self.client.problem("softmax")
        return harbor.make_task(problem, self.folder / "tasks", reward="allow_made_up=True")

    def test_harbor_task_keeps_the_judge_out_of_the_agents_box(self):
        folder = self.task()
        for path in (folder / "environment").rglob("*"):
            self.assertNotIn("rekernel", path.read_text().lower())
        self.assertIn("problem.h", (folder / "instruction.md").read_text())
        with self.assertRaises(FileExistsError):
            self.task()

    def test_harbor_verifier_writes_a_reward_or_none(self):
        folder = self.task()
        script = (folder / "tests/verify.py").read_text()
        for word, expected in (("", True), ("wrong_result", False), ("device_lost", None)):
            answer, logs = self.folder / f"answer{word}", self.folder / f"logs{word}"
            answer.mkdir()
            (answer / "kernel.cu").write_text(source("h", word))
            (answer / "kernel.json").write_text(json.dumps(PLAN))
            local = script.replace("/answer", str(answer)).replace("/logs/verifier", str(logs))
            environment = dict(os.environ, PYTHONPATH=str(folder / "tests"), REKERNEL_SERVICE=self.service.address)
            done = subprocess.run([sys.executable, "-c", local], env=environment, capture_output=True, text=True)
            if expected is None:
                self.assertNotEqual(done.returncode, 0)
                self.assertFalse((logs / "reward.json").exists(), "no verdict is no reward")
            else:
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(bool(json.loads((logs / "reward.json").read_text())["passed"]), expected)

    def test_the_command_makes_tasks_or_leaves_nothing(self):
        def run(*arguments):
            command = [os.environ["REKERNEL_PROGRAM"], "task", *arguments, "--into", str(self.folder / "made")]
            return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)

        self.assertEqual(run("sofmax", "conv2d").returncode, 2)
        self.assertFalse((self.folder / "made").exists())
        self.assertEqual(run("softmax").returncode, 0)
        again = run("conv2d", "softmax")
        self.assertEqual(again.returncode, 2)
        self.assertIn("softmax", again.stderr)
        self.assertFalse((self.folder / "made/conv2d").exists())

    @needs("harbor")
    def test_harbor_reads_the_task(self):
        from harbor.models.task.config import TaskConfig
        from harbor.models.task.task import Task
        from harbor.models.task.verifier_mode import resolve_task_verifier_mode

        folder = self.task()
        config = TaskConfig.model_validate_toml((folder / "task.toml").read_text())
        self.assertEqual(resolve_task_verifier_mode(config).value, "separate")
        self.assertIn("problem.h", Task(folder).instruction)

    def test_a_problem_as_text_names_every_tensor(self):
        problem = self.client.problem("conv2d")
        text = problem_text(problem)
        for tensor in problem["tensors"]:
            self.assertIn(f"`{tensor['name']}`", text)


if __name__ == "__main__":
    here = Path(__file__).resolve()
    other = os.environ.pop("REKERNEL_ADAPTERS_PYTHON", "")
    if other:
        raise SystemExit(subprocess.run([other, str(here), *sys.argv[1:]]).returncode)
    unittest.main()
