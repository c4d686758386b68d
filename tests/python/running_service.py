"""A service for tests: the program under test with the judge that makes verdicts up, unless others are asked for."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "harness" / "python"))

import rekernel  # noqa: E402

PLAN = {"launches": [{"kernel": "k", "grid": [1], "block": [32], "args": ["y"]}]}


DOUBLING = {
    "schema": 1,
    "id": "doubling",
    "title": "y = 2x",
    "axes": {"n": 1 << 24},
    "inputs": {"x": {"dtype": "f32", "shape": ["n"], "draw": {"normal": [0, 1]}}},
    "outputs": {"y": {"dtype": "f32", "shape": ["n"]}},
    "definition": ["y[i] = 2 * x[i]"],
    "pytorch": "2 * x",
    "tolerance": "fp32",
}
"""A problem of a client's own, with a kernel."""

DOUBLING_KERNEL = """
#include "problem.h"
extern "C" __global__ void twice(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < problem::n) y[i] = 2 * x[i];
}
"""
DOUBLING_PLAN = {"launches": [{"kernel": "twice", "grid": [1 << 16], "block": [256], "args": ["x", "y"]}]}


def source(text: str = "", word: str = "") -> str:
    """Code that no other call gives; `word` is what the judge for tests shall say of it."""
    return f"// {text}\n" + (f"// made-up: {word}\n" if word else "")


def submission(text: str = "", word: str = "", **fields):
    return {"problem": "softmax", "source": source(text, word), "plan": PLAN, **fields}


class RunningService:
    def __init__(self, folder, options=(), listen="127.0.0.1:0", judge=("--made-up-judge", "0"), full_at=None):
        self.folder = Path(folder)
        self.log = self.folder / "log"
        self.clients = []

        def limit():
            # A file that may not grow any more, for a disk that is full.
            if full_at is not None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (full_at, resource.RLIM_INFINITY))

        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [
                    os.environ["REKERNEL_PROGRAM"],
                    "serve",
                    "--listen",
                    listen,
                    "--store",
                    str(self.folder / "store"),
                    *judge,
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=limit,
                restore_signals=full_at is None,
            )
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            self.process.wait()
            raise RuntimeError(f"status {self.process.returncode}: {self.log.read_text()}")
        self.address = line.removeprefix("listening on ").strip()

    def client(self, token=None):
        self.clients.append(rekernel.Client(self.address, token))
        return self.clients[-1]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        self.process.terminate()
        status = self.process.wait(30)
        self.process.stdout.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        if self.process.poll() is None:
            self.kill()


class ServiceTest(unittest.TestCase):
    def setUp(self):
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        temporary = tempfile.TemporaryDirectory(prefix="rekernel-test.", dir=memory)
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)
        self.services = []

    def serve(self, *options, **arguments):
        service = RunningService(self.folder, options, **arguments)
        self.services.append(service)
        self.addCleanup(service.__exit__)
        return service
