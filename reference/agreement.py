"""Compares problems' PyTorch expressions, in float64, with truths that were made elsewhere.

  python3 -c SCRIPT SOCKET MEMORY cpu|cuda

A conversation in JSON lines over a socket; values lie in memory that both sides see. A question
  {"function": "torch.softmax(x, dim=1)", "attributes": {...}, "bytes": 4096,
   "tensors": [{"name", "shape", "dtype", "role", "comparison", "stored", "at"}, ...]}
names each tensor's type, and where in the memory its values lie in which type: an input's own, an output's
truth. The answer is {"torch": "2.11.0", "outputs": [{"name", "largest", "unequal"}, ...]}: the largest
difference relative to the truth's root mean square, as text, since JSON has no infinity; of integers and
conditions, how many differ. Or {"error": "one line"}.
"""

import json
import mmap
import socket
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    torch, missing = None, one_line(error)


def values_of(tensor, memory, device):
    """A tensor of the memory, where it will be computed with."""
    count = 1
    for extent in tensor["shape"]:
        count *= extent
    dtype = dtype_of(tensor["stored"])
    stored = torch.frombuffer(memory, dtype=torch.uint8, count=count * dtype.itemsize, offset=tensor["at"])
    return stored.to(device, copy=True).view(dtype).reshape(tensor["shape"])


def operand(tensor, memory, device):
    """An input in float64; integers and conditions in their own type."""
    own = dtype_of(tensor["dtype"])
    return values_of(tensor, memory, device).to(torch.float64 if own.is_floating_point else own)


def difference(tensor, made, truth):
    name = tensor["name"]
    if not isinstance(made, torch.Tensor):
        raise RuntimeError(f"'{name}': expected a tensor, got {type(made).__name__}")
    if list(made.shape) != tensor["shape"]:
        raise RuntimeError(f"'{name}': expected the shape {tensor['shape']}, got {list(made.shape)}")
    made = made.to(torch.float64)
    if tensor["comparison"] != "close":
        return {"name": name, "largest": "0", "unequal": int((made != truth).sum())}
    finite = truth.isfinite()
    scale = float(torch.where(finite, truth, 0.0).square().sum() / finite.sum().clamp(min=1)) ** 0.5 or 1.0
    # Equal infinities, and what neither side has a number for, are no difference.
    off = torch.where((made == truth) | (made.isnan() & truth.isnan()), 0.0, (made - truth).abs())
    largest = float(off.nan_to_num(nan=float("inf")).max()) if off.numel() else 0.0
    return {"name": name, "largest": repr(largest / scale), "unequal": 0}


def compared(request, memory, device):
    made = operator(request)(**{tensor["name"]: operand(tensor, memory, device)
                                for tensor in request["tensors"] if tensor["role"] == "input"})
    made = list(made) if isinstance(made, (tuple, list)) else [made]
    outputs = [tensor for tensor in request["tensors"] if tensor["role"] == "output"]
    if len(made) != len(outputs):
        raise RuntimeError(f"the expression gives {len(made)} outputs: expected {len(outputs)}")
    differences = []
    for tensor in outputs:
        differences.append(difference(tensor, made.pop(0), values_of(tensor, memory, device)))
    return {"torch": torch.__version__, "outputs": differences}


def answer_to(request, descriptor, device):
    if torch is None:
        raise RuntimeError(f"PyTorch is not installed ({missing})")
    memory = mmap.mmap(descriptor, request["bytes"])
    try:
        with torch.no_grad():
            return compared(request, memory, device)
    finally:
        try:
            memory.close()
        except BufferError:  # an error keeps a tensor alive; it goes with the next question
            pass
        if device == "cuda":
            torch.cuda.empty_cache()


def main():
    connection, descriptor, device = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
    for line in connection.makefile("r"):
        try:
            answer = answer_to(json.loads(line), descriptor, device)
        except Exception as error:  # whatever it is, one line tells of it
            answer = {"error": one_line(error)}
        connection.sendall((json.dumps(answer) + "\n").encode())


main()
