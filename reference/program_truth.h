#pragma once

namespace rekernel {

/// The process of programs that give a problem's truth (`Problem::program`): it becomes a python3
/// that runs truth.py, and talks to the referee on descriptor first_served_descriptor. The
/// strangers' code in it sees the inputs, which it cannot write, and the truths, which are its own;
/// no network and no files but those of python3 where there is a sandbox. Returns only where there
/// is no python3: the exit status.
int run_truth_worker();

}  // namespace rekernel
