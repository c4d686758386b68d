#pragma once

#include <cstddef>
#include <functional>

namespace rekernel {

/// Calls work(0) to work(count - 1), each once, on up to `workers` threads (at least one), and
/// returns when all are done. `work` does not throw.
void for_each_in_parallel(std::size_t count, unsigned workers,
                          const std::function<void(std::size_t)>& work);

}  // namespace rekernel
