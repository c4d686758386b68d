import torch
import torch.nn as nn

rows = 64

calls = []


class Model(nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    calls.append(1)
    return [torch.rand(rows + len(calls))]
