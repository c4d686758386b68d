"""A multi-turn loop that trains nothing: a scripted policy in GRPO's groups, and a log that gives all rewards again.

groups.py LOG [--tier correct] [--service ADDRESS]      runs it
groups.py LOG --replay                                  reproduces the log byte for byte, without a service

In each turn, every member of a group writes a candidate, hears what the judge says, and writes the next one. What a
policy draws is a function of the seed and of what it heard; so a log of the answers is enough to make everything again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import rekernel

BLOCKS = (32, 64, 128, 256, 512, 1024)


def draw(seed: int, heard: list[str]) -> str:
    """The scripted policy's reply: it doubles or halves its block, and sometimes forgets a semicolon."""
    digest = hashlib.sha256(json.dumps([seed, heard]).encode()).digest()
    chance = random.Random(digest)
    block = chance.choice(BLOCKS)
    end = "" if chance.random() < 0.2 else ";"
    code = f'extern "C" __global__ void copy(const float* x, float* y) {{ y[threadIdx.x] = x[threadIdx.x]{end} }}'
    plan = {"launches": [{"kernel": "copy", "grid": [1], "block": [block], "args": ["x", "y"]}]}
    return f"```cuda\n{code}\n```\n```json\n{json.dumps(plan)}\n```\n"


def episode(
    judge: Callable[[str], dict[str, Any]], reward: rekernel.Reward, groups: int, members: int, turns: int
) -> Iterator[dict[str, Any]]:
    """The log's lines. ``judge`` gives the answer to a reply, as the service or as the log has it."""
    for group in range(groups):
        heard: list[list[str]] = [[] for _ in range(members)]
        for turn in range(turns):
            replies = [draw(1000 * group + member, heard[member]) for member in range(members)]
            answers = [rekernel.Answer.of(judge(reply)) for reply in replies]
            rewards = [reward(answer) for answer in answers]
            advantages = rekernel.group_advantages(rewards)
            for member, answer in enumerate(answers):
                heard[member].append(answer.text)
                yield {
                    "group": group,
                    "turn": turn,
                    "member": member,
                    "reply": replies[member],
                    "answer": answer.raw,
                    "reward": None if math.isnan(rewards[member]) else rewards[member],
                    "advantage": advantages[member],
                }


def line_of(entry: dict[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("log", type=Path)
    parser.add_argument("--replay", action="store_true")
    parser.add_argument("--service")
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--tier", default="correct", choices=("correct", "timed"))
    parser.add_argument("--made-up", action="store_true", help="a rehearsal with the judge for tests")
    options = parser.parse_args()
    reward = rekernel.Reward(
        "correct" if options.tier == "correct" else "speedup", on_machine_error=math.nan, allow_made_up=options.made_up
    )
    shape = {"groups": 2, "members": 4, "turns": 3}
    if options.replay:
        recorded = options.log.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in recorded.splitlines()]
        # Members of a group are asked in order, as they stand in the log.
        answers = iter(lines)
        again = "".join(line_of(entry) for entry in episode(lambda _: next(answers)["answer"], reward, **shape))
        print("the log is reproduced" if again == recorded else "the log is NOT reproduced")
        return 0 if again == recorded else 1
    client = rekernel.Client(options.service) if options.service else rekernel.local_client()

    def judge(reply: str) -> dict[str, Any]:
        return dict(client.evaluate(reply=reply, problem=options.problem, tier=options.tier).raw)

    with options.log.open("w", encoding="utf-8") as log:
        for entry in episode(judge, reward, **shape):
            log.write(line_of(entry))
            print(entry["group"], entry["turn"], entry["member"], entry["reward"], file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
