"""The protocol, the limits, and what is left after a death: through the client and by hand."""

import http.client
import importlib.util
import json
import os
import resource
import shutil
import socket
import subprocess
import threading
import time
import unittest

from running_service import DOUBLING, DOUBLING_KERNEL, DOUBLING_PLAN, PLAN, ROOT, ServiceTest, source, submission

import rekernel


def raw(address, text, timeout=10.0):
    """What comes back on a connection of one's own, to its end."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout) as connection:
        connection.sendall(text)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    return received


class Protocol(ServiceTest):
    def test_a_verdict_says_who_made_it(self):
        client = self.serve().client()
        answer = client.evaluate(source(), plan=PLAN, problem="softmax")
        self.assertTrue(answer.passed)
        self.assertTrue(answer.made_up)
        self.assertGreater(answer.median_ns, 0)
        self.assertEqual(answer.body["judged_by"]["judge"], "made-up")

    def test_a_key_names_one_evaluation(self):
        client = self.serve().client()
        first = client.evaluate(source("1"), plan=PLAN, problem="softmax", key="k")
        again = client.evaluate(source("1"), plan=PLAN, problem="softmax", key="k")
        self.assertEqual(first.id, again.id)
        with self.assertRaises(rekernel.Refused) as refused:
            client.evaluate(source("2"), plan=PLAN, problem="softmax", key="k")
        self.assertEqual((refused.exception.status, refused.exception.code), (422, "key_reused"))

    def test_an_answer_is_kept_unless_a_fresh_one_is_wanted(self):
        client = self.serve().client()
        self.assertFalse(client.evaluate(source(), plan=PLAN, problem="softmax").raw["kept"])
        self.assertTrue(client.evaluate(source(), plan=PLAN, problem="softmax").raw["kept"])
        self.assertFalse(client.evaluate(source(), plan=PLAN, problem="softmax", fresh=True).raw["kept"])

    def test_waiting_ends_with_the_answer_or_with_the_time(self):
        client = self.serve(judge=("--made-up-judge", "700")).client()
        begun = time.monotonic()
        evaluation = client.submit(source(), plan=PLAN, problem="softmax")
        self.assertFalse(evaluation.answered)
        with self.assertRaises(TimeoutError):
            client.wait(evaluation.id, 0.2)
        self.assertTrue(client.wait(evaluation.id, 10).passed)
        self.assertLess(time.monotonic() - begun, 3)

    def test_events_tell_every_change_and_end_with_the_answer(self):
        service = self.serve(judge=("--made-up-judge", "300"))
        evaluation = service.client().submit(source(), plan=PLAN, problem="softmax")
        received = raw(
            service.address, f"GET /v1/evaluations/{evaluation.id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        events = [json.loads(line[6:]) for line in received.decode().splitlines() if line.startswith("data: ")]
        self.assertEqual(events[-1]["state"], "answered")
        self.assertIn("judging", [event["state"] for event in events])

    def test_a_batch_is_accepted_whole_and_waited_for(self):
        service = self.serve()
        client = service.client()
        answers = client.evaluate_many([submission(str(i)) for i in range(30)])
        self.assertEqual(len({answer.id for answer in answers}), 30)
        self.assertTrue(all(answer.passed for answer in answers))
        batch = answers[0].raw["batch"]
        received = raw(service.address, f"GET /v1/batches/{batch}/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.assertEqual(received.count(b'"state":"answered"'), 30)

    def test_cancelled_and_late_ones_are_no_verdicts(self):
        client = self.serve(judge=("--made-up-judge", "2000")).client()
        first = client.submit(source("1"), plan=PLAN, problem="softmax")
        second = client.submit(source("2"), plan=PLAN, problem="softmax", deadline_s=1)
        self.assertEqual(client.cancel(first.id).kind, "cancelled")
        answer = client.wait(second.id, 10)
        self.assertEqual(answer.kind, "deadline_passed")
        with self.assertRaises(rekernel.MachineError):
            answer.verdict()

    def test_a_machine_that_fails_is_never_a_verdict(self):
        client = self.serve("--tries", "2").client()
        for word in ("machine_failure", "exception"):
            answer = client.evaluate(source(word=word), plan=PLAN, problem="softmax", retries=0)
            self.assertEqual((answer.kind, answer.retry, answer.status), ("machine_error", True, ""))

    def test_what_took_a_device_down_twice_is_quarantined_for_good(self):
        client = self.serve().client()
        answer = client.evaluate(source(word="device_lost"), plan=PLAN, problem="softmax")
        self.assertEqual((answer.kind, answer.retry), ("quarantined", False))
        begun = time.monotonic()
        again = client.evaluate(source(word="device_lost"), plan=PLAN, problem="softmax", fresh=True)
        self.assertEqual(again.kind, "quarantined")
        self.assertLess(time.monotonic() - begun, 0.5)
        self.assertTrue(client.evaluate(source("other"), plan=PLAN, problem="softmax").passed, "the device came back")

    def test_refusals_name_the_field(self):
        client = self.serve().client()
        for wrong, word in (({"tier": "fast"}, "tier"), ({"sauce": 1}, "sauce"), ({"problem": "sofmax"}, "softmax")):
            with self.assertRaises(rekernel.Refused) as refused:
                client.request(rekernel._protocol.submit({**submission(), **wrong}, 0, "k"))
            self.assertEqual(refused.exception.status, 400)
            self.assertIn(word, refused.exception.detail)

    def test_problems_are_shown(self):
        client = self.serve().client()
        self.assertIn("softmax", [problem["id"] for problem in client.problems()])
        self.assertIn("namespace problem", client.problem("softmax")["problem_h"])

    def test_listing_goes_on_where_it_was(self):
        client = self.serve().client()
        ids = [client.evaluate(source(str(i)), plan=PLAN, problem="softmax").id for i in range(3)]
        listed = client.request(rekernel._protocol.Request("GET", f"/v1/evaluations?limit=2&after={ids[0]}"))
        self.assertEqual([one["id"] for one in listed["evaluations"]], ids[1:])

    def test_metrics_and_health(self):
        service = self.serve()
        connection = http.client.HTTPConnection(service.address)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        self.assertIn("rekernel_accepted_total 0", text)
        connection.request("GET", "/readyz")
        self.assertTrue(json.loads(connection.getresponse().read())["ready"])
        connection.request("HEAD", "/healthz")
        response = connection.getresponse()
        self.assertEqual((response.status, response.read()), (200, b""))
        connection.close()


class Access(ServiceTest):
    def token(self, name):
        made = subprocess.run(
            [os.environ["REKERNEL_PROGRAM"], "serve", "--tokens", str(self.folder / "tokens"), "--new-token", name],
            capture_output=True,
            text=True,
            check=True,
        )
        return made.stdout.strip()

    def test_a_client_needs_its_token_and_sees_its_own(self):
        one, two = self.token("one"), self.token("two")
        service = self.serve("--tokens", str(self.folder / "tokens"))
        for wrong in (None, "", one[:-1], one + "x"):
            with self.assertRaises(rekernel.Refused) as refused:
                service.client(wrong or "-").problems()
            self.assertEqual(refused.exception.status, 401)
        answer = service.client(one).evaluate(source(), plan=PLAN, problem="softmax")
        for call in ("wait", "cancel"):
            with self.assertRaises(rekernel.Refused) as refused:
                getattr(service.client(two), call)(answer.id)
            self.assertEqual(refused.exception.status, 404)
        service.stop()
        log = service.log.read_text()
        self.assertNotIn(one, log)
        self.assertNotIn(two, log)
        self.assertNotIn(one, (self.folder / "tokens").read_text())

    def test_without_tokens_it_listens_here_alone(self):
        with self.assertRaises(RuntimeError) as refused:
            self.serve(listen="0.0.0.0:0")
        self.assertIn("--tokens", str(refused.exception))

    def test_without_tokens_browsers_are_refused(self):
        service = self.serve()
        for header in ("Host: example.org", "Host: localhost\r\nOrigin: http://localhost"):
            received = raw(
                service.address, f"GET /v1/problems HTTP/1.1\r\n{header}\r\nConnection: close\r\n\r\n".encode()
            )
            self.assertTrue(received.startswith(b"HTTP/1.1 403"), received[:80])

    def test_a_unix_socket_is_its_owners(self):
        service = self.serve(listen=f"unix:{self.folder}/socket")
        self.assertEqual(os.stat(self.folder / "socket").st_mode & 0o077, 0)
        self.assertTrue(service.client().evaluate(source(), plan=PLAN, problem="softmax").passed)


class Limits(ServiceTest):
    def post(self, head, body=b""):
        return (
            f"POST /v1/evaluations HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{head}\r\n\r\n"
        ).encode() + body

    def test_a_billion_bytes_are_refused_at_once(self):
        service = self.serve()
        begun = time.monotonic()
        received = raw(service.address, self.post("Content-Length: 1000000000"))
        self.assertTrue(received.startswith(b"HTTP/1.1 413"), received[:80])
        chunked = self.post("Transfer-Encoding: chunked", b"3b9aca00\r\n" + b"x" * 100_000)
        self.assertTrue(raw(service.address, chunked).startswith(b"HTTP/1.1 413"))
        self.assertLess(time.monotonic() - begun, 2)

    def test_heads_and_nonsense(self):
        service = self.serve()
        for text, status in (
            (self.post("X: " + "y" * 20_000), b"431"),
            (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"400"),
            (b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
        ):
            received = raw(service.address, text)
            self.assertTrue(received.startswith(b"HTTP/1.1 " + status), received[:80])
        self.assertTrue(service.client().evaluate(source(), plan=PLAN, problem="softmax").passed)

    def test_a_client_that_vanishes_costs_nothing(self):
        service = self.serve(judge=("--made-up-judge", "100"))
        host, port = service.address.rsplit(":", 1)
        body = json.dumps(submission("vanishes")).encode()
        for cut in (0, 10, len(body) // 2, len(body)):
            with socket.create_connection((host, int(port))) as connection:
                head = f"POST /v1/evaluations?wait=60 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                request = head + "Content-Type: application/json\r\n\r\n"
                connection.sendall(request.encode() + body[:cut])
        client = service.client()
        until = time.monotonic() + 10
        while not (listed := client.request(rekernel._protocol.Request("GET", "/v1/evaluations"))["evaluations"]):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)
        self.assertEqual(len(listed), 1, "what arrived whole was accepted, and nothing else")
        self.assertTrue(client.wait(listed[0]["id"], 10).passed)

    def test_ten_thousand_small_requests_on_one_connection(self):
        service = self.serve()
        host, port = service.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), 60) as connection:
            count = 10_000
            sender = threading.Thread(
                target=connection.sendall, args=(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * count,)
            )
            sender.start()
            received, left = b"", count
            while left > 0:
                received += connection.recv(1 << 20)
                left -= received.count(b"HTTP/1.1 200")
                received = received[-11:] if not received.endswith(b"HTTP/1.1 200") else b""
            sender.join()

    def test_a_full_queue_says_when_to_come_back(self):
        client = self.serve("--client-queue", "3", judge=("--made-up-judge", "60000")).client()
        for i in range(3):
            client.submit(source(str(i)), plan=PLAN, problem="softmax", key=str(i))
        with self.assertRaises(rekernel.Refused) as refused:
            client.request(rekernel._protocol.submit(submission("4"), 0, "4"))
        self.assertEqual(refused.exception.status, 429)
        self.assertGreaterEqual(refused.exception.retry_after, 1)
        self.assertFalse(
            client.submit(source("0"), plan=PLAN, problem="softmax", key="0").answered, "a known key has its place"
        )


class Deaths(ServiceTest):
    def test_nothing_accepted_is_lost_and_no_key_has_two_answers(self):
        service = self.serve(judge=("--made-up-judge", "2"))
        told, accepted = {}, {}
        for round_number in range(3):

            def ask(i, client):
                try:
                    request = rekernel._protocol.submit(submission(str(i)), 1, f"key {i}")
                    answer = rekernel.Answer.of(client.request(request))
                except rekernel.RekernelError:
                    return
                accepted[i] = answer.id
                if answer.answered:
                    told[i] = answer.body

            client = service.client()
            threads = [threading.Thread(target=ask, args=(100 * round_number + i, client)) for i in range(60)]
            for thread in threads:
                thread.start()
            enough = len(accepted) + 10
            while len(accepted) < enough:
                time.sleep(0.005)
            service.kill()
            for thread in threads:
                thread.join()
            service = self.serve(judge=("--made-up-judge", "2"))
        client = service.client()
        for i, evaluation in accepted.items():
            answer = client.wait(evaluation, 20)
            self.assertEqual(
                client.submit(source(str(i)), plan=PLAN, problem="softmax", tier=None, key=f"key {i}").id, evaluation
            )
            self.assertTrue(answer.is_verdict, answer)
            if i in told:
                self.assertEqual(told[i], answer.body, "what was told stays")

    def test_a_second_service_is_kept_out_and_the_first_goes_on(self):
        service = self.serve()
        second = subprocess.run(
            [
                os.environ["REKERNEL_PROGRAM"],
                "serve",
                "--store",
                str(self.folder / "store"),
                "--made-up-judge",
                "0",
                "--listen",
                "127.0.0.1:0",
            ],
            capture_output=True,
            text=True,
        )
        self.assertEqual(second.returncode, 2)
        self.assertIn("another service", second.stderr)
        self.assertTrue(service.client().evaluate(source(), plan=PLAN, problem="softmax").passed)

    def test_a_graceful_stop_ends_what_runs_and_keeps_the_rest(self):
        service = self.serve("--cores", "1", judge=("--made-up-judge", "300"))
        client = service.client()
        ids = [client.submit(source(str(i)), plan=PLAN, problem="softmax").id for i in range(4)]
        begun = time.monotonic()
        self.assertEqual(service.stop(), 0)
        self.assertLess(time.monotonic() - begun, 5)
        client = self.serve().client()
        self.assertTrue(all(client.wait(one, 10).passed for one in ids))

    def test_a_client_lives_through_a_restart(self):
        service = self.serve(judge=("--made-up-judge", "500"))
        port = service.address.rsplit(":", 1)[1]
        client = service.client()
        answers = []
        asking = threading.Thread(
            target=lambda: answers.append(client.evaluate(source(), plan=PLAN, problem="softmax", timeout=30))
        )
        asking.start()
        time.sleep(0.2)
        service.kill()
        self.serve(listen=f"127.0.0.1:{port}")
        asking.join()
        self.assertTrue(answers and answers[0].passed)

    def test_a_full_disk_refuses_and_recovers(self):
        service = self.serve(judge=("--made-up-judge", "1500"), full_at=300_000)
        client = service.client()
        waiting = client.submit(source("waits"), plan=PLAN, problem="softmax")
        for size in (20_000, 10):  # until not even a little fits
            with self.assertRaises(rekernel.Refused) as refused:
                for i in range(200):
                    client.request(rekernel._protocol.submit(submission("x" * size + str(i)), 0, f"{size} {i}"))
            self.assertEqual((refused.exception.status, refused.exception.code), (503, "storage"))
        self.assertFalse(
            client.request(rekernel._protocol.find(waiting.id, 3)).get("answer"), "told before it is on disk"
        )
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assertTrue(client.wait(waiting.id, 20).passed)


class CommittedKernel(ServiceTest):
    """The judge itself, and a kernel that passes."""

    def setUp(self):
        super().setUp()
        self.client = self.serve("--target", "sm_90a", judge=()).client()
        folder = os.path.join(os.path.dirname(__file__), "../../generated/softmax/row_on_chip_plain_stores")
        with open(os.path.join(folder, "kernel.cu"), encoding="utf-8") as code:
            self.code = code.read()
        with open(os.path.join(folder, "kernel.json"), encoding="utf-8") as plan:
            self.plan = json.load(plan)


class RealJudge(CommittedKernel):
    """Without a GPU: tier `compile`, and what stands in a verdict's place for the others."""

    def test_a_committed_kernel_compiles(self):
        answer = self.client.evaluate(self.code, plan=self.plan, problem="softmax", tier="compile")
        self.assertEqual(answer.status, "compiles")
        self.assertFalse(answer.passed)
        self.assertGreater(answer.body["resources"][0]["registers"], 0)
        self.assertFalse(answer.made_up)

    def test_an_error_has_its_line_once(self):
        answer = self.client.evaluate("\n\n__global__ void k() { oops; }", plan=PLAN, problem="softmax", tier="compile")
        self.assertEqual(answer.status, "compile_failed")
        self.assertEqual(answer.body["compiler_errors"], [{"line": 3, "message": 'identifier "oops" is undefined'}])
        self.assertIn("line 3", answer.text)

    def test_a_plan_that_is_wrong_and_a_reply_without_code_are_verdicts(self):
        wrong = self.client.evaluate(self.code, plan={"launches": 3}, problem="softmax", tier="compile")
        self.assertEqual(wrong.status, "invalid_plan")
        self.assertEqual(self.client.evaluate(reply="No.", problem="softmax").status, "invalid_plan")

    def test_without_a_gpu_there_is_no_verdict_on_results(self):
        if self.client.service()["devices"] > 0:
            self.skipTest("there is a GPU")
        answer = self.client.evaluate(self.code, plan=self.plan, problem="softmax", tier="correct")
        self.assertEqual((answer.kind, answer.code, answer.retry), ("machine_error", "no_gpu", False))
        with self.assertRaises(rekernel.MachineError):
            rekernel.Reward()(answer)


