"""An OpenEnv environment: each step submits a candidate, and the episode ends after a number of them.

``create_app(lambda: KernelEnvironment("softmax"), KernelAction, KernelObservation)`` of
``openenv.core.env_server.http_server`` serves it.
"""

from __future__ import annotations

import uuid
from typing import Any, Optional

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State

from rekernel._local import local_client
from rekernel._protocol import MachineError
from rekernel.client import Client
from rekernel.prompts import problem_text
from rekernel.reward import Reward


class KernelAction(Action):
    reply: str
    """A model's text with a block of CUDA C++ and one of JSON, the launch plan."""


class KernelObservation(Observation):
    text: str = ""
    """The problem after a reset, else what the judge says."""
    status: str = ""


class KernelEnvironment(Environment[KernelAction, KernelObservation, State]):
    """One problem. The reward of a step is that of its candidate; None where the machine failed, which ends nothing
    and is not counted as a step."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(
        self,
        problem: str,
        reward: Optional[Reward] = None,
        client: Optional[Client] = None,
        steps: int = 8,
        **fields: Any,
    ) -> None:
        super().__init__()
        self._problem, self._reward, self._client = problem, reward or Reward(), client
        self._steps, self._fields = steps, fields
        self._state = State(episode_id=uuid.uuid4().hex)

    def _judge(self) -> Client:
        return self._client or local_client()

    def reset(self, seed: Optional[int] = None, episode_id: Optional[str] = None, **_: Any) -> KernelObservation:
        self._state = State(episode_id=episode_id or uuid.uuid4().hex)
        return KernelObservation(text=problem_text(self._judge().problem(self._problem)))

    def step(self, action: KernelAction, timeout_s: Optional[float] = None, **_: Any) -> KernelObservation:
        answer = self._judge().evaluate(
            reply=action.reply, problem=self._problem, timeout=timeout_s or 600, **self._fields
        )
        try:
            reward: Optional[float] = self._reward(answer)
        except MachineError as error:
            return KernelObservation(text=str(error), status=answer.kind)
        self._state.step_count += 1
        return KernelObservation(
            text=answer.text, status=answer.status, reward=reward, done=self._state.step_count >= self._steps
        )

    @property
    def state(self) -> State:
        return self._state
