import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size, stride=2, padding=1)

    def forward(self, x):
        return F.max_pool2d(torch.relu(self.conv(x)), 2)


batch_size = 16
in_channels = 12
out_channels = 32
kernel_size = 3


def get_inputs():
    return [torch.rand(batch_size, in_channels, 128, 96) * 2 - 1]


def get_init_inputs():
    return [in_channels, out_channels, kernel_size]
