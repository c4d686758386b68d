"""An MCP server of the judge, by the protocol's own SDK: ``rekernel-mcp``, over standard input and output.

The tools ask the service of ``REKERNEL_SERVICE``, else one that is started here.
"""

from __future__ import annotations

import json
from typing import Any, Optional

try:
    from mcp.server import MCPServer  # version 2
except ImportError:  # version 1 calls it otherwise
    from mcp.server.fastmcp import FastMCP as MCPServer  # type: ignore[no-redef,attr-defined]

from rekernel._local import local_client
from rekernel.client import Client

INSTRUCTIONS = (
    "Judges CUDA kernels. A candidate is device code and a launch plan (kernel.json). An answer whose kind is not "
    "`verdict` says that the machine failed, and nothing about the kernel."
)


def server(client: Optional[Client] = None) -> MCPServer:
    """The server with its tools: list_problems, show_problem, check, evaluate."""
    made = MCPServer("rekernel", instructions=INSTRUCTIONS)

    def judge() -> Client:
        return client or local_client()

    def asked(source: str, plan: dict[str, Any], problem: str, tier: str, text_tokens: int) -> str:
        answer = judge().evaluate(source, plan=plan, problem=problem, tier=tier, text_tokens=text_tokens)
        if not answer.is_verdict:
            return f"No verdict: {answer.kind} ({answer.code}): {answer.message}. This says nothing about the kernel."
        return answer.text

    @made.tool()
    def list_problems() -> str:
        """Ids and titles of the problems that kernels can be written for."""
        return "\n".join(f"{problem['id']}: {problem['title']}" for problem in judge().problems())

    @made.tool()
    def show_problem(problem: str) -> str:
        """A problem's definition, tensors, tolerance and the header problem.h that a kernel includes."""
        return json.dumps(judge().problem(problem), ensure_ascii=False, indent=1)

    @made.tool()
    def check(source: str, plan: dict[str, Any], problem: str, text_tokens: int = 400) -> str:
        """Reads the plan and compiles the CUDA C++; needs no GPU, and says nothing about results."""
        return asked(source, plan, problem, "compile", text_tokens)

    @made.tool()
    def evaluate(source: str, plan: dict[str, Any], problem: str, timed: bool = True, text_tokens: int = 400) -> str:
        """Judges a kernel: are its results right and, if `timed`, how fast is it beside the library?"""
        return asked(source, plan, problem, "timed" if timed else "correct", text_tokens)

    return made


def main() -> None:
    server().run("stdio")


if __name__ == "__main__":
    main()
