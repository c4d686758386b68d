import torch
import torch.nn as nn

rows = 64

class Model(nn.Module):
    def forward(self, x):
        return torch.log(x - 2)


def get_inputs():
    return [torch.rand(rows)]
