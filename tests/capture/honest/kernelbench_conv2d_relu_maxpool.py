"""KernelBench's format, with CUDA C++ in the text."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void convolve(const float* x, const float* w, const float* bias, float* y) {
  __shared__ float filter[8][363];
  for (int i = threadIdx.x; i < 8 * 363; i += blockDim.x) filter[i / 363][i % 363] = w[blockIdx.y * 8 * 363 + i];
  __syncthreads();
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= 100 * 55 * 55) return;
  const int image = at / 3025, row = at % 3025 / 55, column = at % 55;
  float sum[8] = {};
  for (int c = 0; c < 3; ++c)
    for (int r = 0; r < 11; ++r)
      for (int s = 0; s < 11; ++s) {
        const int i = row * 4 + r - 2, j = column * 4 + s - 2;
        const float v = i >= 0 && i < 224 && j >= 0 && j < 224 ? x[((image * 3 + c) * 224 + i) * 224 + j] : 0.f;
        for (int f = 0; f < 8; ++f) sum[f] += v * filter[f][(c * 11 + r) * 11 + s];
      }
  for (int f = 0; f < 8; ++f) y[(image * 96 + blockIdx.y * 8 + f) * 3025 + row * 55 + column] = sum[f] + bias[blockIdx.y * 8 + f];
}

__global__ void pool(const float* x, float* y) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= 100 * 96 * 27 * 27) return;
  const float* plane = x + (long long)(at / 729) * 3025;
  const int row = at % 729 / 27 * 2, column = at % 27 * 2;
  float top = 0;
  for (int r = 0; r < 3; ++r) for (int c = 0; c < 3; ++c) top = fmaxf(top, plane[(row + r) * 55 + column + c]);
  y[at] = top;
}
torch::Tensor fused_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  auto t = torch::empty({100, 96, 55, 55}, x.options());
  auto y = torch::empty({100, 96, 27, 27}, x.options());
  convolve<<<dim3((302500 + 255) / 256, 12), 256>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), t.data_ptr<float>());
  pool<<<(100 * 96 * 729 + 255) / 256, 256>>>(t.data_ptr<float>(), y.data_ptr<float>());
  return y;
}
"""
module = load_inline(name="kb_fused", cpp_sources="torch::Tensor fused_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                     cuda_sources=cuda, functions=["fused_cuda"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 96, 11, stride=4, padding=2)

    def forward(self, x):
        return module.fused_cuda(x, self.conv.weight, self.conv.bias)


def get_inputs():
    return [torch.randn(100, 3, 224, 224)]


def get_init_inputs():
    return []
