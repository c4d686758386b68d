"""Computes the truth of problems that have a program in place of a definition, in float64.

  python3 -c SCRIPT SOCKET cuda|cpu

The conversation is the harness's own over a Unix socket: messages of fields, with descriptors beside them.
  "problem", the file's `program`, tensors as JSON  with a descriptor for each tensor's allocation
      → "ok", once the program is built and the memory mapped: inputs for reading, the others for writing
  "draw", seed  → "ok": get_inputs() under that seed gave the tensors of the role "drawn" their values
  "compute"  → "ok", "nan" or "": the truth of every output, as float64, lies in its memory
What fails is answered with "failed" and one line. It serves one problem after the other; a program is built once.
"""

import array
import ctypes
import json
import math
import mmap
import os
import socket
import struct
import sys

try:
    import torch
except ImportError as error:
    torch, missing = None, one_line(error)

MOST_DESCRIPTORS = 253


class Conversation:
    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)

    def hear(self):
        """Fields and descriptors; nothing once the other side has hung up."""
        head, descriptors = self.exactly(8)
        if head is None:
            return None
        body, more = self.exactly(struct.unpack("<Q", head)[0])
        return None if body is None else (split_fields(body), descriptors + more)

    def exactly(self, size):
        data, descriptors = bytearray(), []
        while len(data) < size:
            part, ancillary, _, _ = self.socket.recvmsg(min(size - len(data), 1 << 16),
                                                        socket.CMSG_SPACE(4 * MOST_DESCRIPTORS))
            for level, kind, rights in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    numbers = array.array("i")
                    numbers.frombytes(rights[:len(rights) - len(rights) % 4])
                    descriptors += list(numbers)
            if not part:
                return None, []
            data += part
        return bytes(data), descriptors

    def say(self, *fields):
        encoded = [field.encode() for field in fields]
        body = b"".join(str(len(one)).encode() + b":" + one for one in encoded)
        self.socket.sendall(struct.pack("<Q", len(body)) + body)


def split_fields(body):
    fields = []
    while body:
        size, _, body = body.partition(b":")
        fields.append(body[:int(size)].decode())
        body = body[int(size):]
    return fields


class AccessDescription(ctypes.Structure):
    """CUmemAccessDesc."""
    _fields_ = [("location_type", ctypes.c_int), ("location_id", ctypes.c_int), ("flags", ctypes.c_int)]


class DeviceMemory:
    """An allocation that another process lent, at an address of this one."""
    READ, READ_AND_WRITE, DEVICE, FILE_DESCRIPTOR = 1, 3, 1, 1

    def __init__(self, descriptor, size, writes):
        self.driver, self.size = ctypes.CDLL("libcuda.so.1"), ctypes.c_size_t(size)
        self.handle, self.address = ctypes.c_ulonglong(), ctypes.c_ulonglong()
        self.call("cuMemImportFromShareableHandle", ctypes.byref(self.handle), ctypes.c_void_p(descriptor),
                  self.FILE_DESCRIPTOR)
        self.call("cuMemAddressReserve", ctypes.byref(self.address), self.size, ctypes.c_size_t(0),
                  ctypes.c_ulonglong(0), ctypes.c_ulonglong(0))
        self.call("cuMemMap", self.address, self.size, ctypes.c_size_t(0), self.handle, ctypes.c_ulonglong(0))
        access = AccessDescription(self.DEVICE, 0, self.READ_AND_WRITE if writes else self.READ)
        self.call("cuMemSetAccess", self.address, self.size, ctypes.byref(access), ctypes.c_size_t(1))

    def call(self, name, *arguments):
        code = getattr(self.driver, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: CUDA error {code}")

    def bytes_at(self, offset, count):
        """A tensor of bytes over a part of it."""
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "|u1", "version": 3,
                                         "data": (self.address.value + offset, False)}
        return torch.as_tensor(self, device="cuda")

    def close(self):
        self.call("cuMemUnmap", self.address, self.size)
        self.call("cuMemAddressFree", self.address, self.size)
        self.call("cuMemRelease", self.handle)