class Signed(CommittedKernel):
    @unittest.skipUnless(shutil.which("ssh-keygen"), "no ssh-keygen")
    def test_a_verdict_carries_a_signature_of_what_it_says(self):
        key = self.folder / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
        (self.folder / "signers").write_text("judge " + key.with_suffix(".pub").read_text())
        self.services[-1].stop()
        client = self.serve("--target", "sm_90a", "--sign", str(key), judge=()).client()
        body = client.evaluate(self.code, plan=self.plan, problem="softmax", tier="compile").body
        (self.folder / "signature").write_text(body["signature"])

        def verified(statement):
            command = [
                "ssh-keygen",
                "-Y",
                "verify",
                "-f",
                str(self.folder / "signers"),
                "-I",
                "judge",
                "-n",
                "rekernel",
            ]
            command += ["-s", str(self.folder / "signature")]
            return subprocess.run(command, input=statement.encode(), capture_output=True).returncode == 0

        self.assertIn(body["sha256"], body["statement"])
        self.assertTrue(verified(body["statement"]))
        self.assertFalse(verified(body["statement"].replace("softmax", "conv2d")))


class OwnProblem(CommittedKernel):
    def test_a_definition_in_the_request_is_compiled_for(self):
        self.services[-1].stop()
        client = self.serve("--target", "sm_90a", judge=()).client()
        answer = client.evaluate(DOUBLING_KERNEL, plan=DOUBLING_PLAN, problem=DOUBLING, tier="compile")
        self.assertEqual((answer.kind, answer.status), ("verdict", "compiles"), answer.raw)
        self.assertRegex(answer.body["problem"], "^doubling_[0-9a-f]{10}$")
        wrong = {**DOUBLING, "definition": ["y[i] = 2 * z[i]"]}
        with self.assertRaisesRegex(rekernel.Refused, "problem.*z"):
            client.evaluate(DOUBLING_KERNEL, plan=DOUBLING_PLAN, problem=wrong, tier="compile")


