"""torch.compile calls cuDNN, and makes kernels for the order of the data."""

import torch
import torch.nn.functional as F


@torch.compile
def convolve(input, weight, bias):
    return F.conv2d(input, weight, bias, stride=4, padding=2)
