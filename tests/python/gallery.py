"""The gallery of cheats through a service with GPUs, one candidate after the other on judges that stay.

gallery.py [--gpus all] [--log FILE]

What CTest judges one by one (GpuAdversarial) is judged here as the service does it, in a random order. Left out is what
needs no GPU, and what hangs until a deadline of its own, which a service does not know.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from running_service import ROOT, RunningService
from throughput import candidate


def fixtures():
    """(name, what is expected, body)"""
    for folder in sorted((ROOT / "tests/adversarial").iterdir()):
        if not (folder / "expected.json").exists():
            continue
        expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        is_early = expected["status"] in ("invalid_plan", "compile_failed") or "compile_deadline_s" in expected
        if is_early or "deadline_s" in expected or not (folder / "kernel.cu").exists():
            continue
        body = candidate(folder)
        yield folder.name, expected, {"problem": body["plan"]["problem"], **body}


def complaints(answer, expected):
    """What the verdict should not be."""
    status = answer.status
    allowed = [expected["status"], *expected.get("or", [])]
    if not answer.is_verdict:
        return [f"{answer.kind}: {answer.message}"]
    if status not in allowed:
        return [f"{status} instead of {' or '.join(allowed)}: {answer.body.get('message', '')}"]
    if status != "passed":
        return []
    found = [f"has the badge {badge}" for badge in expected.get("without_badges", []) if badge in answer.body["badges"]]
    times = answer.body["times"]
    if times["median_ns"] < expected.get("no_faster_than_ns", 0):
        found.append(f"{times['median_ns']} ns, at least {expected['no_faster_than_ns']} expected")
    percents = [one["percent"]["value"] for one in times["references"] if "percent" in one]
    if "no_more_than_percent" in expected and percents[0] > expected["no_more_than_percent"]:
        found.append(f"{percents[0]}% of the reference, at most {expected['no_more_than_percent']} expected")
    if float(answer.body["errors"]["share_of_tolerance"]) < expected.get("worst_error_at_least", 0):
        found.append(f"an error of {answer.body['errors']['share_of_tolerance']} of what is allowed: "
                     f"at least {expected['worst_error_at_least']} expected")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", default="all")
    parser.add_argument("--log", help="a line of JSON for each answer")
    options = parser.parse_args()
    cheats = list(fixtures())
    random.shuffle(cheats)
    wrong = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        RunningService(folder, ("--gpus", options.gpus), judge=()) as service,
        open(options.log or os.devnull, "w", encoding="utf-8") as log,
        ThreadPoolExecutor(12) as clients,
    ):
        client = service.client()
        answers = clients.map(lambda cheat: client.evaluate(tier="timed", other_sizes=False, **cheat[2]), cheats)
        for (name, expected, _), answer in zip(cheats, answers):
            log.write(json.dumps({"cheat": name, "answer": answer.body}) + "\n")
            for complaint in complaints(answer, expected):
                wrong += 1
                print(f"{name}: {complaint}")
    print(f"{len(cheats)} cheats judged, {wrong} complaints")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