class GpuJudge(CommittedKernel):
    def test_a_definition_in_the_request_is_judged(self):
        answer = self.client.evaluate(DOUBLING_KERNEL, plan=DOUBLING_PLAN, problem=DOUBLING)
        self.assertTrue(answer.passed, answer.raw)
        self.assertGreater(answer.share_of_speed_of_light, 0.1)
        thrice = DOUBLING_KERNEL.replace("2 * x", "3 * x")
        answer = self.client.evaluate(thrice, plan=DOUBLING_PLAN, problem=DOUBLING, tier="correct")
        self.assertEqual(answer.status, "wrong_result")

    def test_a_profile_is_made_where_the_service_makes_some(self):
        asked = {"plan": DOUBLING_PLAN, "problem": DOUBLING, "profile": True}
        answer = self.client.evaluate(DOUBLING_KERNEL, **asked)
        self.assertIn("--profiles", answer.body["profile"]["unavailable"])
        if not shutil.which("ncu"):
            self.skipTest("no ncu")
        self.services[-1].stop()
        answer = self.serve("--profiles", judge=()).client().evaluate(DOUBLING_KERNEL, fresh=True, **asked)
        self.assertTrue(answer.passed, answer.raw)
        self.assertIn("twice", answer.body["profile"].get("text", ""), answer.body["profile"])

    def test_a_committed_kernel_passes_with_a_time(self):
        answer = self.client.evaluate(self.code, plan=self.plan, problem="softmax")
        self.assertTrue(answer.passed, answer.raw)
        self.assertGreater(answer.speedup, 1)
        self.assertLess(answer.share_of_speed_of_light, 1)
        self.assertIn("robust", answer.badges)
        self.assertGreater(rekernel.Reward("sol_score", needs=("robust",))(answer), 0.3)
        self.assertTrue(self.client.evaluate(self.code, plan=self.plan, problem="softmax").raw["kept"])

    def test_pytorch_is_the_reference_where_no_library_computes_the_problem(self):
        kernel = ROOT / "generated/gelu/pages_touched_ahead"
        asked = {"plan": json.loads((kernel / "kernel.json").read_text()), "problem": "gelu", "other_sizes": False}
        code = (kernel / "kernel.cu").read_text()
        self.assertIsNone(self.client.evaluate(code, **asked).speedup)
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no PyTorch")
        self.services[-1].stop()
        answer = self.serve("--pytorch", judge=()).client().evaluate(code, **asked)
        self.assertTrue(answer.passed, answer.raw)
        self.assertEqual([one["id"] for one in answer.body["times"]["references"]], ["pytorch_eager"])
        self.assertGreater(answer.speedup, 0.8)

    def test_a_wrong_kernel_is_told_where(self):
        wrong = 'extern "C" __global__ void k(const float* x, float* y) { y[threadIdx.x] = 0; }'
        plan = {"launches": [{"kernel": "k", "grid": [1], "block": [32], "args": ["x", "y"]}]}
        answer = self.client.evaluate(wrong, plan=plan, problem="softmax", tier="correct")
        self.assertEqual(answer.status, "wrong_result")
        self.assertGreater(answer.body["errors"]["failing_elements"], 0)
        self.assertEqual(rekernel.Reward("correct")(answer), 0.0)

    def test_several_wait_for_the_gpus_and_all_get_verdicts(self):
        bodies = [
            {"problem": "softmax", "source": f"{self.code}// {i}\n", "plan": self.plan, "tier": "correct"}
            for i in range(4)
        ]
        self.assertTrue(all(answer.passed for answer in self.client.evaluate_many(bodies)))


if __name__ == "__main__":
    unittest.main()
