#pragma once

#include <cstddef>
#include <string>
#include <vector>

/// What the stand-in for NVML (fake_nvml.cpp) answers when it is asked for a list of processes.
struct FakeNvmlList {
  struct Process {
    unsigned pid;
    unsigned long long memory;
  };
  int status = 0;
  std::size_t entry_size = 24;  ///< v2 and v3 of most drivers; 16 and 32 exist
  std::vector<Process> processes;
};

struct FakeNvmlLists {
  FakeNvmlList compute, mps_clients, graphics;
  std::string uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";  ///< of each
  unsigned gpus = 1;
  bool divided = false;  ///< into instances (MIG)
};
