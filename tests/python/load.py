"""How much the service takes: evaluations from many clients that wait at once, with the judge for tests.

load.py [--clients 1000] [--evaluations 100000] [--folder /tmp]
"""

import argparse
import asyncio
import http.client
import json
import tempfile
import time

from running_service import PLAN, RunningService


def memory_kib(process):
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def processor_seconds(process):
    with open(f"/proc/{process}/stat", encoding="ascii") as stat:
        return sum(int(ticks) for ticks in stat.read().split()[13:15]) / 100


async def client(address, numbers, latencies):
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    plan = json.dumps(PLAN)
    head = b"POST /v1/evaluations?wait=60 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for number in numbers:
        body = f'{{"problem": "softmax", "source": "// {number}", "plan": {plan}}}'.encode()
        begun = time.perf_counter()
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answer_head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = answer_head.split(b"content-length: ")[1].split(b"\r")[0]
        answer = await reader.readexactly(int(length))
        if b'"kind":"verdict"' not in answer:
            raise RuntimeError(f"expected a verdict, got {answer!r}")
        latencies.append(time.perf_counter() - begun)
    writer.close()


async def run(options):
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as folder,
        RunningService(folder, ("--made-up-devices", "8", "--cores", "2")) as service,
    ):
        process, latencies, begun = service.process.pid, [], time.perf_counter()

        async def watch():
            while True:
                await asyncio.sleep(10)
                print(
                    f"{time.perf_counter() - begun:.0f} s: {len(latencies)} done, {memory_kib(process)} KiB", flush=True
                )

        watching = asyncio.create_task(watch())
        clients = [
            client(service.address, range(first, options.evaluations, options.clients), latencies)
            for first in range(options.clients)
        ]
        await asyncio.gather(*clients)
        watching.cancel()
        seconds = time.perf_counter() - begun
        connection = http.client.HTTPConnection(service.address)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        figures = {line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#")}
        latencies.sort()
        scheduler = figures["rekernel_scheduler_seconds_total"]
        print(
            f"{len(latencies)} evaluations from {options.clients} clients in {seconds:.1f} s "
            f"({len(latencies) / seconds:.0f}/s), median {1e3 * latencies[len(latencies) // 2]:.1f} ms, "
            f"{memory_kib(process)} KiB, {processor_seconds(process):.1f} s of processor time, of which the scheduler "
            f"{scheduler:.2f} s, {figures['rekernel_store_transactions_total']:.0f} transactions"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--folder")
    asyncio.run(run(parser.parse_args()))