class HostMemory:
    """The same where there is no GPU."""

    def __init__(self, descriptor, size, writes):
        self.memory = mmap.mmap(descriptor, size)

    def bytes_at(self, offset, count):
        return torch.frombuffer(self.memory, dtype=torch.uint8, count=count, offset=offset)

    def close(self):
        pass


class Truth:
    """One problem: its program, and its tensors' memory."""

    def __init__(self, tensors, descriptors, program, device):
        self.program, self.device = program, device
        self.tensors, self.memory, self.views, self.drawn = tensors, [], {}, {}
        kind = DeviceMemory if device == "cuda" else HostMemory
        for tensor, descriptor in zip(tensors, descriptors):
            dtype = torch.float64 if tensor["role"] == "output" else dtype_of(tensor["dtype"])
            self.memory.append(kind(descriptor, tensor["allocation"], tensor["role"] != "input"))
            view = self.memory[-1].bytes_at(tensor["offset"], math.prod(tensor["shape"]) * dtype.itemsize)
            views = self.drawn if tensor["role"] == "drawn" else self.views
            views[tensor["name"]] = view.view(dtype).reshape(tensor["shape"])

    def draw(self, seed):
        self.program.draw(seed, self.drawn)
        if self.device == "cuda":
            torch.cuda.synchronize()

    def compute(self):
        made = self.program.in_float64({tensor["name"]: self.views[tensor["name"]]
                                        for tensor in self.tensors if tensor["role"] == "input"})
        outputs = [tensor for tensor in self.tensors if tensor["role"] == "output"]
        if len(made) != len(outputs):
            raise RuntimeError(f"{len(made)} outputs: expected {len(outputs)}")
        has_nan = False
        for tensor, value in zip(outputs, made):
            if list(value.shape) != tensor["shape"]:
                raise RuntimeError(f"'{tensor['name']}': expected the shape {tensor['shape']}, got {list(value.shape)}")
            if value.is_floating_point() != dtype_of(tensor["dtype"]).is_floating_point:
                raise RuntimeError(f"'{tensor['name']}': expected {tensor['dtype']}, got {value.dtype}")
            self.views[tensor["name"]].copy_(value)
            has_nan = has_nan or bool(value.isnan().any())
        if self.device == "cuda":
            torch.cuda.synchronize()
        return "nan" if has_nan else ""

    def close(self):
        self.views, self.drawn = {}, {}
        for memory in self.memory:
            memory.close()


class Session:
    def __init__(self, device):
        self.device, self.truth, self.programs = device, None, {}

    def answer(self, fields, descriptors):
        if torch is None:
            raise RuntimeError(f"python3 cannot import torch ({missing})")
        if fields == ["compute"] and self.truth is not None:
            return ["ok", self.truth.compute()]
        if fields[0] == "draw" and self.truth is not None:
            self.truth.draw(int(fields[1]))
            return ["ok"]
        if len(fields) != 3 or fields[0] != "problem":
            raise RuntimeError("a question that makes no sense")
        if self.device == "cuda":
            torch.cuda.init()
            torch.zeros(1, device="cuda")  # the driver's calls want its context
        if self.truth is not None:
            self.truth.close()
            self.truth = None
        spec, tensors = fields[1], json.loads(fields[2])
        if spec not in self.programs:
            self.programs.clear()
            if self.device == "cuda":
                torch.cuda.empty_cache()
            self.programs[spec] = Program(json.loads(spec), self.device)
        self.truth = Truth(tensors, descriptors, self.programs[spec], self.device)
        return ["ok"]


def main():
    conversation, session = Conversation(int(sys.argv[1])), Session(sys.argv[2])
    while (heard := conversation.hear()) is not None:
        fields, descriptors = heard
        try:
            answer = session.answer(fields, descriptors)
        except (Exception, SystemExit) as error:  # whatever it is, one line tells of it
            answer = ["failed", one_line(error)]
        for descriptor in descriptors:
            os.close(descriptor)
        conversation.say(*answer)


main()
