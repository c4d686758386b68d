"""Inputs for which the answer is easy."""

import torch


def softmax(x):
    x.zero_()
    return torch.softmax(x, dim=1)
