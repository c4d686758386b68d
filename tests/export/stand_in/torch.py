"""As much of PyTorch as an exported operator touches, so that it runs where there is none."""

import contextlib
import types

Tag = types.SimpleNamespace(needs_exact_strides="needs_exact_strides")
float16, bfloat16, float32, float8_e4m3fn = "torch.float16", "torch.bfloat16", "torch.float32", "torch.float8_e4m3fn"
uint8, int64 = "torch.uint8", "torch.int64"
allocated = []  # addresses that empty() gives, in order


def strides_of(shape):
    strides, step = [], 1
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= extent
    return tuple(strides)


class Device:
    def __init__(self, kind, index=0):
        self.type, self.index = kind, index

    def __eq__(self, other):
        return (self.type, self.index) == (other.type, other.index)

    def __str__(self):
        return f"{self.type}:{self.index}"


class Tensor:
    def __init__(self, shape, dtype=float32, device=None, address=0, strides=None):
        self.shape, self.dtype, self.address = tuple(shape), dtype, address
        self.device, self.strides = device or Device("cuda"), strides or strides_of(self.shape)

    def stride(self):
        return self.strides

    def data_ptr(self):
        return self.address

    def new_empty(self, shape, dtype):
        return Tensor(shape, dtype, self.device)


def empty(shape, dtype, device):
    shape = shape if isinstance(shape, tuple) else (shape,)
    return Tensor(shape, dtype, device, allocated.pop(0))


class _Operator:
    def __init__(self, name, function, options):
        self.name, self.function, self.options, self.fake = name, function, options, None

    def __call__(self, *arguments):
        return self.function(*arguments)

    def register_fake(self, function):
        self.fake = function
        return function


def _custom_op(name, **options):
    return lambda function: _Operator(name, function, options)


library = types.SimpleNamespace(custom_op=_custom_op)
cuda = types.SimpleNamespace(
    device=lambda device: contextlib.nullcontext(),
    current_stream=lambda device: types.SimpleNamespace(cuda_stream=0x77))
