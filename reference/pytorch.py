"""Times problems in PyTorch, by the same protocol as everything else.

A conversation in JSON lines on standard input and output. A question that has a "problem",
  {"problem": "softmax", "mode": "pytorch_eager", "function": "torch.softmax(x, dim=1)", "program": "",
   "tensors": [{"name", "dtype", "shape", "role", "distribution": {"kind", "a", "b", "choices"}}, ...],
   "attributes": {...}, "device": 0},
is answered, once everything is compiled and warm, with {"ready": true, "torch": "2.11.0", ...}
or {"error": "one line"}. A question {"samples": n, "seed": s} is about the problem and mode asked for
last, and answered with {"times_ns": [...]}. A problem that has a program in place of an expression has that as
JSON; its model's parameters lie where the inputs lie. An answer repeats the question's "token". Between the
questions this process sleeps, so that it does not disturb others' samples. It serves one evaluation
after the other; a function is compiled once.
"""

import functools
import json
import os
import sys

# Libraries write to standard output; the conversation keeps a copy of its own.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def answer(message):
    answers.write(json.dumps(message) + "\n")
    answers.flush()


# Importing takes seconds, and is done while the first evaluation sets itself up.
try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    for line in sys.stdin:
        answer({"error": f"PyTorch is not installed ({one_line(error)})", "token": json.loads(line)["token"]})
    sys.exit(0)


def has_draws(tensor, kind):
    """Whether PyTorch draws values of this kind in the tensor's type; others take them from a wider one."""
    if kind == "integers":
        return tensor.dtype in (torch.int8, torch.int32, torch.int64, torch.float32)
    return tensor.dtype in (torch.float32, torch.float16, torch.bfloat16)


def draw(tensor, distribution, generator):
    """New values in place: same addresses, as the harness's own buffers. Inputs that the problem makes of
    drawn ones are left as drawn: their values decide no time."""
    kind, a, b = distribution["kind"], distribution["a"], distribution["b"]
    if kind == "constant":
        tensor.fill_(a)
        return
    if kind == "choice":
        choices = distribution["choices"]
        which = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
        which.uniform_(0, len(choices), generator=generator)
        drawn = torch.full_like(which, choices[0])
        for number, value in enumerate(choices[1:], 1):
            drawn.masked_fill_(which >= number, value)
        tensor.copy_(drawn)
        return
    drawn = tensor
    if not has_draws(tensor, kind):
        drawn = torch.empty(tensor.shape, dtype=torch.float32, device=tensor.device)
    if kind == "normal":
        drawn.normal_(a, b, generator=generator)
    elif kind == "uniform":
        drawn.uniform_(a, b, generator=generator)
    else:
        drawn.random_(int(a), int(b), generator=generator)
    if drawn is not tensor:
        tensor.copy_(drawn)


def bound(request, inputs):
    """What is timed, a function with its arguments; and what draws inputs beside the distributions."""
    if not request["program"]:
        return functools.partial(operator(request), **inputs), lambda seed: None
    spec = json.loads(request["program"])
    program = Program(spec, "cuda")
    drawn = {name: inputs[name] for name in changed_after_drawing(spec)}
    return program.bound(inputs), lambda seed: program.draw(seed, drawn) if drawn else None


class Timer:
    """A problem's inputs, and how to time its function in the mode that was asked for last."""

    def __init__(self, request):
        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        torch.cuda.set_device(request["device"])
        self.problem = request["problem"]
        self.distributions = {}
        self.inputs = {}
        for tensor in request["tensors"]:
            if tensor["role"] != "input":
                continue
            self.distributions[tensor["name"]] = tensor["distribution"]
            self.inputs[tensor["name"]] = torch.empty(
                tensor["shape"], dtype=dtype_of(tensor["dtype"]), device="cuda")
        self.eager, self.draw_by_program = bound(request, self.inputs)
        cache_bytes = torch.cuda.get_device_properties(request["device"]).L2_cache_size
        self.flush = torch.empty(2 * cache_bytes + (1 << 20), dtype=torch.uint8, device="cuda")
        self.generator = torch.Generator(device="cuda")
        self.start = torch.cuda.Event(enable_timing=True)
        self.stop = torch.cuda.Event(enable_timing=True)

    def choose(self, mode):
        # Products in FP32 as they are by default; convolutions use TF32 by default.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = mode != "pytorch_eager_fp32"
        if mode == "pytorch_compile":
            if self.problem not in compiled:
                compiled[self.problem] = torch.compile(self.eager.func)
            self.function = functools.partial(compiled[self.problem], *self.eager.args, **self.eager.keywords)
        else:
            self.function = self.eager
        for seed in range(3):
            self.sample(seed)

    def sample(self, seed):
        self.generator.manual_seed(seed & (2**64 - 1))
        for name, tensor in self.inputs.items():
            draw(tensor, self.distributions[name], self.generator)
        self.draw_by_program(seed)
        # Nothing waits from here to the launch, so that its latency hides under this write.
        self.flush.fill_(seed & 127)
        self.start.record()
        output = self.function()
        self.stop.record()
        self.stop.synchronize()
        del output
        return max(1, round(self.start.elapsed_time(self.stop) * 1e6))


compiled = {}  # by problem


def answer_to(request, timer):
    """The answer, and the timer that goes on."""
    if "problem" not in request:
        if timer is None:
            raise RuntimeError("no problem was asked for")
        seed = request["seed"]
        return {"times_ns": [timer.sample(seed + i) for i in range(request["samples"])]}, timer
    if timer is None or timer.problem != request["problem"]:
        timer = None  # its memory is free before more is taken
        torch.cuda.empty_cache()
        timer = Timer(request)
    timer.choose(request["mode"])
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda or "",
                "cudnn": torch.backends.cudnn.version() or 0}
    return {"ready": True, **versions}, timer


def main():
    timer = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            with torch.no_grad():
                message, timer = answer_to(request, timer)
        except Exception as error:  # whatever it is, the harness gets one line about it
            message, timer = {"error": one_line(error)}, None
        answer({**message, "token": request["token"]})


main()
