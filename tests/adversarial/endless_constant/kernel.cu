constexpr int count() {
  int steps = 0;
  for (;;) ++steps;
  return steps;
}
constexpr int never = count();

extern "C" __global__ void softmax(const float*, float* y) { y[0] = never; }
