"""The client for programs with threads."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import uuid
from typing import Any, Iterable, Mapping, Optional

from rekernel import _protocol
from rekernel._protocol import Address, Answer, MachineError, Problem, Refused, Request, Unreachable


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """A service, for any number of threads.

    ``address``: ``http://HOST:PORT``, ``https://HOST`` or ``unix:PATH``; by default the environment's
    ``REKERNEL_SERVICE``, else ``http://127.0.0.1:8420``. ``token``: by default ``REKERNEL_TOKEN``.

    Requests are repeated while the service is full, restarts or cannot be reached, with one key each, so that nothing
    is judged twice. A service that has never answered is given half a minute.
    """

    def __init__(self, address: Optional[str] = None, token: Optional[str] = None):
        self.address, self._token = _protocol.reached_by(address, token)
        self._parsed = Address.parse(self.address)
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()
        self._known = False  # it answered once

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def evaluate(
        self,
        source: Optional[str] = None,
        *,
        problem: Problem,
        plan: Optional[Mapping[str, Any]] = None,
        tier: str = "timed",
        timeout: float = 600,
        key: Optional[str] = None,
        retries: int = 2,
        **fields: Any,
    ) -> Answer:
        """Judges one candidate and waits for its answer.

        ``source`` and ``plan`` (kernel.json), or ``reply="…"``, a model's whole text. ``tier``: ``compile``,
        ``correct`` or ``timed``. ``problem``: an id, or a problem file's content. Further fields as openapi.json's
        Submission has them: ``text_tokens``, ``samples``, ``profile``, ``priority``, ``fresh``, ….

        Returns an Answer, whose ``verdict()`` raises MachineError if there is none. Where the machine failed and asking
        again may help, it is asked again, ``retries`` times. Raises TimeoutError after ``timeout`` seconds, Refused
        where the request is wrong, Unreachable where there is no service.
        """
        until = time.monotonic() + timeout
        body = _protocol.submission(problem, source, plan, tier=tier, **fields)
        key = key or uuid.uuid4().hex
        for attempt in range(retries + 1):
            own_key = key if attempt == 0 else f"{key}.{attempt}"
            answer = self._waited(_protocol.submit(body, _protocol.wait_s(until), own_key), until)
            if answer.is_verdict or not answer.retry or attempt == retries:
                return answer
        raise AssertionError("unreachable")

    def submit(
        self,
        source: Optional[str] = None,
        *,
        problem: Problem,
        plan: Optional[Mapping[str, Any]] = None,
        key: Optional[str] = None,
        timeout: float = 60,
        **fields: Any,
    ) -> Answer:
        """Asks and does not wait: see ``wait``."""
        body = _protocol.submission(problem, source, plan, **fields)
        request = _protocol.submit(body, 0, key or uuid.uuid4().hex)
        return Answer.of(self._persistent(request, time.monotonic() + timeout))

    def wait(self, evaluation: str, timeout: float = 600) -> Answer:
        """The answer of an evaluation; TimeoutError if it has none by then."""
        until = time.monotonic() + timeout
        return self._waited(_protocol.find(evaluation, _protocol.wait_s(until)), until)

    def evaluate_many(self, submissions: Iterable[Mapping[str, Any]], timeout: float = 3600) -> list[Answer]:
        """Judges many candidates, in batches, and gives their answers in the same order.

        ``submissions``: bodies as openapi.json's Submission has them.
        """
        until = time.monotonic() + timeout
        bodies = [dict(body, key=body.get("key") or uuid.uuid4().hex) for body in submissions]
        if not bodies:
            return []
        most = int(self.service()["most_in_batch"])
        ids: list[str] = []
        for begin in range(0, len(bodies), most):
            batch = self._persistent(_protocol.submit_batch(bodies[begin : begin + most], 0), until)
            ids.extend(one["id"] for one in batch["evaluations"])
        return [self.wait(one, max(0.0, until - time.monotonic())) for one in ids]

    def cancel(self, evaluation: str) -> Answer:
        return Answer.of(self.request(_protocol.cancel(evaluation)))

    def problems(self) -> list[dict[str, str]]:
        """Ids, titles and groups."""
        return list(self.request(_protocol.problems())["problems"])

    def problem(self, name: str) -> dict[str, Any]:
        """Definition, tensors, tolerance and ``problem.h`` of one problem."""
        return dict(self.request(_protocol.problem(name)))

    def service(self) -> dict[str, Any]:
        """Version, judge's digest, devices and limits."""
        return dict(self.request(_protocol.service()))

    def request(self, request: Request, timeout: float = 60) -> Any:
        """One request, once; the decoded JSON."""
        connection = self._take(timeout)
        try:
            connection.request(
                request.method, request.path, body=request.body, headers=request.all_headers(self._token)
            )
            response = connection.getresponse()
            body = response.read()
            headers = {name.lower(): value for name, value in response.getheaders()}
            self._known = True
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise Unreachable(f"{self.address}: {error or type(error).__name__}") from error
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        return _protocol.decoded(response.status, headers, body)

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        # One that the service closed meanwhile is readable.
        if connection is not None and connection.sock is not None and _has_ended(connection.sock):
            connection.close()
            connection = None
        if connection is None:
            connection = self._connection(timeout)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        at = self._parsed
        if at.unix_path:
            return _UnixConnection(at.unix_path, timeout)
        if at.tls:
            return http.client.HTTPSConnection(at.host, at.port, timeout=timeout, context=ssl.create_default_context())
        return http.client.HTTPConnection(at.host, at.port, timeout=timeout)

    def _waited(self, request: Request, until: float) -> Answer:
        answer = Answer.of(self._persistent(request, until))
        while not answer.answered:
            if time.monotonic() >= until:
                raise TimeoutError(f"evaluation {answer.id} has no answer yet")
            answer = Answer.of(self._persistent(_protocol.find(answer.id, _protocol.wait_s(until)), until))
            if not answer.answered and _protocol.wait_s(until) == 0:
                time.sleep(max(0.0, min(0.1, until - time.monotonic())))
        return answer

    def _persistent(self, request: Request, until: float) -> Any:
        """The same request until the service takes it; at least once."""
        patience = _protocol.Patience(until, self._known)
        while True:
            try:
                return self.request(request, timeout=_protocol.LONGEST_WAIT_S + 30)
            except (Refused, Unreachable) as error:
                pause = patience.pause_after(error)
            time.sleep(pause)


def _has_ended(sock: socket.socket) -> bool:
    import select

    try:
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


__all__ = ["Client", "MachineError"]
