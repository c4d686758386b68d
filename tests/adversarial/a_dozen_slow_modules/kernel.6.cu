// One of 12 modules that each take the assembler a while: module 6.
#include "problem.h"

#define ONCE sum = fmaf(sum, table[(at = at * 1664525u + 1013904223u) % 4096], sum * sum);
#define TWICE_1 ONCE ONCE
#define TWICE_2 TWICE_1 TWICE_1
#define TWICE_3 TWICE_2 TWICE_2
#define TWICE_4 TWICE_3 TWICE_3
#define TWICE_5 TWICE_4 TWICE_4
#define TWICE_6 TWICE_5 TWICE_5
#define TWICE_7 TWICE_6 TWICE_6
#define TWICE_8 TWICE_7 TWICE_7
#define TWICE_9 TWICE_8 TWICE_8
#define TWICE_10 TWICE_9 TWICE_9

extern "C" __global__ void slow_6(const float* table, float* y) {
  float sum = threadIdx.x;
  unsigned at = 6;
  TWICE_10
  if (sum == 12345.0f) y[0] = sum;
}
