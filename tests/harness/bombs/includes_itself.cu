// The problem's header is the only one that a test can make include itself.
#include "problem.h"
extern "C" __global__ void k() {}
