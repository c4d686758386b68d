import os
import time

import torch

if os.fork() == 0:
    time.sleep(600)


def softmax(x):
    return torch.softmax(x, dim=1)
