"""Faults at random: clients that vanish, flood and send half a body, devices that fail, a service that is killed.
Nothing accepted may be lost, no key may have two answers, no failure of the machine may be a verdict.

soak.py --seconds 1800 [--seed 7]       with the judge for tests
soak.py --seconds 480 --gpu            with the judge on all GPUs, whose processes are killed as well
"""

import argparse
import json
import os
import random
import shutil
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

from running_service import DOUBLING, DOUBLING_KERNEL, DOUBLING_PLAN, PLAN, RunningService, source

import rekernel



class MadeUp:
    """What is asked of the judge for tests, which does what the code's word says."""

    options = ("--made-up-devices", "3", "--made-up-failures", "0.002", "--tries", "4")
    judge = ("--made-up-judge", "1")
    words = [""] * 120 + ["wrong_result"] * 20 + ["compile_failed"] * 20 + ["machine_failure", "device_lost"]
    expected = {"": {"passed"}, "wrong_result": {"wrong_result"}, "compile_failed": {"compile_failed"}}
    between_deaths = [0.5, 1.0, 2.0, 4.0]  # seconds
    kills_workers = False

    @staticmethod
    def body(key, word):
        return {"problem": "softmax", "source": source(key, word), "plan": PLAN}


class Gpu:
    """Small kernels for the judge itself."""

    options = ("--gpus", "all", "--tries", "4")
    judge = ()
    words = ["timed"] * 3 + [""] * 9 + ["wrong_result"] * 3 + ["compile_failed"] * 3 + ["fault"]
    expected = {
        "": {"passed"},
        "timed": {"passed"},
        "wrong_result": {"wrong_result"},
        "compile_failed": {"compile_failed"},
        "fault": {"crashed", "out_of_bounds_write"},
    }
    between_deaths = [4.0, 8.0, 12.0, 20.0]
    kills_workers = True
    problem = {**DOUBLING, "axes": {"n": 1 << 20}}
    statement = "y[i] = 2 * x[i];"
    mistakes = {
        "wrong_result": "y[i] = 3 * x[i];",
        "compile_failed": "y[i] = 2 * x[i]",
        "fault": "y[i + (1ll << 40)] = 2 * x[i];",
    }

    @classmethod
    def body(cls, key, word):
        code = DOUBLING_KERNEL.replace(cls.statement, cls.mistakes.get(word, cls.statement))
        tier = "timed" if word == "timed" else "correct"
        return {"problem": cls.problem, "source": f"// {key}\n{code}", "plan": DOUBLING_PLAN, "tier": tier}


def descendants(process):
    """Numbers of the processes that a process started, and of theirs."""
    children = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = status.read_text()
        except OSError:
            continue  # it has ended
        children.setdefault(int(text[text.rindex(")") + 2 :].split()[1]), []).append(int(status.parent.name))
    found, left = [], [process]
    while left:
        own = children.get(left.pop(), [])
        found += own
        left += own
    return found


class Soak:
    def __init__(self, work, folder, seconds, seed):
        self.work = work
        self.folder, self.until, self.chance = folder, time.monotonic() + seconds, random.Random(seed)
        self.lock, self.accepted, self.told, self.complaints = threading.Lock(), {}, {}, []
        self.deaths = self.workers_killed = 0
        self.service = self.start()
        self.port = self.service.address.rsplit(":", 1)[1]

    def start(self, listen="127.0.0.1:0"):
        return RunningService(self.folder, self.work.options, listen, self.work.judge)

    def running(self):
        return time.monotonic() < self.until

    def draw(self, choices):
        with self.lock:
            return self.chance.choice(choices)

    def check(self, key, word, answer):
        """An answer against what was told before and what the code asked for."""
        with self.lock:
            if self.told.setdefault(key, answer.body) != answer.body:
                self.complaints.append(f"{key} has two answers: {self.told[key]} and {answer.body}")
        lost = answer.kind in ("machine_error", "quarantined")
        if lost and (answer.status or "times" in answer.body):
            self.complaints.append(f"{key}: a failure of the machine looks like a verdict: {answer.body}")
        if not lost and answer.status not in self.work.expected.get(word, ()):
            self.complaints.append(f"{key} ({word}): {answer.kind} {answer.status}: {answer.message}")

    def ask(self, name):
        client = rekernel.Client(f"127.0.0.1:{self.port}")
        number = 0
        while self.running():
            number += 1
            word = self.draw(self.work.words)
            key = f"{name} {number}"
            request = rekernel._protocol.submit(self.work.body(key, word), 5, key)
            for _ in range(self.draw([1, 1, 2])):  # some ask again with the same key
                try:
                    answer = rekernel.Answer.of(client.request(request, 20))
                except rekernel.RekernelError:
                    continue
                with self.lock:
                    if self.accepted.setdefault(key, (answer.id, word)) != (answer.id, word):
                        self.complaints.append(f"{key} names two evaluations")
                if answer.answered:
                    self.check(key, word, answer)
        client.close()

    def disturb(self):
        body = json.dumps({"problem": "softmax", "source": "x" * 3000, "plan": PLAN}).encode()
        head = b"POST /v1/evaluations?wait=60 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        while self.running():
            try:
                with socket.create_connection(("127.0.0.1", int(self.port)), 5) as connection:
                    how = self.draw(["half", "billion", "vanish", "many", "nonsense"])
                    if how == "half":
                        connection.sendall(
                            head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[: len(body) // 2]
                        )
                    elif how == "billion":
                        connection.sendall(head + b"Content-Length: 1000000000\r\n\r\n" + b"x" * 10_000)
                    elif how == "vanish":
                        connection.sendall(head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                    elif how == "many":
                        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500)
                    else:
                        connection.sendall(bytes(self.draw(range(256)) for _ in range(200)))
            except OSError:
                pass
            time.sleep(0.01)

    def kill(self):
        while self.running():
            time.sleep(self.draw(self.work.between_deaths))
            workers = descendants(self.service.process.pid) if self.work.kills_workers else []
            if workers and self.draw([True, True, False]):
                try:
                    os.kill(self.draw(workers), signal.SIGKILL)
                    self.workers_killed += 1
                except ProcessLookupError:
                    pass  # it has ended
                continue
            self.service.kill()
            self.deaths += 1
            self.service = self.start(f"127.0.0.1:{self.port}")

    def run(self):
        threads = [threading.Thread(target=self.ask, args=(f"client {i}",)) for i in range(8)]
        threads += [threading.Thread(target=self.disturb), threading.Thread(target=self.kill)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client = self.service.client()
        for key, (evaluation, word) in self.accepted.items():
            try:
                self.check(key, word, client.wait(evaluation, 300))
            except (rekernel.RekernelError, TimeoutError) as error:
                self.complaints.append(f"{key} was accepted and is lost: {error}")
        with open(f"/proc/{self.service.process.pid}/status", encoding="ascii") as status:
            memory = next(line for line in status if line.startswith("VmRSS"))
        print(
            f"{len(self.accepted)} evaluations, {self.deaths} deaths, {self.workers_killed} workers killed, "
            f"{len(self.complaints)} complaints, "
            f"{' '.join(memory.split())}"
        )
        for complaint in self.complaints[:20]:
            print(complaint)
        self.service.__exit__()
        return 1 if self.complaints or not self.accepted or not self.deaths else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--gpu", action="store_true")
    options = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="rekernel-soak.", dir=memory))
    try:
        return Soak(Gpu if options.gpu else MadeUp, folder, options.seconds, options.seed).run()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    raise SystemExit(main())
