extern "C" __global__ void softmax(const float* x, float* y) {
  float a, b, c, d;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
               : "l"(x + 1));
  y[threadIdx.x] = a + b + c + d;
}
