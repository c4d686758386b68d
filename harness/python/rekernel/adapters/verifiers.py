"""A `verifiers` environment (0.4 and newer, ``verifiers.v1``): a task a problem, rewarded by the judge.

The model's last reply is the candidate. Where the machine failed, scoring raises MachineError, which becomes an error
of the trace; no reward is recorded.
"""

from __future__ import annotations

from typing import Any, Iterable

import verifiers.v1 as vf

from rekernel._local import local_client
from rekernel.aio import AsyncClient
from rekernel.prompts import problem_text
from rekernel.reward import Reward


class KernelTaskConfig(vf.TaskConfig):
    service: str = ""
    """Address of the service; empty: the environment's, else one that is started here."""
    tier: str = "timed"
    reward: dict[str, Any] = {}
    """Arguments of rekernel.Reward."""


class KernelData(vf.TaskData):
    problem: str


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    @vf.reward
    async def verdict(self, trace: vf.Trace) -> float:
        async with AsyncClient(self.config.service or local_client().address) as client:
            answer = await client.evaluate(reply=trace.last_reply, problem=self.data.problem, tier=self.config.tier)
        trace.info["rekernel"] = dict(answer.raw)
        return Reward(**self.config.reward)(answer)


class KernelTasksetConfig(vf.TasksetConfig):
    problems: list[str] = []
    """Ids; empty: all."""
    task: KernelTaskConfig = KernelTaskConfig()


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    def load(self) -> Iterable[KernelTask]:
        from rekernel.client import Client

        client = Client(self.config.task.service) if self.config.task.service else local_client()
        for name in self.config.problems or [problem["id"] for problem in client.problems()]:
            data = KernelData(id=name, name=name, problem=name, prompt=problem_text(client.problem(name)))
            yield KernelTask(data, self.config.task)
