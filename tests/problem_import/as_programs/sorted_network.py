import torch
import torch.nn as nn

rows = 64
features = 32


class Model(nn.Module):
    """What is computed depends on values, so that nothing can be traced."""

    def __init__(self, count):
        super().__init__()
        self.linear = nn.Linear(count, count)
        self.norm = nn.BatchNorm1d(count)

    def forward(self, x, limit, output):
        y = self.norm(self.linear(x))
        if y.sum() > limit:
            return y, output
        return torch.sort(y, dim=1)[0], output[output]


def get_inputs():
    return [torch.rand(rows, features), 1e30, torch.randperm(rows)]


def get_init_inputs():
    return [features]
