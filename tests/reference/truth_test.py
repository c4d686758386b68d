"""The process of programs that give a truth: the conversation, float64, what is refused. Without a GPU."""

import array
import base64
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import unittest

REFERENCE = pathlib.Path(__file__).parents[2] / "reference"
PARTS = ("expression", "program", "truth")
SCRIPT = "\n".join((REFERENCE / f"{part}.py").read_text() for part in PARTS)
LINEAR = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, inner, columns):
        super().__init__()
        self.linear = nn.Linear(inner, columns)

    def forward(self, x, scale):
        return torch.relu(self.linear(x).float()) * scale

def get_inputs():
    return [torch.randn(2, 3), 0.5]

def get_init_inputs():
    return [3, 4]
"""


class Process:
    """The worker, and the harness's side of its conversation."""

    def __init__(self):
        self.ours, theirs = socket.socketpair()
        self.child = subprocess.Popen([sys.executable, "-c", SCRIPT, str(theirs.fileno()), "cpu"],
                                      pass_fds=[theirs.fileno()])
        theirs.close()

    def ask(self, fields, descriptors=()):
        body = b"".join(str(len(one.encode())).encode() + b":" + one.encode() for one in fields)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        self.ours.sendmsg([struct.pack("<Q", len(body)) + body], rights)
        size = struct.unpack("<Q", self.ours.recv(8, socket.MSG_WAITALL))[0]
        body, answer = self.ours.recv(size, socket.MSG_WAITALL), []
        while body:
            length, body = body.split(b":", 1)
            answer.append(body[:int(length)].decode())
            body = body[int(length):]
        return answer

    def end(self):
        self.ours.close()
        return self.child.wait(20)


class Memory:
    def __init__(self, values=None, count=0):
        import numpy
        self.count = count
        self.descriptor = os.memfd_create("values")
        data = numpy.array(values, dtype=numpy.float32).tobytes() if values is not None else bytes(8 * count)
        self.size = 4096
        os.pwrite(self.descriptor, bytes(256) + data + bytes(self.size - 256 - len(data)), 0)

    def float64(self):
        import numpy
        return numpy.frombuffer(os.pread(self.descriptor, 8 * self.count, 256), dtype=numpy.float64)


def tensor(name, shape, role, dtype="f32"):
    return {"name": name, "role": role, "dtype": dtype, "shape": shape, "allocation": 4096, "offset": 256}


