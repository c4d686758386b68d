import torch
import torch.nn as nn

rows = 64

class Model(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


def get_inputs():
    return [torch.rand(rows)]
