import torch
import torch.nn as nn

rows = 64

class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.qr(x)[0]


def get_inputs():
    return [torch.rand(rows, rows)]
