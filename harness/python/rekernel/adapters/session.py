"""What an agent did by tool calls, as a document of the Agent Trajectory Interchange Format (Harbor's RFC 0001, v1.7)."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from rekernel._protocol import RekernelError

VERSION = "ATIF-v1.7"


class Session:
    """A file that has each tool call, its arguments and what was answered as a step, as soon as it was answered.

    ``agent`` and ``model`` are their names, as the person who runs them says. What the agent thinks or writes between its
    calls is not seen here. A file that is there is gone on with; RekernelError if it is no such session, another
    agent's, or one that somebody records at the moment.
    """

    def __init__(self, file: Union[str, os.PathLike[str]], agent: str = "an agent", model: str = "") -> None:
        self.file = Path(file)
        self._lock = threading.Lock()
        # A file beside it, since the file itself is replaced at each step.
        try:
            self._alone = open(self.file.with_name(self.file.name + ".lock"), "w", encoding="utf-8")
        except OSError as error:
            raise RekernelError(f"{self.file}: {error}") from None
        try:
            fcntl.flock(self._alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise RekernelError(f"{self.file}: somebody records into it at the moment") from None
        described = {"name": agent, "version": "unknown", **({"model_name": model} if model else {})}
        self._document: dict[str, Any] = {
            "schema_version": VERSION,
            "session_id": self.file.stem,
            "agent": described,
            "notes": "Written by rekernel-mcp: its tool calls alone, not what the agent wrote between them.",
            "steps": [],
        }
        if self.file.exists():
            self._document = self._earlier(described)

    def close(self) -> None:
        """Others may record into the file."""
        self._alone.close()

    def _earlier(self, agent: Mapping[str, Any]) -> dict[str, Any]:
        try:
            document = json.loads(self.file.read_text(encoding="utf-8"))
            if document["schema_version"] != VERSION or not isinstance(document["steps"], list):
                raise ValueError("another format")
            other = document["agent"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RekernelError(f"{self.file}: expected a session of rekernel-mcp's in {VERSION}: {error}") from None
        if other != agent:
            raise RekernelError(f"{self.file}: a session of {other}; expected {dict(agent)}, or another file")
        return document

    def add(self, tool: str, arguments: Mapping[str, Any], text: str, answer: Optional[Mapping[str, Any]]) -> None:
        """A call and the text that the agent got; ``answer``: the service's, where there is one."""
        with self._lock:
            steps = self._document["steps"]
            call = f"call_{len(steps) + 1}"
            result: dict[str, Any] = {"source_call_id": call, "content": text}
            if answer is not None:
                result["extra"] = {"answer": dict(answer)}
            steps.append(
                {
                    "step_id": len(steps) + 1,
                    "timestamp": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                    "source": "agent",
                    "message": "",
                    "tool_calls": [{"tool_call_id": call, "function_name": tool, "arguments": dict(arguments)}],
                    "observation": {"results": [result]},
                }
            )
            self._document["final_metrics"] = {"total_steps": len(steps)}
            self._write()

    def _write(self) -> None:
        beside = self.file.with_name(self.file.name + ".new")
        with open(beside, "w", encoding="utf-8") as file:
            json.dump(self._document, file, ensure_ascii=False, indent=1)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.file)
