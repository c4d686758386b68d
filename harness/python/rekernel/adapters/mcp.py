"""An MCP server of the judge, by the protocol's own SDK: ``rekernel-mcp``, over standard input and output.

The tools ask the service of ``REKERNEL_SERVICE``, else one that is started here. ``--record FILE`` keeps what an agent
did as a trajectory.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, Optional

try:
    from mcp.server import MCPServer  # version 2
except ImportError:  # version 1 calls it otherwise
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[no-redef,attr-defined]

from rekernel._local import local_client
from rekernel._protocol import Answer, RekernelError
from rekernel.adapters.session import Session
from rekernel.client import Client

INSTRUCTIONS = (
    "Judges CUDA kernels. A candidate is device code and a launch plan (kernel.json). An answer whose kind is not "
    "`verdict` says that the machine failed, and nothing about the kernel."
)


def text_of(answer: Answer, profiled: bool) -> str:
    """What an agent is told; ``profiled``: it asked for a profile."""
    if not answer.is_verdict:
        return f"No verdict: {answer.kind} ({answer.code}): {answer.message}. This says nothing about the kernel."
    if not profiled:
        return answer.text
    profile = answer.body.get("profile", {})
    reason = profile.get("unavailable", "none was made" if answer.passed else "the kernel did not pass")
    return f"{answer.text}\n{profile.get('text') or f'No profile: {reason}'}"


def server(client: Optional[Client] = None, session: Optional[Session] = None) -> MCPServer:
    """The server with its tools: list_problems, show_problem, check, evaluate, profile. ``session`` records calls."""
    made = MCPServer("rekernel", instructions=INSTRUCTIONS)

    def judge() -> Client:
        return client or local_client()

    def told(tool: str, text: str, answer: Optional[Answer] = None, **arguments: Any) -> str:
        if session:
            session.add(tool, arguments, text, answer.raw if answer else None)
        return text

    def asked(tool: str, tier: str, arguments: dict[str, Any], profiled: bool = False) -> str:
        given = {key: arguments[key] for key in ("source", "plan", "problem", "text_tokens")}
        if profiled:
            given["profile"] = True
        answer = judge().evaluate(tier=tier, **given)
        return told(tool, text_of(answer, profiled), answer, **arguments)

    @made.tool()
    def list_problems() -> str:
        """Ids and titles of the problems that kernels can be written for."""
        return told("list_problems", "\n".join(f"{one['id']}: {one['title']}" for one in judge().problems()))

    @made.tool()
    def show_problem(problem: str) -> str:
        """A problem's definition, tensors, tolerance and the header problem.h that a kernel includes."""
        shown = json.dumps(judge().problem(problem), ensure_ascii=False, indent=1)
        return told("show_problem", shown, problem=problem)

    @made.tool()
    def check(source: str, plan: dict[str, Any], problem: str, text_tokens: int = 400) -> str:
        """Reads the plan and compiles the CUDA C++; needs no GPU, and says nothing about results."""
        return asked("check", "compile", dict(source=source, plan=plan, problem=problem, text_tokens=text_tokens))

    @made.tool()
    def evaluate(source: str, plan: dict[str, Any], problem: str, timed: bool = True, text_tokens: int = 400) -> str:
        """Judges a kernel: are its results right and, if `timed`, how fast is it beside the library?"""
        arguments = dict(source=source, plan=plan, problem=problem, timed=timed, text_tokens=text_tokens)
        return asked("evaluate", "timed" if timed else "correct", arguments)

    @made.tool()
    def profile(source: str, plan: dict[str, Any], problem: str, text_tokens: int = 400) -> str:
        """Judges a kernel as `evaluate` does, and says what Nsight Compute measures of it once it passed: what it waits
        for and how busy memory and units are. The service must run with `--profiles`."""
        arguments = dict(source=source, plan=plan, problem=problem, text_tokens=text_tokens)
        return asked("profile", "timed", arguments, profiled=True)

    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Rekernel's judge as an MCP server, over standard input and output.")
    parser.add_argument("--record", metavar="FILE", help="the calls and answers as an agent's trajectory (ATIF)")
    parser.add_argument("--agent", default="an agent", help="its name in the trajectory")
    parser.add_argument("--model", default="", help="the model's name in the trajectory")
    options = parser.parse_args()
    try:
        session = Session(options.record, options.agent, options.model) if options.record else None
    except RekernelError as error:
        parser.error(str(error))
    server(session=session).run("stdio")


if __name__ == "__main__":
    main()
