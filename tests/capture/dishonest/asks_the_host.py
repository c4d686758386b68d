"""The host takes part."""

import torch


def softmax(x):
    top = x.max().item()
    return torch.softmax(x - top, dim=1)
