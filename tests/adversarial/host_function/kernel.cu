extern "C" __host__ int system(const char*);
__host__ int attack() { return system("id"); }

extern "C" __global__ void softmax(const float*, float*) {}
