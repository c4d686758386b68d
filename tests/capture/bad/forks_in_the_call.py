import os

import torch


def softmax(x):
    os.fork()
    return torch.softmax(x, dim=1)
