#pragma once

#include <cstddef>
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
  unsigned gpus = 1;
  bool divided = false;  ///< into instances (MIG)
};
