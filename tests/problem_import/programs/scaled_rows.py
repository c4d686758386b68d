import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows that are normalised by their mean square and scaled by channel."""

    def __init__(self, channels, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.eps = eps

    def forward(self, x):
        mean_square = x.square().mean(dim=-1, keepdim=True)
        return x / torch.sqrt(mean_square + self.eps) * self.weight


rows = 4096
channels = 1024


def get_inputs():
    return [torch.randn(rows, channels)]


def get_init_inputs():
    return [channels, 1e-5]
