"""The client for asyncio: thousands of evaluations may wait at once."""

from __future__ import annotations

import asyncio
import ssl
import time
import uuid
from typing import Any, Iterable, Mapping, Optional

from rekernel import _protocol
from rekernel._protocol import Address, Answer, Problem, Refused, Request, Unreachable


class AsyncClient:
    """As Client, for one event loop. ``connections``: open at once."""

    def __init__(self, address: Optional[str] = None, token: Optional[str] = None, connections: int = 1000):
        self.address, self._token = _protocol.reached_by(address, token)
        self._parsed = Address.parse(self.address)
        self._places = asyncio.Semaphore(connections)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._known = False  # it answered once

    async def close(self) -> None:
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def evaluate(
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
        """As Client.evaluate."""
        until = time.monotonic() + timeout
        body = _protocol.submission(problem, source, plan, tier=tier, **fields)
        key = key or uuid.uuid4().hex
        for attempt in range(retries + 1):
            own_key = key if attempt == 0 else f"{key}.{attempt}"
            answer = await self._waited(_protocol.submit(body, _protocol.wait_s(until), own_key), until)
            if answer.is_verdict or not answer.retry or attempt == retries:
                return answer
        raise AssertionError("unreachable")

    async def wait(self, evaluation: str, timeout: float = 600) -> Answer:
        """As Client.wait."""
        until = time.monotonic() + timeout
        return await self._waited(_protocol.find(evaluation, _protocol.wait_s(until)), until)

    async def evaluate_many(self, submissions: Iterable[Mapping[str, Any]], timeout: float = 3600) -> list[Answer]:
        """As Client.evaluate_many."""
        until = time.monotonic() + timeout

        async def one(body: Mapping[str, Any]) -> Answer:
            key = str(body.get("key") or uuid.uuid4().hex)
            return await self._waited(_protocol.submit(body, _protocol.wait_s(until), key), until)

        return list(await asyncio.gather(*(one(body) for body in submissions)))

    async def problems(self) -> list[dict[str, str]]:
        return list((await self.request(_protocol.problems()))["problems"])

    async def problem(self, name: str) -> dict[str, Any]:
        return dict(await self.request(_protocol.problem(name)))

    async def request(self, request: Request, timeout: float = 60) -> Any:
        """One request, once; the decoded JSON."""
        async with self._places:
            try:
                status, headers, body = await asyncio.wait_for(self._exchange(request), timeout)
            except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
                raise Unreachable(f"{self.address}: {error or type(error).__name__}") from error
        self._known = True
        return _protocol.decoded(status, headers, body)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        at = self._parsed
        if at.unix_path:
            return await asyncio.open_unix_connection(at.unix_path)
        context = ssl.create_default_context() if at.tls else None
        return await asyncio.open_connection(at.host, at.port, ssl=context)

    async def _exchange(self, request: Request) -> tuple[int, dict[str, str], bytes]:
        reader, writer = await self._open()
        good = False
        try:
            host = "localhost" if self._parsed.unix_path else f"{self._parsed.host}:{self._parsed.port}"
            head = [f"{request.method} {request.path} HTTP/1.1", f"Host: {host}"]
            head += [f"{name}: {value}" for name, value in request.all_headers(self._token).items()]
            if request.body is not None:
                head.append(f"Content-Length: {len(request.body)}")
            writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + (request.body or b""))
            await writer.drain()
            status = int((await reader.readuntil(b"\r\n")).split(b" ", 2)[1])
            headers: dict[str, str] = {}
            while line := (await reader.readuntil(b"\r\n")).strip():
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.strip().lower()] = value.strip()
            body = await reader.readexactly(int(headers["content-length"]))
            good = headers.get("connection", "").lower() != "close"
            return status, headers, body
        except (KeyError, IndexError) as error:
            raise ValueError("no HTTP/1.1") from error
        finally:
            if good:
                self._idle.append((reader, writer))
            else:
                writer.close()

    async def _waited(self, request: Request, until: float) -> Answer:
        answer = Answer.of(await self._persistent(request, until))
        while not answer.answered:
            if time.monotonic() >= until:
                raise TimeoutError(f"evaluation {answer.id} has no answer yet")
            wait_s = _protocol.wait_s(until)
            answer = Answer.of(await self._persistent(_protocol.find(answer.id, wait_s), until))
            if not answer.answered and wait_s == 0:
                await asyncio.sleep(max(0.0, min(0.1, until - time.monotonic())))
        return answer

    async def _persistent(self, request: Request, until: float) -> Any:
        patience = _protocol.Patience(until, self._known)
        while True:
            try:
                return await self.request(request, timeout=_protocol.LONGEST_WAIT_S + 30)
            except (Refused, Unreachable) as error:
                pause = patience.pause_after(error)
            await asyncio.sleep(pause)
