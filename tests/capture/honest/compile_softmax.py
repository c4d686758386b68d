"""torch.compile makes one kernel of it."""

import torch


@torch.compile
def softmax(x):
    return torch.softmax(x, dim=1)
