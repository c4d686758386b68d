extern "C" __global__ void k(float* x) {
#pragma unroll
  for (int i = 0; i < 1000; ++i)
#pragma unroll
    for (int j = 0; j < 1000; ++j)
#pragma unroll
      for (int l = 0; l < 1000; ++l) x[i ^ j ^ l] += x[i * j + l] * static_cast<float>(i - j + l);
}
