"""Attention with a running maximum and sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(query, key, value, result, length, scale, ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * WIDTH
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, WIDTH)
    keys = tl.arange(0, KEYS)
    q = tl.load(query + head + rows[:, None] * WIDTH + lanes[None, :])
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    sums = tl.zeros((ROWS, WIDTH), tl.float32)
    factor = scale * 1.4426950408889634
    for start in range(0, length, KEYS):
        k = tl.load(key + head + (start + keys)[None, :] * WIDTH + lanes[:, None])
        scores = tl.dot(q, k) * factor
        larger = tl.maximum(best, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(best - larger)
        total = total * shrink + tl.sum(weights, 1)
        v = tl.load(value + head + (start + keys)[:, None] * WIDTH + lanes[None, :])
        sums = tl.dot(weights.to(tl.float16), v, sums * shrink[:, None])
        best = larger
    tl.store(result + head + rows[:, None] * WIDTH + lanes[None, :], (sums / total[:, None]).to(tl.float16))


def attention(q, k, v):
    o = torch.empty_like(q)
    batch, heads, length, width = q.shape
    attend[(length // 128, batch * heads)](q, k, v, o, length, width ** -0.5, ROWS=128, KEYS=64, WIDTH=width,
                                           num_warps=8, num_stages=3)
    return o
