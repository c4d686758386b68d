"""torch.compile makes three kernels of it."""

import torch
import torch.nn.functional as F


@torch.compile
def layer_norm(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias, 1e-5)
