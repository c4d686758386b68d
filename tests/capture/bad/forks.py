import os
import time
if os.fork() == 0:
    time.sleep(600)
import torch


def softmax(x):
    return torch.softmax(x, dim=1)
