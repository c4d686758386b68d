"""KernelBench's format, with CUDA C++ in the text."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void moments(const float* x, float* sums, int n) {
  const float4* image = reinterpret_cast<const float4*>(x + (long long)blockIdx.y * n);
  float a = 0, b = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
    float4 v = image[i];
    a += v.x + v.y + v.z + v.w;
    b += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int d = 16; d; d /= 2) { a += __shfl_xor_sync(~0u, a, d); b += __shfl_xor_sync(~0u, b, d); }
  if (threadIdx.x % 32 == 0) { atomicAdd(&sums[2 * blockIdx.y], a); atomicAdd(&sums[2 * blockIdx.y + 1], b); }
}
__global__ void normalise(const float* x, const float* w, const float* c, const float* sums, float* y, int n, float eps) {
  const float mean = sums[2 * blockIdx.y] / n;
  const float scale = rsqrtf(fmaxf(sums[2 * blockIdx.y + 1] / n - mean * mean, 0.f) + eps);
  const long long base = (long long)blockIdx.y * n;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n / 4; i += gridDim.x * blockDim.x) {
    float4 v = reinterpret_cast<const float4*>(x + base)[i], g = reinterpret_cast<const float4*>(w)[i], h = reinterpret_cast<const float4*>(c)[i];
    reinterpret_cast<float4*>(y + base)[i] = make_float4((v.x - mean) * scale * g.x + h.x, (v.y - mean) * scale * g.y + h.y,
                                                        (v.z - mean) * scale * g.z + h.z, (v.w - mean) * scale * g.w + h.w);
  }
}
torch::Tensor layernorm_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor c, double eps) {
  auto y = torch::empty_like(x);
  int n = w.numel();
  auto sums = torch::zeros({x.size(0), 2}, x.options());
  moments<<<dim3(64, x.size(0)), 512>>>(x.data_ptr<float>(), sums.data_ptr<float>(), n);
  normalise<<<dim3(256, x.size(0)), 512>>>(x.data_ptr<float>(), w.data_ptr<float>(), c.data_ptr<float>(), sums.data_ptr<float>(),
                                           y.data_ptr<float>(), n, eps);
  return y;
}
"""
module = load_inline(name="kb_layernorm", cpp_sources="torch::Tensor layernorm_cuda(torch::Tensor x, torch::Tensor w, torch::Tensor c, double eps);",
                     cuda_sources=cuda, functions=["layernorm_cuda"], verbose=False)


class ModelNew(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.ln = nn.LayerNorm(shape)

    def forward(self, x):
        return module.layernorm_cuda(x, self.ln.weight, self.ln.bias, self.ln.eps)


def get_inputs():
    return [torch.randn(16, 64, 256, 256)]


def get_init_inputs():
    return [(64, 256, 256)]
