"""Rewards made of answers, and one function that TRL, verl and OpenRLHF call as it is."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Literal, Optional, Sequence, Union

from rekernel._protocol import Answer, MachineError
from rekernel.client import Client

Shape = Literal["speedup", "log_speedup", "speed_of_light", "sol_score", "correct"]


@dataclass(frozen=True)
class Reward:
    """The reward of an answer:

    ========================================  =======================================================================
    answer                                    reward
    ========================================  =======================================================================
    no verdict (the machine failed, …)        none: MachineError is raised, or ``on_machine_error`` is given
    ``invalid_plan``, ``compile_failed``      ``not_compiled``
    any other status but ``passed``           ``wrong``
    a badge of ``needs`` is missing           ``ungated``
    ``passed``                                ``correct`` + ``weight`` · min(``cap``, f)
    ========================================  =======================================================================

    With t the kernel's median, r the headline reference's and s the speed of light, ``shape`` says what f is:

    * ``speedup``: r / t, the speedup over the library, and 0 below ``least``. With ``correct=0.3, weight=1`` this is
      the reward of Kevin (C. Baronio et al., "Kevin: Multi-Turn RL for Generating CUDA Kernels", 2025,
      arXiv:2507.11948: S = 0.3·correct + T_baseline / T_kernel·correct), which kernelbench-tinker follows with
      r / t − 1 above 1, at most 10. With ``cap`` and ``least`` it is KernelGYM's ``calculate_reward_speedup``:
      w_c·correct + w_p·speedup, cut above, 0 below a lower bound.
    * ``log_speedup``: log2(r / t), from −``cap`` to ``cap``: twice as fast counts as much as half as fast.
    * ``speed_of_light``: s / t, from 0 to 1.
    * ``sol_score``: 1 / (1 + (t − s) / (r − s)), SOL-ExecBench's score: 1/2 at the reference's time, 1 at the speed of
      light; its baseline is an optimised PyTorch, ours the library. Where r ≤ s: 1 if t ≤ s, else 0, as there.
    * ``correct``: 0; right results are all that counts (tiers ``correct`` and ``timed``).

    Those return 0 where a machine failed or, KernelGYM, a penalty; this one does not: a broken machine is no wrong
    kernel. A shape that needs times, or badges that are needed, raise ValueError for answers without them, since a 0
    would lie.
    """

    shape: Shape = "speedup"
    correct: float = 0.3
    weight: float = 1.0
    cap: float = 10.0
    least: float = 0.0
    needs: tuple[str, ...] = ()
    ungated: float = 0.0
    wrong: float = 0.0
    not_compiled: float = 0.0
    on_machine_error: Optional[float] = None
    """None raises; ``math.nan`` or a number for a trainer that masks it out."""
    allow_made_up: bool = False
    """Rewards of the judge for tests; else they raise ValueError."""

    def __call__(self, answer: Answer) -> float:
        if not answer.is_verdict:
            if self.on_machine_error is None:
                raise MachineError(answer)
            return self.on_machine_error
        if answer.made_up and not self.allow_made_up:
            raise ValueError("a verdict of the judge for tests is no reward (allow_made_up)")
        if not answer.compiles:
            return self.not_compiled
        if not answer.passed:
            if answer.status == "compiles":
                raise ValueError("tier compile says nothing of results: expected tier correct or timed")
            return self.wrong
        if self.needs and answer.body.get("tier") != "timed":
            raise ValueError("badges come with tier timed alone")
        if any(badge not in answer.badges for badge in self.needs):
            return self.ungated
        return self.correct + self.weight * self._shaped(answer)

    def _shaped(self, answer: Answer) -> float:
        if self.shape == "correct":
            return 0.0
        if self.shape == "speed_of_light":
            return min(self.cap, _needed(answer.share_of_speed_of_light, "a speed of light"))
        if self.shape == "sol_score":
            return min(self.cap, _sol_score(answer))
        speedup = _needed(answer.speedup, "a reference's time")
        if self.shape == "log_speedup":
            return max(-self.cap, min(self.cap, math.log2(speedup)))
        if self.shape == "speedup":
            return min(self.cap, speedup) if speedup >= self.least else 0.0
        raise ValueError(f"shape {self.shape}: expected speedup, log_speedup, speed_of_light, sol_score or correct")


def _needed(value: Optional[float], what: str) -> float:
    if value is None:
        raise ValueError(
            f"the answer has not {what}: expected tier timed, and a problem and a device that have one (with "
            "`rekernel serve --pytorch`, each problem of the project's has a reference)"
        )
    return value


def _sol_score(answer: Answer) -> float:
    kernel = float(_needed(answer.median_ns, "a time"))
    reference = float(_needed(answer.reference_ns, "a reference's time"))
    least = _needed(answer.share_of_speed_of_light, "a speed of light") * kernel
    if reference <= least:
        return 1.0 if kernel <= least else 0.0
    return 1.0 / (1.0 + (kernel - least) / (reference - least))


def group_advantages(rewards: Sequence[float], scale: bool = True) -> list[float]:
    """Advantages within one group, as GRPO has them (Z. Shao et al., "DeepSeekMath", 2024, arXiv:2402.03300):
    (reward − mean) / standard deviation; without ``scale`` the division is left out. Those that are NaN, of machines
    that failed, count in neither and get 0, which moves nothing."""
    known = [reward for reward in rewards if not math.isnan(reward)]
    if not known:
        return [0.0] * len(rewards)
    mean = math.fsum(known) / len(known)
    deviation = math.sqrt(math.fsum((reward - mean) ** 2 for reward in known) / len(known))
    divisor = deviation if scale and deviation > 0 else 1.0
    return [0.0 if math.isnan(reward) else (reward - mean) / divisor for reward in rewards]


def reward_function(
    reward: Optional[Reward] = None,
    *,
    problem: Optional[str] = None,
    client: Optional[Client] = None,
    threads: int = 64,
    missing: float = math.nan,
    **fields: Any,
) -> Callable[..., Any]:
    """One function for several trainers; which one calls is seen by what it says:

    * TRL (``GRPOTrainer(reward_funcs=…)``): ``f(prompts=…, completions=…, problem=[…], **columns)`` → a list. A
      completion is a text or a list of messages. None stands for a missing reward, which TRL leaves out.
    * verl (``custom_reward_function``): ``f(data_source, solution_str, ground_truth, extra_info)`` → a number. The
      problem is ``extra_info["problem"]``, else ``ground_truth``.
    * OpenRLHF (``--remote_rm_url FILE``): ``f(queries, prompts, labels)`` → a dict. The problems are ``labels``;
      the completion is what follows the prompt.

    ``problem``: of all, where the trainer says none. ``missing``: what stands for a reward where the machine failed;
    TRL gets None. ``fields``: as for Client.evaluate (``tier``, ``samples``, …).
    """
    shape = reward or Reward()

    def rewards_of(completions: Sequence[str], problems: Sequence[str]) -> list[Optional[float]]:
        from rekernel._local import local_client

        judge = client or local_client()

        def one(pair: tuple[str, str]) -> Optional[float]:
            completion, name = pair
            try:
                return shape(judge.evaluate(reply=completion, problem=name, **fields))
            except MachineError:
                return None

        with ThreadPoolExecutor(max(1, min(threads, len(completions)))) as pool:
            return list(pool.map(one, zip(completions, problems)))

    def named(names: Any, count: int) -> list[str]:
        if isinstance(names, str):
            return [names] * count
        if names is not None and len(names) == count and all(names):
            return [str(name) for name in names]
        if problem is None:
            raise ValueError("which problem? Expected a column `problem`, or reward_function(problem=…)")
        return [problem] * count

    def number(value: Optional[float]) -> float:
        return missing if value is None else value

    def trl(completions: Sequence[Any], **columns: Any) -> list[Optional[float]]:
        texts = [_text_of(completion) for completion in completions]
        return rewards_of(texts, named(columns.get("problem"), len(texts)))

    def verl(solution: str, ground_truth: Any, extra_info: Any) -> float:
        name = (extra_info or {}).get("problem") or (ground_truth if isinstance(ground_truth, str) else None)
        return number(rewards_of([solution], named(name, 1))[0])

    def openrlhf(queries: Sequence[str], prompts: Sequence[str], labels: Any) -> dict[str, Any]:
        texts = [query.removeprefix(prompt) for query, prompt in zip(queries, prompts)]
        values: Any = [number(value) for value in rewards_of(texts, named(labels, len(texts)))]
        torch = sys.modules.get("torch")  # whoever runs OpenRLHF has it loaded, and wants tensors
        if torch is not None:
            values = torch.tensor(values)
        return {"rewards": values, "scores": values, "extra_logs": {}}

    def rekernel_reward(
        *positional: Any, **named_arguments: Any
    ) -> Union[float, list[Optional[float]], dict[str, Any]]:
        if "completions" in named_arguments:
            return trl(**named_arguments)
        if "solution_str" in named_arguments:
            return verl(
                named_arguments["solution_str"], named_arguments.get("ground_truth"), named_arguments.get("extra_info")
            )
        if len(positional) >= 2 and isinstance(positional[1], str):
            return verl(
                positional[1],
                positional[2] if len(positional) > 2 else None,
                positional[3] if len(positional) > 3 else None,
            )
        queries = named_arguments.get("queries", positional[0] if positional else None)
        prompts = named_arguments.get("prompts", positional[1] if len(positional) > 1 else None)
        if queries is None or prompts is None:
            raise TypeError("expected the arguments of TRL, verl or OpenRLHF")
        return openrlhf(queries, prompts, named_arguments.get("labels", positional[2] if len(positional) > 2 else None))

    return rekernel_reward


def _text_of(completion: Any) -> str:
    if isinstance(completion, str):
        return completion
    return str(completion[-1]["content"])
