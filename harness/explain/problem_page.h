#pragma once

#include <boost/json/fwd.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "harness/records/record.h"
#include "harness/terminal/tables.h"
#include "ops/problem.h"

namespace rekernel {

/// What a problem can cost on one device, and what it took there.
struct ProblemOnDevice {
  std::string device;
  std::int64_t speed_of_light_ns = 0;  ///< 0: no bound
  std::int64_t ceiling_ns = 0;         ///< 0: nothing was measured on this device
  /// Recorded times, 0 where there is none; `kernel` is the fastest that passed.
  std::string kernel;
  std::int64_t kernel_ns = 0;
  std::string library;  ///< the fastest reference of a library
  std::int64_t library_ns = 0;
  std::int64_t pytorch_ns = 0;
  std::int64_t pytorch_compile_ns = 0;
};

/// Of every known chip and every recorded device; devices with times first.
std::vector<ProblemOnDevice> problem_on_devices(const Problem& problem,
                                                const std::vector<Bench>& benches);

/// Everything that the author of a kernel needs to know; in CSV the table of devices alone.
/// `kernels` are the committed ones, as "NAME (sm_90a)".
std::string problem_page(const Problem& problem, const std::vector<std::string>& kernels,
                         const std::vector<ProblemOnDevice>& devices, const TableFormat& format);
boost::json::object problem_json(const Problem& problem, const std::vector<std::string>& kernels,
                                 const std::vector<ProblemOnDevice>& devices);

}  // namespace rekernel
