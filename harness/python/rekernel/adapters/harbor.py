"""Harbor tasks, a folder a problem: ``rekernel task softmax --into DIR``.

The agent's box holds the problem and nothing of the judge. The verifier runs in a box of its own, to which the two
files of the answer are copied; it asks the service, by an address and a token that the verifier's environment brings.
Where there is no verdict, it writes no reward and fails, so that Harbor counts a broken machine as an error of the
trial and not as a 0.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

from rekernel._local import local_client
from rekernel._protocol import RekernelError
from rekernel.prompts import IN_FILES, problem_text

_TASK = """schema_version = "1.4"
artifacts = ["/answer/kernel.cu", "/answer/kernel.json"]

[task]
name = "rekernel/{id}"
description = {title}
keywords = ["cuda", "kernel", "performance"]

[metadata]
problem = "{id}"
group = "{group}"

[agent]
timeout_sec = {agent_timeout}

[verifier]
timeout_sec = 900
environment_mode = "separate"

[verifier.env]
REKERNEL_SERVICE = "${{REKERNEL_SERVICE}}"
REKERNEL_TOKEN = "${{REKERNEL_TOKEN:-}}"

[verifier.environment]
cpus = 1
memory_mb = 1024

[environment]
cpus = 2
memory_mb = 4096
"""

_VERIFY = '''"""Asks the service for a verdict on the files in /answer. No verdict: no reward, and status 1."""

import json
import sys
from pathlib import Path

import rekernel

logs = Path("/logs/verifier")
logs.mkdir(parents=True, exist_ok=True)
try:
    source = Path("/answer/kernel.cu").read_text()
    plan = json.loads(Path("/answer/kernel.json").read_text())
except (OSError, ValueError) as error:
    print(f"no candidate in /answer: {error}")
    rewards = {"reward": 0.0, "passed": 0}
else:
    answer = rekernel.Client().evaluate(source, plan=plan, problem="@PROBLEM@", retries=5, timeout=800)
    (logs / "answer.json").write_text(json.dumps(answer.raw, indent=1))
    print(answer.text)
    try:
        rewards = {"reward": rekernel.Reward(@REWARD@)(answer), "passed": int(answer.passed)}
    except rekernel.MachineError as error:
        sys.exit(f"no verdict: {error}")
(logs / "reward.json").write_text(json.dumps(rewards))
'''


def make_task(problem: Mapping[str, Any], into: Path, reward: str = '"speedup"', agent_timeout: int = 3600) -> Path:
    """Makes the folder ``into``/ID of a problem as Client.problem gives it. ``reward``: the arguments of Reward, as
    Python. Raises FileExistsError where the folder is there."""
    folder = into / str(problem["id"])
    fields = {"id": problem["id"], "group": problem["group"], "agent_timeout": agent_timeout}
    files = {
        "task.toml": _TASK.format(title=json.dumps(problem["title"]), **fields),
        "instruction.md": problem_text(problem, IN_FILES),
        "environment/Dockerfile": "FROM debian:12-slim\nRUN mkdir -p /answer\nWORKDIR /answer\n",
        "tests/Dockerfile": "FROM python:3.12-slim\nCOPY rekernel /opt/rekernel/rekernel\n"
        "COPY test.sh verify.py /tests/\nENV PYTHONPATH=/opt/rekernel\n",
        "tests/test.sh": "#!/bin/sh\nexec python3 /tests/verify.py\n",
        "tests/verify.py": _VERIFY.replace("@PROBLEM@", str(problem["id"])).replace("@REWARD@", reward),
    }
    folder.mkdir(parents=True)
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (folder / "tests/test.sh").chmod(0o755)
        package = Path(__file__).resolve().parents[1]
        ignored = shutil.ignore_patterns("__pycache__", "bin", "adapters")
        shutil.copytree(package, folder / "tests/rekernel", ignore=ignored)
    except BaseException:
        shutil.rmtree(folder)
        raise
    return folder


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="rekernel task", description="Harbor tasks, a folder a problem")
    parser.add_argument("problem", nargs="*", help="ids of problems, or all, as the service has them")
    parser.add_argument("--into", type=Path, required=True, help="folder for the tasks' folders")
    parser.add_argument("--reward", default='"speedup"', help="arguments of rekernel.Reward, as Python")
    parser.add_argument("--from-input", action="store_true", help="problems as JSON, a line each, on standard input")
    options = parser.parse_args(arguments)
    try:
        problems = _problems(options.problem, options.from_input)
        for problem in problems:
            if (options.into / problem["id"]).exists():
                raise FileExistsError(f"{options.into / problem['id']}: is there already")
        for problem in problems:
            print(make_task(problem, options.into, options.reward))
    except (RekernelError, OSError) as error:
        parser.exit(2, f"rekernel task: {error}\n")
    return 0


def _problems(names: Sequence[str], from_input: bool) -> list[Mapping[str, Any]]:
    """All of them, before anything is written."""
    if from_input:
        return [json.loads(line) for line in sys.stdin]
    client = local_client()
    if list(names) == ["all"]:
        names = [problem["id"] for problem in client.problems()]
    return [client.problem(name) for name in names]


if __name__ == "__main__":
    raise SystemExit(main())
