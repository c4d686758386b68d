import torch


def softmax(x):
    raise ValueError("no idea how")
