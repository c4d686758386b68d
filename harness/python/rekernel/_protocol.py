"""Requests and answers of the service, as openapi.json describes them, and what both clients decide alike. Sends nothing."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Sequence, Union
from urllib.parse import quote, urlsplit

LONGEST_WAIT_S = 60
"""Seconds that one request may wait for an answer; a client asks again until its own time is over."""

Problem = Union[str, Mapping[str, Any]]  # its id, or the content of a problem file


class RekernelError(Exception):
    """Whatever this package raises."""


class Unreachable(RekernelError):
    """The service cannot be reached, or spoke no HTTP."""


class Refused(RekernelError):
    """The service refused a request.

    Attributes: ``status`` (HTTP's), ``code`` (one word), ``retry_after`` (seconds, or None).
    """

    def __init__(self, status: int, code: str, detail: str, retry_after: Optional[float] = None):
        super().__init__(f"{code} ({status}): {detail}")
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after = retry_after


FIRST_CONTACT_S = 30.0  # a service that never answered may still be starting; an address may be wrong


class Patience:
    """How long a client waits before it sends a request again that was not taken. ``known``: it had an answer before."""

    def __init__(self, until: float, known: bool):
        self._until = until
        self._contact = until if known else min(until, time.monotonic() + FIRST_CONTACT_S)
        self._pause = 0.1

    def pause_after(self, error: RekernelError) -> float:
        """Seconds. Raises ``error`` where asking again does not help, or would come after the end (monotonic time)."""
        if isinstance(error, Refused):
            if error.status not in (429, 503):
                raise error
            self._pause = error.retry_after or self._pause
            self._contact = self._until
        else:
            self._pause = min(2 * self._pause, 5.0)
        if time.monotonic() + self._pause > self._contact:
            raise error
        return self._pause


def wait_s(until: float) -> int:
    """How long one request of a client that waits until then (monotonic time) may wait: whole seconds."""
    return max(0, min(LONGEST_WAIT_S, int(until - time.monotonic())))


def reached_by(address: Optional[str], token: Optional[str]) -> tuple[str, Optional[str]]:
    """Address and token: what was given, else what the environment says, else this machine's service without one."""
    return (address or os.environ.get("REKERNEL_SERVICE") or "http://127.0.0.1:8420",
            token or os.environ.get("REKERNEL_TOKEN"))


class MachineError(RekernelError):
    """There is no verdict: the machine failed, the deadline passed, or the evaluation was cancelled or quarantined.

    Raised where a verdict is asked for. It says nothing of the candidate, and must not become a reward of 0.
    ``answer`` is the Answer, ``retry`` whether asking again later may help.
    """

    def __init__(self, answer: "Answer"):
        super().__init__(f"{answer.kind} ({answer.code}): {answer.message}")
        self.answer = answer
        self.retry = answer.retry


@dataclass(frozen=True)
class Answer:
    """What the service says of one evaluation. ``raw`` is the whole object, as openapi.json describes it."""

    raw: Mapping[str, Any] = field(repr=False)
    id: str = ""
    state: str = ""
    kind: str = ""
    """``verdict``, ``machine_error``, ``quarantined``, ``deadline_passed``, ``cancelled``; empty before the answer."""

    @staticmethod
    def of(raw: Mapping[str, Any]) -> "Answer":
        answer = raw.get("answer") or {}
        return Answer(raw=raw, id=raw["id"], state=raw["state"], kind=answer.get("kind", ""))

    @property
    def body(self) -> Mapping[str, Any]:
        """The verdict, or what stands in its place; empty before the answer."""
        return self.raw.get("answer") or {}

    @property
    def answered(self) -> bool:
        return self.state == "answered"

    @property
    def is_verdict(self) -> bool:
        return self.kind == "verdict"

    @property
    def made_up(self) -> bool:
        """By the judge for tests, which looks at nothing."""
        return bool(self.body.get("judged_by", {}).get("made_up"))

    def verdict(self) -> Mapping[str, Any]:
        """The verdict; raises MachineError where there is none."""
        if not self.is_verdict:
            raise MachineError(self)
        return self.body

    @property
    def status(self) -> str:
        """Of a verdict: ``passed``, ``compiles`` (tier ``compile``), ``wrong_result``, …; else empty."""
        return self.body.get("status", "") if self.is_verdict else ""

    @property
    def passed(self) -> bool:
        """Right results; of tier ``timed``, with a time that holds."""
        return self.status == "passed"

    @property
    def compiles(self) -> bool:
        """Whether there is a verdict and neither plan nor compiler was the reason for it."""
        return self.is_verdict and self.status not in ("invalid_plan", "compile_failed")

    @property
    def code(self) -> str:
        """One word for programs: the status of a verdict, or why there is none."""
        return self.status or self.body.get("code", "")

    @property
    def message(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def retry(self) -> bool:
        return bool(self.body.get("retry"))

    @property
    def text(self) -> str:
        """For a model, within the budget that was asked for."""
        return self.body.get("text", "") or (f"{self.code}: {self.message}" if self.kind else "")

    @property
    def badges(self) -> tuple[str, ...]:
        return tuple(self.body.get("badges", ()))

    @property
    def median_ns(self) -> Optional[int]:
        median = self.body.get("times", {}).get("median_ns")
        return None if median is None else int(median)

    @property
    def speedup(self) -> Optional[float]:
        """Headline reference's time ÷ kernel's; None without times."""
        for reference in self.body.get("times", {}).get("references", ()):
            if "percent" in reference:
                return float(reference["percent"]["value"]) / 100
        return None

    @property
    def reference_ns(self) -> Optional[int]:
        """The headline reference's median."""
        for reference in self.body.get("times", {}).get("references", ()):
            if "median_ns" in reference:
                return int(reference["median_ns"])
        return None

    @property
    def share_of_speed_of_light(self) -> Optional[float]:
        """Least possible time ÷ kernel's, from 0 to 1; None without times or without a bound."""
        percent = self.body.get("times", {}).get("percent_of_speed_of_light")
        return None if percent is None else float(percent) / 100


@dataclass(frozen=True)
class Address:
    """Where a service listens: ``http://HOST:PORT``, ``HOST:PORT`` or ``unix:PATH``."""

    host: str = ""
    port: int = 0
    unix_path: str = ""
    tls: bool = False

    @staticmethod
    def parse(text: str) -> "Address":
        if text.startswith("unix:"):
            return Address(unix_path=text[len("unix:") :])
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{text}: expected http://HOST:PORT, https://HOST or unix:PATH")
        tls = parts.scheme == "https"
        return Address(host=parts.hostname, port=parts.port or (443 if tls else 80), tls=tls)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: Optional[bytes] = None
    headers: tuple[tuple[str, str], ...] = ()

    def all_headers(self, token: Optional[str]) -> dict[str, str]:
        headers = dict(self.headers)
        headers["Accept"] = "application/json"
        if self.body is not None:
            headers["Content-Type"] = "application/json"
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers


def submission(
    problem: Problem, source: Optional[str] = None, plan: Optional[Mapping[str, Any]] = None, **fields: Any
) -> dict[str, Any]:
    """The body of a submission; ``fields`` as openapi.json's Submission has them, those that are None left out."""
    body: dict[str, Any] = {"problem": problem if isinstance(problem, str) else dict(problem)}
    if source is not None:
        body["source"] = source
    if plan is not None:
        body["plan"] = dict(plan)
    body.update({name: value for name, value in fields.items() if value is not None})
    return body


def submit(body: Mapping[str, Any], wait_s: int, key: str) -> Request:
    return Request(
        "POST",
        f"/v1/evaluations?wait={wait_s}",
        json.dumps(body).encode(),
        (("Idempotency-Key", key),),
    )


def submit_batch(bodies: Sequence[Mapping[str, Any]], wait_s: int) -> Request:
    return Request("POST", f"/v1/batches?wait={wait_s}", json.dumps({"evaluations": list(bodies)}).encode())


def find(evaluation: str, wait_s: int) -> Request:
    return Request("GET", f"/v1/evaluations/{quote(evaluation, safe='')}?wait={wait_s}")


def find_batch(batch: str, wait_s: int) -> Request:
    return Request("GET", f"/v1/batches/{quote(batch, safe='')}?wait={wait_s}")


def cancel(evaluation: str) -> Request:
    return Request("DELETE", f"/v1/evaluations/{quote(evaluation, safe='')}")


def problems() -> Request:
    return Request("GET", "/v1/problems")


def problem(name: str) -> Request:
    return Request("GET", f"/v1/problems/{quote(name, safe='')}")


def service() -> Request:
    return Request("GET", "/v1/service")


def decoded(status: int, headers: Mapping[str, str], body: bytes) -> Any:
    """The JSON of a response; raises Refused for a refusal, Unreachable for what is no response of the service."""
    try:
        value = json.loads(body)
    except ValueError as error:
        raise Unreachable(f"status {status} with a body that is no JSON: {body[:200]!r}") from error
    if status in (200, 202):
        return value
    after = headers.get("retry-after")
    raise Refused(
        status,
        str(value.get("code", "unknown")),
        str(value.get("detail", "")),
        float(after) if after and after.isdigit() else None,
    )
