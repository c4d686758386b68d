"""A service on this machine, started where none runs."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, Mapping, Optional, Sequence

from rekernel._protocol import Answer, Problem, RekernelError
from rekernel.client import Client

_lock = threading.Lock()
_client: Optional[Client] = None


def program() -> str:
    """The program ``rekernel``: the environment's ``REKERNEL_PROGRAM``, else the wheel's, else the checkout's build,
    else what the shell finds. Raises RekernelError where there is none."""
    named = os.environ.get("REKERNEL_PROGRAM")
    here = Path(__file__).resolve().parent
    candidates = [named, here / "bin" / "rekernel", here.parents[2] / "build" / "rekernel", shutil.which("rekernel")]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return str(candidate)
    raise RekernelError("no program rekernel: build it with ./run, or name it in REKERNEL_PROGRAM")


def run_program() -> None:
    """The command ``rekernel`` of a wheel that brings the program: becomes it."""
    named = program()
    os.execv(named, [named, *sys.argv[1:]])


def _project() -> Optional[str]:
    """The folder in which a service of the wheel's program finds its problems: none where the working directory is in a
    project of its own, or the wheel brings none."""
    here = Path.cwd()
    if any((folder / "generated").is_dir() and (folder / "results").is_dir() for folder in (here, *here.parents)):
        return None
    brought = Path(__file__).resolve().parent / "project"
    return str(brought) if brought.is_dir() else None


class Service:
    """A service that this process started. ``address``; ``stop()``; a context manager."""

    def __init__(self, process: "subprocess.Popen[str]", address: str):
        self.process = process
        self.address = address

    def stop(self, timeout: float = 60) -> None:
        """Lets what runs come to its end; the rest stays in the store."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_service(
    options: Sequence[str] = (), listen: str = "127.0.0.1:0", log: Optional[os.PathLike[str]] = None
) -> Service:
    """Starts ``rekernel serve`` with these options and waits until it listens. Raises RekernelError, with what it said,
    where it does not start. ``log``: the file that its log is appended to. Paths in the options are absolute: outside of
    a project, the service of a wheel's program works in the wheel's folder."""
    command = [os.path.abspath(program()), "serve", "--listen", listen, *options]
    with open(log, "ab") if log else open(os.devnull, "wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors if log else subprocess.PIPE,
            text=True,
            cwd=_project(),
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        said = process.stderr.read() if process.stderr else ""
        process.wait()
        raise RekernelError(f"{' '.join(command)} ended with status {process.returncode}: {said.strip()}")
    if process.stderr is not None:
        # Nobody reads it any more, and it must not fill up.
        threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
    return Service(process, line.removeprefix("listening on ").strip())


def _drain(stream: IO[str]) -> None:
    while stream.read(1 << 16):
        pass


def local_client() -> Client:
    """The client of the environment's ``REKERNEL_SERVICE``, else of a service at the usual place, else of one that this
    process starts, once, and stops at its end. Of several processes, the first starts it and the others use it: where
    they may outlive the first, start one by hand. ``REKERNEL_STORE`` names another store, ``REKERNEL_SERVE_OPTIONS``
    holds further options."""
    global _client
    with _lock:
        if _client is None:
            _client = _connected()
        return _client


def _connected() -> Client:
    if os.environ.get("REKERNEL_SERVICE"):
        return Client()
    usual = Client()
    try:
        usual.service()
        return usual
    except RekernelError:
        pass
    store = Path(os.environ.get("REKERNEL_STORE") or _default_store())
    options = os.environ.get("REKERNEL_SERVE_OPTIONS", "").split()
    try:
        service = start_service(["--store", str(store.absolute()), *options])
    except RekernelError as error:
        if "another service uses this store" not in str(error):
            raise
        return Client(_address_in(store))
    atexit.register(service.stop)
    return Client(service.address)


def _default_store() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local/state") / "rekernel" / "service"


def _address_in(store: Path) -> str:
    """Where the service of a store listens; it may have begun a moment ago."""
    until = time.monotonic() + 30
    while True:
        try:
            address = (store / "address").read_text(encoding="utf-8").strip()
            Client(address).service()
            return address
        except (OSError, RekernelError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def evaluate(
    source: Optional[str] = None, *, problem: Problem, plan: Optional[Mapping[str, Any]] = None, **fields: Any
) -> Answer:
    """Judges one candidate, on the service that is there or on one that is started: see Client.evaluate."""
    return local_client().evaluate(source, problem=problem, plan=plan, **fields)
