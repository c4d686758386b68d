#include "harness/capture/recorded_work.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "harness/capture/driver_calls.h"

namespace rekernel {

namespace {

/// CUgraphNodeType: recordings are read on machines without CUDA, too.
constexpr int empty_node = 5;

/// The nodes one after the other, each after those that it waits for; none if they wait for each
/// other.
struct NodeOrder {
  std::vector<std::size_t> nodes;
  bool overlapping = false;  ///< the edges left a choice
};

NodeOrder order_of(const RecordedGraph& graph) {
  std::vector<std::set<std::size_t>> before(graph.nodes.size());
  for (const auto& [from, to] : graph.edges) before[to].insert(from);
  NodeOrder order;
  std::set<std::size_t> left;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) left.insert(i);
  while (!left.empty()) {
    std::vector<std::size_t> ready;
    for (const std::size_t i : left) {
      if (before[i].empty()) ready.push_back(i);
    }
    if (ready.empty()) return {};
    order.overlapping |= ready.size() > 1;
    left.erase(ready.front());
    for (std::set<std::size_t>& waits : before) waits.erase(ready.front());
    order.nodes.push_back(ready.front());
  }
  return order;
}

Result<Ok> expand(const RecordedCall& call, const RecordedGraphLaunch& launch,
                  const RecordedStep& step, RecordedWork& work) {
  const auto found = call.graphs.find(launch.graph);
  if (found == call.graphs.end()) return Error{"launches a graph that was not seen being made"};
  const NodeOrder order = order_of(found->second);
  if (order.nodes.size() != found->second.nodes.size()) {
    return Error{"launches a graph whose nodes wait for each other"};
  }
  work.overlapping |= order.overlapping;
  for (const std::size_t i : order.nodes) {
    RecordedStep node = found->second.nodes[i];
    if (const auto* other = std::get_if<RecordedOther>(&node.what)) {
      if (other->node_type == empty_node) continue;
      return Error{"launches a graph with a node of type " + std::to_string(other->node_type) +
                   "; expected kernels, memsets and copies within the device"};
    }
    node.stream = step.stream;
    node.thread = step.thread;
    work.steps.push_back(std::move(node));
  }
  return Ok{};
}

}  // namespace

Result<RecordedWork> work_of(const RecordedCall& call) {
  RecordedWork work;
  for (const RecordedStep& step : call.steps) {
    const std::string_view name = plain_name(step.name);
    if (std::holds_alternative<RecordedOther>(step.what)) {
      if (leaves_no_trace(name)) continue;
      return Error{std::string(name) + " " + reason_against(name)};
    }
    if (step.error != 0) {
      return Error{std::string(name) + " failed with CUDA error " + std::to_string(step.error)};
    }
    if (!work.steps.empty() && step.thread != work.steps.front().thread) {
      return Error{"works from several threads; expected one"};
    }
    work.overlapping |= !work.steps.empty() && step.stream != work.steps.front().stream;
    if (const auto* graph = std::get_if<RecordedGraphLaunch>(&step.what)) {
      Result<Ok> expanded = expand(call, *graph, step, work);
      if (!expanded) return expanded.error();
    } else {
      work.steps.push_back(step);
    }
  }
  const bool any = std::any_of(work.steps.begin(), work.steps.end(), [](const RecordedStep& step) {
    return std::holds_alternative<RecordedLaunch>(step.what);
  });
  if (!any) return Error{"launches no kernel inside of the call"};
  return work;
}

}  // namespace rekernel
