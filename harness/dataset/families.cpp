#include "harness/dataset/families.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "harness/base/files.h"
#include "harness/problems/catalog.h"

namespace rekernel {

namespace {

bool matches(std::string_view pattern, std::string_view problem) {
  if (!pattern.ends_with('*')) return pattern == problem;
  pattern.remove_suffix(1);
  return problem.starts_with(pattern);
}

const Family* listed_family(std::string_view problem) {
  for (const Family& family : listed_families()) {
    for (const std::string_view pattern : family.problems) {
      if (matches(pattern, problem)) return &family;
    }
  }
  return nullptr;
}

/// "kernelbench/level1/50" of a source "KernelBench level 1 at 423217d", 50. Empty for others.
std::string key_of(const Source& source) {
  constexpr std::string_view benchmark = "KernelBench level ";
  if (!source.benchmark.starts_with(benchmark)) return "";
  const std::string_view level = std::string_view(source.benchmark).substr(benchmark.size());
  return "kernelbench/level" + std::string(level.substr(0, level.find(' '))) + "/" +
         std::to_string(source.number);
}

/// A share of 256.
constexpr unsigned one_in_ten = 26;

}  // namespace

const std::vector<Family>& listed_families() {
  static const std::vector<Family> families{
      {"attention", Split::test, {"attention_*"}},
      {"conv2d",
       Split::train,
       {"conv2d*", "conv_depthwise2d*", "conv_pointwise2d", "conv_separable2d",
        "conv_transpose2d*"}},
      {"matmul", Split::train, {"matmul_*", "matvec", "moe_grouped_product_bf16", "swiglu_bf16"}},
      {"layernorm",
       Split::validation,
       {"layernorm*", "rmsnorm*", "groupnorm", "instancenorm", "batchnorm"}},
      {"softmax", Split::train, {"softmax", "softmax_wide", "softmax_backward", "log_softmax"}},
  };
  return families;
}

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  return "";
}

std::string family_of(std::string_view problem) {
  const Family* family = listed_family(problem);
  return family ? family->name : std::string(problem);
}

Split split_of(std::string_view problem) {
  if (const Family* family = listed_family(problem)) return family->split;
  unsigned byte = 0;
  const std::string digest = sha256_hex(problem);
  std::from_chars(digest.data(), digest.data() + 2, byte, 16);
  if (byte < one_in_ten) return Split::test;
  return byte < 2 * one_in_ten ? Split::validation : Split::train;
}

std::vector<std::string> contamination_keys(std::string_view problem) {
  const std::string family = family_of(problem);
  std::set<std::string> keys;
  for (const Problem& one : catalog()) {
    if (family_of(one.id) != family) continue;
    if (std::string key = key_of(one.source); !key.empty()) keys.insert(std::move(key));
  }
  return {keys.begin(), keys.end()};
}

}  // namespace rekernel
