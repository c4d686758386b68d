"""A kernel of PyTorch's own."""

import torch


def softmax(x):
    return torch.softmax(x, dim=1)
