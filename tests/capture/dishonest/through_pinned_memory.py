"""The result goes by way of the host."""

import torch
store = torch.empty(4096, 65536, pin_memory=True)


def softmax(x):
    store.copy_(torch.softmax(x, dim=1), non_blocking=True)
    return store.to("cuda", non_blocking=True)
