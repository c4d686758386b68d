// Every instance asks for two more that nobody else asks for: 2^24 of them.
template <int A, int B>
struct Bomb {
  static constexpr long long value = Bomb<A - 1, 2 * B>::value + Bomb<A - 1, 2 * B + 1>::value;
};
template <int B>
struct Bomb<0, B> {
  static constexpr long long value = B;
};
extern "C" __global__ void k(long long* x) { *x = Bomb<24, 1>::value; }
