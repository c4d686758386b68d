template <int depth>
struct Deeper {
  static constexpr int value = Deeper<depth + 1>::value;
};

extern "C" __global__ void softmax(const float*, float* y) { y[0] = Deeper<0>::value; }
