"""The inputs of conv2d, which its program does not say: they stand in another file of its project."""

import torch
from claimed_program import ModelNew  # noqa: F401


def get_inputs():
    return [torch.randn(100, 3, 224, 224)]


def get_init_inputs():
    return [1000]
