"""KernelBench's format, with CUDA C++ in the text."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda = r"""
__global__ void softmax_rows(const float* x, float* y, int columns) {
  __shared__ float parts[32];
  const float4* row = reinterpret_cast<const float4*>(x + (long long)blockIdx.x * columns);
  float4* out = reinterpret_cast<float4*>(y + (long long)blockIdx.x * columns);
  float top = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
    float4 v = row[i];
    float larger = fmaxf(top, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    sum = sum * expf(top - larger) + expf(v.x - larger) + expf(v.y - larger) + expf(v.z - larger) + expf(v.w - larger);
    top = larger;
  }
  float all = top;
  for (int d = 16; d; d /= 2) all = fmaxf(all, __shfl_xor_sync(~0u, all, d));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = all;
  __syncthreads();
  for (int i = 0; i < blockDim.x / 32; ++i) all = fmaxf(all, parts[i]);
  __syncthreads();
  sum *= expf(top - all);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) sum += parts[i];
  float scale = 1 / sum;
  for (int i = threadIdx.x; i < columns / 4; i += blockDim.x) {
    float4 v = row[i];
    out[i] = make_float4(expf(v.x - all) * scale, expf(v.y - all) * scale, expf(v.z - all) * scale, expf(v.w - all) * scale);
  }
}
torch::Tensor softmax_cuda(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax_rows<<<x.size(0), 1024>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""
module = load_inline(name="kb_softmax", cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);", cuda_sources=cuda,
                     functions=["softmax_cuda"], verbose=False)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.softmax_cuda(x)


def get_inputs():
    return [torch.randn(4096, 65536)]


def get_init_inputs():
    return []
