"""The inputs of conv2d, which its program does not say: they stand in another file of its project."""

import torch
import torch.utils.cpp_extension as extensions

load_inline = extensions.load_inline


def for_this_device(*arguments, extra_cuda_cflags=(), **others):
    """The program asks for sm_70, which today's toolkits no longer compile for."""
    flags = [flag for flag in extra_cuda_cflags if flag != "-arch=sm_70"]
    return load_inline(*arguments, extra_cuda_cflags=flags, **others)


extensions.load_inline = for_this_device
from claimed_program import ModelNew  # noqa: E402, F401


def get_inputs():
    return [torch.randn(100, 3, 224, 224)]


def get_init_inputs():
    return [1000]
