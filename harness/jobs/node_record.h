#pragma once

#include <map>
#include <string>
#include <vector>

namespace rekernel {

/// Which nodes get no more jobs, and why.
class NodeRecord {
 public:
  void note_success(const std::string& node) { failures_.erase(node); }
  /// Whether the node has failed too often, without a success between its failures.
  bool note_failure(const std::string& node) { return ++failures_[node] >= most_failures; }

  /// False where the node has no name, or is excluded already.
  bool exclude(const std::string& node, const std::string& why) {
    return !node.empty() && excluded_.emplace(node, why).second;
  }
  /// With the reasons.
  const std::map<std::string, std::string>& excluded() const { return excluded_; }
  std::vector<std::string> excluded_names() const {
    std::vector<std::string> names;
    for (const auto& [node, why] : excluded_) names.push_back(node);
    return names;
  }

 private:
  static constexpr int most_failures = 2;

  std::map<std::string, std::string> excluded_;
  std::map<std::string, int> failures_;
};

}  // namespace rekernel
