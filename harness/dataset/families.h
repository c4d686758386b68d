#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

/// Which part of a data set a problem's rows belong to.
enum class Split { train, validation, test };
const char* to_string(Split split);

/// Problems whose kernels are much the same code: the same operation in other types, at other sizes
/// or with something fused. "conv2d" for conv2d_relu_maxpool. A problem of no listed family is its
/// own.
std::string family_of(std::string_view problem);

/// One split for a whole family, so that no kernel of a test problem is in training. It is listed,
/// or, for a problem of no listed family, decided by a hash of its id: one in ten each for
/// validation and test.
Split split_of(std::string_view problem);

/// Which problems of published benchmarks belong to the family, so that whoever is measured on
/// those can leave a row out: "kernelbench/level1/50". Sorted.
std::vector<std::string> contamination_keys(std::string_view problem);

/// The listed families, for pages and tests.
struct Family {
  const char* name;
  Split split;
  /// Ids of problems. One that ends with "*" stands for all that begin so.
  std::vector<std::string_view> problems;
};
const std::vector<Family>& listed_families();

}  // namespace rekernel
