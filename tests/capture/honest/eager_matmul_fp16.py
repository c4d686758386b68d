"""A kernel of cuBLAS with tensor maps among its parameters."""

import torch


def matmul(a, b):
    return torch.matmul(a, b)
