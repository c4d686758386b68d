#pragma once

#include <stdexcept>
#include <string_view>
#include <utility>

#include "harness/problems/catalog.h"
#include "harness/problems/problem_file.h"

namespace rekernel {

/// A problem of the catalog at other sizes.
inline Problem sized_problem(std::string_view id, const Sizes& sizes = {}) {
  const Problem* problem = find_problem(id);
  if (!problem) throw std::invalid_argument("no problem " + std::string(id));
  Result<Problem> sized = problem_at(*problem, sizes);
  if (!sized) throw std::invalid_argument(sized.error().message);
  return std::move(*sized);
}

/// A problem whose truth is a program's.
inline Problem program_problem() {
  Result<Problem> problem = parse_problem(
      R"json({"schema": 1, "id": "of_program", "title": "sums", "axes": {"rows": 4},
              "inputs": {"x": {"dtype": "f32", "shape": ["rows"], "draw": {"normal": [0, 1]}}},
              "outputs": {"y": {"dtype": "f32", "shape": ["rows"]}},
              "program": {"form": "flashinfer", "text": "def run(x):\n    return x.cumsum(0)\n",
                          "arguments": ["x"], "parameters": {}},
              "tolerance": "fp32"})json",
      "of_program.json", "of_program", "tests");
  if (!problem) throw std::invalid_argument(problem.error().message);
  return std::move(*problem);
}

}  // namespace rekernel