class TruthProcess(unittest.TestCase):
    def setUp(self):
        self.process = Process()
        self.addCleanup(self.process.end)

    def begin(self, text, form="kernelbench", arguments=("x",), parameters=None, inputs=(), output=(1,), dtype="f32"):
        spec = {"form": form, "text": text, "arguments": list(arguments), "parameters": parameters or {}}
        tensors = [tensor(name, shape, "input") for name, shape, _ in inputs] + [tensor("y", list(output), "output", dtype)]
        count = 1
        for extent in output:
            count *= extent
        self.output = Memory(count=count)
        memory = [Memory(values) for _, _, values in inputs] + [self.output]
        return self.process.ask(["problem", json.dumps(spec), json.dumps(tensors)], [one.descriptor for one in memory])

    def test_a_model_with_parameters_in_float64(self):
        import numpy
        random = numpy.random.default_rng(1)
        x, weight, bias = random.random((2, 3)), random.random((4, 3)), random.random(4)
        self.assertEqual(self.begin(LINEAR, arguments=("x", None), parameters={"w": "linear.weight", "b": "linear.bias"},
                                    inputs=[("x", [2, 3], x), ("w", [4, 3], weight), ("b", [4], bias)], output=(2, 4)),
                         ["ok"])
        self.assertEqual(self.process.ask(["compute"]), ["ok", ""])
        single = [one.astype(numpy.float32).astype(numpy.float64) for one in (x, weight, bias)]
        expected = numpy.maximum(single[0] @ single[1].T + single[2], 0) * 0.5
        # The cast to float in the program would cost 1e-8.
        self.assertLess(abs(self.output.float64() - expected.ravel()).max(), 1e-14)

    def test_a_run_and_a_nan(self):
        text = "import torch\ndef run(x):\n    x.sub_(1)\n    return torch.sqrt(x)\n"
        self.assertEqual(self.begin(text, "flashinfer", inputs=[("x", [2], [5.0, 1.0])], output=(2,)), ["ok"])
        for _ in range(2):  # what the program does to its inputs, the next truth does not see
            self.assertEqual(self.process.ask(["compute"]), ["ok", ""])
            self.assertEqual(list(self.output.float64()), [2.0, 0.0])
        self.assertEqual(self.begin(text, "flashinfer", inputs=[("x", [2], [0.0, 1.0])], output=(2,)), ["ok"])
        self.assertEqual(self.process.ask(["compute"]), ["ok", "nan"])

    def test_the_program_draws_its_inputs(self):
        spec = {"form": "kernelbench", "arguments": ["x", None], "parameters": {}, "draws": ["x"], "text": LINEAR.replace(
            "self.linear(x)", "x").replace("torch.randn(2, 3)", "torch.randperm(6).reshape(2, 3).float()")}
        x, y, drawn = Memory([[0] * 3] * 2), Memory(count=6), Memory([[0] * 3] * 2)
        self.assertEqual(self.process.ask(["problem", json.dumps(spec), json.dumps(
            [tensor("x", [2, 3], "input"), tensor("y", [2, 3], "output"), tensor("x", [2, 3], "drawn")])],
            [x.descriptor, y.descriptor, drawn.descriptor]), ["ok"])
        seen = set()
        for seed in (1, 2, 1, 18446744073709551615):
            self.assertEqual(self.process.ask(["draw", str(seed)]), ["ok"])
            os.pwrite(x.descriptor, os.pread(drawn.descriptor, 24, 256), 256)  # as the harness copies it
            self.assertEqual(self.process.ask(["compute"]), ["ok", ""])
            values = tuple(y.float64())
            self.assertEqual(sorted(values), [0, 0.5, 1, 1.5, 2, 2.5])
            seen.add((seed, values))
        self.assertEqual(len(seen), 3)  # one seed, one draw
        self.assertGreater(len({values for _, values in seen}), 1)

    def test_a_workloads_numbers_and_integers(self):
        order = struct.pack("<2i", 1, 0)
        spec = {"form": "flashinfer", "arguments": ["x", None, "order"], "parameters": {}, "numbers": [0.5],
                "values": {"order": base64.b64encode(order).decode()},
                "text": "def run(x, scale, order):\n    return x[order.long()] * scale\n"}
        x, given, y, drawn = Memory([4, 6]), Memory([0, 0]), Memory(count=2), Memory([0, 0])
        tensors = [tensor("x", [2], "input"), tensor("order", [2], "input", "i32"), tensor("y", [2], "output"),
                   tensor("order", [2], "drawn", "i32")]
        self.assertEqual(self.process.ask(["problem", json.dumps(spec), json.dumps(tensors)],
                                          [one.descriptor for one in (x, given, y, drawn)]), ["ok"])
        for seed in (1, 2):
            self.assertEqual(self.process.ask(["draw", str(seed)]), ["ok"])
            self.assertEqual(os.pread(drawn.descriptor, 8, 256), order)
        os.pwrite(given.descriptor, order, 256)
        self.assertEqual(self.process.ask(["compute"]), ["ok", ""])
        self.assertEqual(list(y.float64()), [3.0, 2.0])

    def test_what_is_refused(self):
        run = "def run(x):\n    return {}\n"
        for body, output, dtype, why in [
                ("x, x", (1,), "f32", "2 outputs: expected 1"),
                ("x[0]", (1,), "f32", "expected the shape [1], got []"),
                ("x > 0", (1,), "f32", "expected f32, got torch.bool"),
                ("x.tolist()", (1,), "f32", "expected tensors"),
                ("x + nobody", (1,), "f32", "NameError"),
                ("exit(3)", (1,), "f32", "SystemExit")]:
            with self.subTest(body):
                self.assertEqual(self.begin(run.format(body), "flashinfer", inputs=[("x", [1], [1.0])], output=output,
                                            dtype=dtype), ["ok"])
                status, text = self.process.ask(["compute"])
                self.assertEqual(status, "failed")
                self.assertIn(why, text)
        status, text = self.begin("import a_package_that_nobody_has", inputs=[("x", [1], [1.0])])
        self.assertEqual(status, "failed")
        self.assertIn("No module named", text)
        self.assertEqual(self.process.ask(["anything"])[0], "failed")


if __name__ == "__main__":
    if subprocess.run([sys.executable, "-c", "import torch, numpy"], capture_output=True).returncode:
        print("skipped: python3 here cannot import torch and numpy")
        sys.exit(77)
    unittest.main()
