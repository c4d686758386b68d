#include "harness/capture/plan_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/code.h"
#include "harness/capture/tensor_maps.h"
#include "harness/compile/cubin.h"

namespace rekernel {
namespace {

/// CUlaunchAttributeID, CUgraphNodeType and CUmemorytype, which no recording may depend on a header
/// for: recordings are read on machines without CUDA, too.
enum AttributeId : int {
  ignored = 0,
  access_policy_window = 1,
  cooperative = 2,
  synchronization_policy = 3,
  cluster_dimension = 4,
  cluster_scheduling = 5,
  programmatic_serialization = 6,
  priority = 8,
  memory_domain_map = 9,
  memory_domain = 10,
  shared_memory_carveout = 14,
};
constexpr int empty_node = 5;
constexpr int device_memory = 2;

constexpr std::int64_t workspace_alignment = 512;

/// Copies and fills that the driver does itself have no kernel in a candidate's plan: these stand
/// for them.
constexpr const char* copy_source = R"cuda(// What a captured program asked the driver for.
extern "C" __global__ void copy_bytes(unsigned char* to, const unsigned char* from, long long bytes) {
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long step = gridDim.x * static_cast<long long>(blockDim.x);
  const bool aligned = ((reinterpret_cast<unsigned long long>(to) |
                         reinterpret_cast<unsigned long long>(from)) & 15) == 0;
  const long long wide = aligned ? bytes / 16 : 0;
  for (long long i = first; i < wide; i += step) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  for (long long i = 16 * wide + first; i < bytes; i += step) to[i] = from[i];
}

// `width` bytes of `value`, `count` times; `width` is 1, 2 or 4.
extern "C" __global__ void fill_bytes(unsigned char* to, unsigned int value, int width,
                                      long long count) {
  const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  const long long step = gridDim.x * static_cast<long long>(blockDim.x);
  const long long bytes = count * width;
  const unsigned int word = width == 1   ? (value & 0xff) * 0x01010101u
                            : width == 2 ? (value & 0xffff) * 0x00010001u
                                         : value;
  const bool aligned = (reinterpret_cast<unsigned long long>(to) & 15) == 0;
  const long long wide = aligned ? bytes / 16 : 0;
  for (long long i = first; i < wide; i += step) {
    reinterpret_cast<uint4*>(to)[i] = make_uint4(word, word, word, word);
  }
  for (long long i = 16 * wide + first; i < bytes; i += step) {
    to[i] = static_cast<unsigned char>(value >> (8 * (i % width)));
  }
}
)cuda";

/// The name without what tells versions and default streams apart: cuMemcpyDtoHAsync_v2_ptsz.
std::string_view plain_name(std::string_view name) {
  for (const std::string_view ending : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    if (name.ends_with(ending)) name.remove_suffix(ending.size());
  }
  return name;
}

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](std::string_view beginning) { return text.starts_with(beginning); });
}

/// Whether a call of the driver changes nothing that the work on the device could notice:
/// questions, memory and code made ready, waiting. Not a list of what to refuse: what is not known
/// is refused.
bool leaves_no_trace(std::string_view name) {
  return begins_with_any(name, {"cuCtxGet",
                                "cuCtxResetPersistingL2Cache",
                                "cuCtxSetCacheConfig",
                                "cuCtxSetCurrent",
                                "cuCtxPushCurrent",
                                "cuCtxPopCurrent",
                                "cuCtxSynchronize",
                                "cuDevicePrimaryCtx",
                                "cuDeviceCanAccessPeer",
                                "cuDeviceComputeCapability",
                                "cuDeviceGet",
                                "cuDeviceTotalMem",
                                "cuDriverGet",
                                "cuEventCreate",
                                "cuEventDestroy",
                                "cuEventElapsedTime",
                                "cuEventQuery",
                                "cuEventRecord",
                                "cuEventSynchronize",
                                "cuFuncGet",
                                "cuFuncIsLoaded",
                                "cuFuncLoad",
                                "cuFuncSetAttribute",
                                "cuFuncSetCacheConfig",
                                "cuFuncSetSharedMemConfig",
                                "cuGetError",
                                "cuGetExportTable",
                                "cuGetProcAddress",
                                "cuInit",
                                "cuKernelGet",
                                "cuKernelSetAttribute",
                                "cuKernelSetCacheConfig",
                                "cuLibraryGet",
                                "cuLibraryLoadData",
                                "cuMemAddress",
                                "cuMemAllocAsync",
                                "cuMemAllocFromPool",
                                "cuMemAllocPitch",
                                "cuMemCreate",
                                "cuMemFree",
                                "cuMemGet",
                                "cuMemMap",
                                "cuMemPool",
                                "cuMemRelease",
                                "cuMemRetain",
                                "cuMemSetAccess",
                                "cuMemUnmap",
                                "cuModuleGet",
                                "cuModuleLoad",
                                "cuModuleEnumerateFunctions",
                                "cuOccupancy",
                                "cuPointerGet",
                                "cuStreamCreate",
                                "cuStreamDestroy",
                                "cuStreamGet",
                                "cuStreamIsCapturing",
                                "cuStreamQuery",
                                "cuStreamSynchronize",
                                "cuStreamWaitEvent",
                                "cuTensorMap",
                                "cuThreadExchangeStreamCaptureMode"}) ||
         name == "cuMemAlloc";
}

/// Why a call of the driver cannot become part of a plan.
std::string reason_against(std::string_view name) {
  if (begins_with_any(name, {"cuMemcpyDtoH", "cuMemcpyAtoH"})) {
    return "copies from the device to the host inside of the call: what it does next may depend on "
           "results";
  }
  if (begins_with_any(name, {"cuMemcpyHtoD", "cuMemcpyHtoA"})) {
    return "copies from the host to the device inside of the call: part of the work is the host's";
  }
  if (begins_with_any(name, {"cuLaunchHostFunc", "cuStreamAddCallback"})) {
    return "runs host code in the stream";
  }
  if (begins_with_any(name, {"cuStreamBeginCapture", "cuGraphInstantiate", "cuGraphExec"})) {
    return "makes or changes a graph inside of the call; do that while it warms up";
  }
  if (begins_with_any(name, {"cuMemAllocManaged", "cuMemPrefetch", "cuMemAdvise", "cuMemHost",
                             "cuMemAllocHost"})) {
    return "uses pinned or managed memory";
  }
  if (begins_with_any(name, {"cuMemcpyPeer", "cuMemcpy3DPeer"})) return "uses another device";
  return "is not known to leave the work on the device as it is";
}

class PlanMaker {
 public:
  PlanMaker(const Recording& recording, const ModuleBytes& modules, const Problem& problem)
      : recording_(recording), module_bytes_(modules), problem_(problem) {}

  /// What the plan has of the first call alone; empty where the two were the same.
  std::string note() const {
    if (padded_.empty()) return {};
    return "; " + counted(differing_bytes_, "byte") +
           " of parameters differed between the two recorded calls and are those of one: " +
           joined(padded_) + (padded_.size() == max_padded_shown ? ", …" : "");
  }

  Result<Program> make() {
    if (recording_.calls.size() < 2) {
      return Error{"recorded " + counted(recording_.calls.size(), "whole call") + "; expected 2"};
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (Result<Ok> sound = check_tensors(recording_.calls[i]); !sound) return sound.error();
      Result<std::vector<RecordedStep>> steps = work_of(recording_.calls[i]);
      if (!steps) return steps.error();
      steps_[i] = *std::move(steps);
      take_tensor_maps(recording_.calls[i], steps_[i]);
    }
    for (std::size_t i = 0; i < std::max(steps_[0].size(), steps_[1].size()); ++i) {
      if (Result<Ok> same = compare(i); !same) return same.error();
    }
    find_workspaces();
    for (const RecordedStep& step : steps_[0]) {
      if (Result<Ok> added = add(step); !added) return added.error();
    }
    return finished();
  }

 private:
  /// Where an address lies: in a tensor, or elsewhere on the device.
  struct Place {
    std::string tensor;  ///< empty: elsewhere
    std::int64_t offset = 0;
  };

  const RecordedCall& first() const { return recording_.calls[0]; }

  Result<Ok> check_tensors(const RecordedCall& call) const {
    if (Result<Ok> inputs = check_given(call.inputs, Role::input); !inputs) return inputs;
    return check_given(call.outputs, Role::output);
  }

  Result<Ok> check_given(const std::vector<RecordedTensor>& tensors, Role role) const {
    const std::string what = role == Role::input ? "input" : "output";
    std::set<std::string> given;
    for (const RecordedTensor& tensor : tensors) {
      const Tensor* known = problem_.find_tensor(tensor.name);
      if (!known || known->role != role || !given.insert(tensor.name).second) {
        return Error{"the recording has an " + what + " \"" + one_line(tensor.name, 64) +
                     "\", which is not one of " + problem_.id + "'s"};
      }
      if (Result<Ok> fits = check_bytes(tensor, *known); !fits) return fits;
    }
    const std::size_t all =
        role == Role::input ? problem_.inputs().size() : problem_.outputs().size();
    if (given.size() == all) return Ok{};
    return Error{"the recording does not have all " + what + "s of " + problem_.id};
  }

  static Result<Ok> check_bytes(const RecordedTensor& tensor, const Tensor& known) {
    if (tensor.bytes == known.bytes()) return Ok{};
    return Error{"tensor \"" + known.name + "\" has " + std::to_string(tensor.bytes) +
                 " bytes; expected " + std::to_string(known.bytes())};
  }

  /// Everything of a call that works on the device, graphs expanded, if it is one row of steps.
  static Result<std::vector<RecordedStep>> work_of(const RecordedCall& call) {
    std::vector<RecordedStep> work;
    for (const RecordedStep& step : call.steps) {
      const std::string_view name = plain_name(step.name);
      if (std::holds_alternative<RecordedOther>(step.what)) {
        if (leaves_no_trace(name)) continue;
        return Error{std::string(name) + " " + reason_against(name)};
      }
      if (step.error != 0) {
        return Error{std::string(name) + " failed with CUDA error " + std::to_string(step.error)};
      }
      if (!work.empty() && step.stream != work.front().stream) {
        return Error{"works in several streams; expected one"};
      }
      if (!work.empty() && step.thread != work.front().thread) {
        return Error{"works from several threads; expected one"};
      }
      if (const auto* graph = std::get_if<RecordedGraphLaunch>(&step.what)) {
        Result<Ok> expanded = expand(call, *graph, step, work);
        if (!expanded) return expanded.error();
      } else {
        work.push_back(step);
      }
    }
    const bool any = std::any_of(work.begin(), work.end(), [](const RecordedStep& step) {
      return std::holds_alternative<RecordedLaunch>(step.what);
    });
    if (!any) return Error{"launches no kernel inside of the call"};
    return work;
  }

  static Result<Ok> expand(const RecordedCall& call, const RecordedGraphLaunch& launch,
                           const RecordedStep& step, std::vector<RecordedStep>& work) {
    const auto found = call.graphs.find(launch.graph);
    if (found == call.graphs.end()) return Error{"launches a graph that was not seen being made"};
    Result<std::vector<std::size_t>> order = order_of(found->second);
    if (!order) return order.error();
    for (const std::size_t i : *order) {
      RecordedStep node = found->second.nodes[i];
      if (const auto* other = std::get_if<RecordedOther>(&node.what)) {
        if (other->node_type == empty_node) continue;
        return Error{"launches a graph with a node of type " + std::to_string(other->node_type) +
                     "; expected kernels, memsets and copies within the device"};
      }
      node.stream = step.stream;
      node.thread = step.thread;
      work.push_back(std::move(node));
    }
    return Ok{};
  }

  /// The nodes one after the other, where the edges leave no choice.
  static Result<std::vector<std::size_t>> order_of(const RecordedGraph& graph) {
    std::vector<std::set<std::size_t>> before(graph.nodes.size());
    for (const auto& [from, to] : graph.edges) before[to].insert(from);
    std::vector<std::size_t> order;
    std::set<std::size_t> left;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) left.insert(i);
    while (!left.empty()) {
      std::vector<std::size_t> ready;
      for (const std::size_t i : left) {
        if (before[i].empty()) ready.push_back(i);
      }
      if (ready.size() != 1) return Error{"launches a graph whose nodes may overlap"};
      left.erase(ready.front());
      for (std::set<std::size_t>& waits : before) waits.erase(ready.front());
      order.push_back(ready.front());
    }
    return order;
  }

  Place place_of(const RecordedCall& call, std::int64_t address) const {
    const auto holds = [&](const RecordedTensor& tensor) {
      return address >= tensor.address && address - tensor.address < tensor.bytes;
    };
    for (const std::vector<RecordedTensor>* tensors : {&call.outputs, &call.inputs}) {
      for (const RecordedTensor& tensor : *tensors) {
        if (holds(tensor)) return {tensor.name, address - tensor.address};
      }
    }
    return {};
  }

  /// Takes the tensor maps that a plan can say out of the bytes of parameters.
  void take_tensor_maps(const RecordedCall& call, std::vector<RecordedStep>& steps) const {
    for (RecordedStep& step : steps) {
      auto* launch = std::get_if<RecordedLaunch>(&step.what);
      if (!launch) continue;
      for (RecordedParameter& parameter : launch->parameters) {
        for (const auto& [at, map] : find_maps(parameter, recording_.tensor_maps)) {
          if (can_be_planned(call, *map)) take_map(parameter, at, *map);
        }
      }
    }
  }

  bool can_be_planned(const RecordedCall& call, const RecordedTensorMap& map) const {
    if (map.address.bytes == 0) return false;
    const Place place = place_of(call, map.address.address);
    const Tensor* tensor = problem_.find_tensor(place.tensor);
    const std::int64_t offset = tensor ? place.offset : map.address.address - map.address.start;
    const std::int64_t bytes = tensor ? tensor->bytes() : map.address.bytes;
    return planned_map(map, "any", offset, bytes).has_value();
  }

  static void take_map(RecordedParameter& parameter, std::int64_t at,
                       const RecordedTensorMap& map) {
    std::fill_n(parameter.bytes.begin() + at, tensor_map_bytes, '\0');
    std::erase_if(parameter.addresses, [&](const auto& address) {
      return address.first + 8 > at && address.first < at + tensor_map_bytes;
    });
    parameter.tensor_maps.emplace_back(at, map);
  }

  /// Step i of both calls must do the same in the same places; which piece of the rest of the
  /// memory it is may differ, and so may padding.
  Result<Ok> compare(std::size_t i) {
    const auto differs = [&](const std::string& what) {
      return Error{"step " + std::to_string(i) + " of the two recorded calls differs: " + what};
    };
    if (i >= steps_[0].size() || i >= steps_[1].size()) {
      return differs(std::to_string(steps_[0].size()) + " steps, then " +
                     std::to_string(steps_[1].size()));
    }
    auto& one = steps_[0][i].what;
    const auto& other = steps_[1][i].what;
    if (one.index() != other.index()) return differs("another kind of work");
    if (const auto* memset = std::get_if<RecordedMemset>(&one)) {
      const auto& second = std::get<RecordedMemset>(other);
      if (memset->value != second.value || memset->width != second.width ||
          memset->count != second.count || !same_place(memset->to, second.to)) {
        return differs("a memset");
      }
    } else if (const auto* copy = std::get_if<RecordedCopy>(&one)) {
      const auto& second = std::get<RecordedCopy>(other);
      if (copy->bytes != second.bytes || !same_place(copy->to, second.to) ||
          !same_place(copy->from, second.from)) {
        return differs("a copy");
      }
    } else {
      const std::string difference =
          difference_of(std::get<RecordedLaunch>(one), std::get<RecordedLaunch>(other));
      if (!difference.empty()) return differs(difference);
    }
    return Ok{};
  }

  bool same_place(const RecordedAddress& one, const RecordedAddress& other) const {
    const Place first = place_of(recording_.calls[0], one.address);
    const Place second = place_of(recording_.calls[1], other.address);
    return first.tensor == second.tensor && first.offset == second.offset;
  }

  /// What differs; empty where nothing does but padding, which `one` then holds.
  std::string difference_of(RecordedLaunch& one, const RecordedLaunch& other) {
    if (one.kernel != other.kernel) {
      return "kernel " + shown(one.kernel) + ", then " + shown(other.kernel);
    }
    const std::string kernel = "kernel " + shown(one.kernel) + ": ";
    if (one.module != other.module || one.grid != other.grid || one.block != other.block ||
        one.shared_bytes != other.shared_bytes || one.cooperative != other.cooperative ||
        one.attributes != other.attributes || one.parameters.size() != other.parameters.size()) {
      return kernel + "its grid, block, attributes or module";
    }
    for (std::size_t i = 0; i < one.parameters.size(); ++i) {
      RecordedParameter& first = one.parameters[i];
      const RecordedParameter& second = other.parameters[i];
      const std::string parameter = kernel + "parameter " + std::to_string(i) + ", ";
      if (!same_maps(first, second)) return parameter + "its tensor maps";
      const std::string as_recorded = first.bytes;
      if (may_hold_padding(first, second)) keep_chance_addresses_as_bytes(first, second);
      if (!same_addresses(first, second)) return parameter + "its addresses";
      const std::string bytes = without_addresses(first);
      const std::string again = without_addresses(second, first);
      const auto [at, _] = std::mismatch(bytes.begin(), bytes.end(), again.begin(), again.end());
      if (bytes == again && first.bytes == as_recorded) continue;
      if (!may_hold_padding(first, second)) {
        return parameter + "byte " + std::to_string(at - bytes.begin());
      }
      note_padding(one.kernel, i, without_addresses({as_recorded, first.addresses, {}}), again);
    }
    return {};
  }

  bool same_maps(const RecordedParameter& one, const RecordedParameter& other) const {
    return std::equal(one.tensor_maps.begin(), one.tensor_maps.end(), other.tensor_maps.begin(),
                      other.tensor_maps.end(), [&](const auto& first, const auto& second) {
                        return first.first == second.first &&
                               same_description(first.second, second.second) &&
                               same_place(first.second.address, second.second.address);
                      });
  }

  /// Whether every address of the first is there in the other, too, and in the same place. A scalar
  /// that is an address in one call is one in the other.
  bool same_addresses(const RecordedParameter& one, const RecordedParameter& other) const {
    if (!may_hold_padding(one, other) && one.addresses.size() != other.addresses.size()) {
      return false;
    }
    return std::all_of(one.addresses.begin(), one.addresses.end(), [&](const auto& first) {
      return std::any_of(other.addresses.begin(), other.addresses.end(), [&](const auto& second) {
        return first.first == second.first && same_place(first.second, second.second);
      });
    });
  }

  /// A scalar has none. What differs in a structure may have been left there by whoever used the
  /// stack before; if it was not, the plan is judged for what it is.
  static bool may_hold_padding(const RecordedParameter& one, const RecordedParameter& other) {
    return one.bytes.size() > sizeof(std::int64_t) && one.bytes.size() == other.bytes.size();
  }

  /// What is an address in one call and none in the other came there by chance: it stays as the
  /// bytes of the call in which it is none.
  static void keep_chance_addresses_as_bytes(RecordedParameter& one,
                                             const RecordedParameter& other) {
    const auto in_other = [&](std::int64_t at) {
      return std::any_of(other.addresses.begin(), other.addresses.end(),
                         [&](const auto& address) { return address.first == at; });
    };
    std::erase_if(one.addresses, [&](const auto& address) {
      const auto at = address.first;
      if (in_other(at)) return false;
      std::copy_n(other.bytes.begin() + at, 8, one.bytes.begin() + at);
      return true;
    });
  }

  void note_padding(const std::string& kernel, std::size_t parameter, const std::string& bytes,
                    const std::string& again) {
    std::size_t differing = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) differing += bytes[at] != again[at] ? 1 : 0;
    differing_bytes_ += differing;
    if (padded_.size() == max_padded_shown) return;
    padded_.push_back(shown(kernel) + ", parameter " + std::to_string(parameter));
  }

  static std::string without_addresses(const RecordedParameter& parameter) {
    return without_addresses(parameter, parameter);
  }

  /// The bytes of one parameter without the addresses of another.
  static std::string without_addresses(const RecordedParameter& parameter,
                                       const RecordedParameter& addresses) {
    std::string bytes = parameter.bytes;
    for (const auto& [at, address] : addresses.addresses) {
      std::fill_n(bytes.begin() + at, 8, '\0');
    }
    return bytes;
  }

  static std::string shown(const std::string& kernel) { return one_line(kernel, 100); }

  /// Every address of a step.
  static std::vector<RecordedAddress> addresses_of(const RecordedStep& step) {
    std::vector<RecordedAddress> addresses;
    if (const auto* launch = std::get_if<RecordedLaunch>(&step.what)) {
      for (const RecordedParameter& parameter : launch->parameters) {
        for (const auto& [at, address] : parameter.addresses) addresses.push_back(address);
        for (const auto& [at, map] : parameter.tensor_maps) addresses.push_back(map.address);
      }
    } else if (const auto* memset = std::get_if<RecordedMemset>(&step.what)) {
      addresses.push_back(memset->to);
    } else if (const auto* copy = std::get_if<RecordedCopy>(&step.what)) {
      addresses = {copy->to, copy->from};
    }
    return addresses;
  }

  /// One workspace an allocation, from the first address that is used to its end.
  void find_workspaces() {
    for (const RecordedStep& step : steps_[0]) {
      for (const RecordedAddress& address : addresses_of(step)) {
        if (address.bytes == 0 || !place_of(first(), address.address).tensor.empty()) continue;
        const std::int64_t begin = address.address - address.address % workspace_alignment;
        const auto [known, fresh] = workspaces_.try_emplace(address.start);
        Range& range = known->second;
        range.begin = fresh ? begin : std::min(range.begin, begin);
        range.end = std::max(range.end, address.start + address.bytes);
      }
    }
    for (auto& [start, range] : workspaces_) {
      range.name = "workspace_" + std::to_string(program_.workspaces.size());
      program_.workspaces.push_back({range.name, range.end - range.begin});
    }
  }

  /// A name of the plan and an offset, or why the address cannot be one.
  Result<BytesArgument::Address> resolved(const RecordedAddress& address, std::int64_t at) const {
    if (address.bytes == 0) return Error{"uses memory that the driver does not know"};
    if (address.managed) return Error{"uses managed memory"};
    if (address.memory_type != device_memory) return Error{"uses memory of the host"};
    if (device_ && *device_ != address.device) return Error{"uses several devices"};
    const Place place = place_of(first(), address.address);
    if (!place.tensor.empty()) {
      return BytesArgument::Address{at, place.tensor, place.offset};
    }
    const Range& range = workspaces_.at(address.start);
    return BytesArgument::Address{at, range.name, address.address - range.begin};
  }

  Result<Ok> add(const RecordedStep& step) {
    for (const RecordedAddress& address : addresses_of(step)) {
      if (!device_) device_ = address.device;
    }
    if (const auto* launch = std::get_if<RecordedLaunch>(&step.what)) return add_launch(*launch);
    if (const auto* copy = std::get_if<RecordedCopy>(&step.what)) return add_copy(*copy);
    return add_memset(std::get<RecordedMemset>(step.what));
  }

  static Argument argument_of(BytesArgument::Address address) {
    if (address.offset_bytes == 0) return BufferArgument{std::move(address.buffer)};
    return BytesArgument{std::string(8, '\0'), {std::move(address)}, {}};
  }

  /// One of our own kernels, with a thread for every element: the driver's own copies are as fast
  /// as the memory, and a grid that goes over it several times is not.
  KernelLaunch own_launch(const char* kernel, std::int64_t elements) {
    constexpr std::int64_t block = 512;
    constexpr std::int64_t max_blocks = std::numeric_limits<std::int32_t>::max();
    KernelLaunch launch;
    launch.kernel = kernel;
    launch.module = -1;  // after the program's own, whose number is not known yet
    launch.grid[0].count = std::clamp<std::int64_t>((elements + block - 1) / block, 1, max_blocks);
    launch.block = {block, 1, 1};
    return launch;
  }

  Result<Ok> add_copy(const RecordedCopy& copy) {
    if (copy.bytes == 0) return Ok{};
    Result<BytesArgument::Address> to = inside(copy.to, copy.bytes);
    if (!to) return Error{"a copy " + to.error().message};
    Result<BytesArgument::Address> from = inside(copy.from, copy.bytes);
    if (!from) return Error{"a copy " + from.error().message};
    KernelLaunch launch = own_launch("copy_bytes", copy.bytes / 16);
    launch.args = {argument_of(*std::move(to)), argument_of(*std::move(from)),
                   ScalarArgument{copy.bytes}};
    program_.steps.emplace_back(std::move(launch));
    return Ok{};
  }

  /// An address with so many bytes after it in its buffer.
  Result<BytesArgument::Address> inside(const RecordedAddress& address, std::int64_t bytes) const {
    Result<BytesArgument::Address> place = resolved(address, 0);
    if (!place) return place;
    if (bytes > bytes_of(place->buffer) - place->offset_bytes) {
      return Error{"reaches past the end of its memory"};
    }
    return place;
  }

  /// Of a tensor or a workspace of the plan.
  std::int64_t bytes_of(const std::string& buffer) const {
    if (const Tensor* tensor = problem_.find_tensor(buffer)) return tensor->bytes();
    for (const Workspace& workspace : program_.workspaces) {
      if (workspace.name == buffer) return workspace.bytes;
    }
    return 0;
  }

  Result<Ok> add_memset(const RecordedMemset& memset) {
    if (memset.count == 0) return Ok{};
    const std::int64_t bytes = memset.count * memset.width;
    Result<BytesArgument::Address> to = inside(memset.to, bytes);
    if (!to) return Error{"a memset " + to.error().message};
    if (const Tensor* tensor = problem_.find_tensor(to->buffer)) {
      if (tensor->role == Role::input) return Error{"a memset writes to input " + tensor->name};
    } else if (memset.width == 1) {
      program_.steps.emplace_back(
          Memset{to->buffer, static_cast<std::uint8_t>(memset.value), to->offset_bytes, bytes});
      return Ok{};
    }
    KernelLaunch launch = own_launch("fill_bytes", (bytes + 15) / 16);
    launch.args = {
        argument_of(*std::move(to)), ScalarArgument{static_cast<std::uint32_t>(memset.value)},
        ScalarArgument{static_cast<std::int32_t>(memset.width)}, ScalarArgument{memset.count}};
    program_.steps.emplace_back(std::move(launch));
    return Ok{};
  }

  Result<Ok> add_launch(const RecordedLaunch& recorded) {
    const std::string where = "kernel " + shown(recorded.kernel) + ": ";
    KernelLaunch launch;
    launch.kernel = recorded.kernel;
    Result<int> module = module_of(recorded);
    if (!module) return Error{where + module.error().message};
    launch.module = *module;
    for (std::size_t i = 0; i < 3; ++i) launch.grid[i].count = recorded.grid[i];
    launch.block = recorded.block;
    launch.dynamic_shared_bytes = recorded.shared_bytes;
    launch.cooperative = recorded.cooperative;
    for (const auto& [id, value] : recorded.attributes) {
      if (Result<Ok> taken = take_attribute(id, value, launch); !taken) {
        return Error{where + taken.error().message};
      }
    }
    for (const RecordedParameter& parameter : recorded.parameters) {
      Result<Argument> argument = argument_of(parameter);
      if (!argument) return Error{where + argument.error().message};
      launch.args.push_back(*std::move(argument));
    }
    program_.steps.emplace_back(std::move(launch));
    return Ok{};
  }

  static Result<Ok> take_attribute(int id, const std::string& value, KernelLaunch& launch) {
    std::array<std::uint32_t, 3> words{};
    if (value.size() < sizeof words) return Error{"a launch attribute is too short"};
    std::memcpy(words.data(), value.data(), sizeof words);
    switch (id) {
      case ignored:
      case access_policy_window:
      case synchronization_policy:
      case cluster_scheduling:
      case priority:
      case memory_domain_map:
      case memory_domain:
        return Ok{};  // hints: they change no result
      case shared_memory_carveout:
        if (words[0] <= most_carveout) {  // else no preference
          launch.shared_memory_carveout = static_cast<int>(words[0]);
        }
        return Ok{};
      case cooperative:
        launch.cooperative |= words[0] != 0;
        return Ok{};
      case cluster_dimension:
        for (std::size_t i = 0; i < 3; ++i) {
          launch.cluster[i] = std::max<std::int64_t>(1, words[i]);
        }
        return Ok{};
      case programmatic_serialization:
        launch.programmatic_launch = words[0] != 0;
        return Ok{};
      default:
        return Error{"launch attribute " + std::to_string(id) + " cannot be captured"};
    }
  }

  Result<Argument> argument_of(const RecordedParameter& parameter) const {
    BytesArgument argument{without_addresses(parameter), {}, {}};
    for (const auto& [at, recorded] : parameter.addresses) {
      Result<BytesArgument::Address> address = resolved(recorded, at);
      if (!address) return address.error();
      argument.addresses.push_back(*std::move(address));
    }
    for (const auto& [at, recorded] : parameter.tensor_maps) {
      const Result<BytesArgument::Address> address = resolved(recorded.address, at);
      if (!address) return address.error();
      std::optional<TensorMapArgument> map =
          planned_map(recorded, address->buffer, address->offset_bytes, bytes_of(address->buffer));
      if (!map) return Error{"its tensor map at byte " + std::to_string(at)};
      argument.tensor_maps.push_back({at, *std::move(map)});
    }
    if (argument.tensor_maps.size() == 1 && argument.bytes.size() == tensor_map_bytes) {
      return Argument{std::move(argument.tensor_maps.front().map)};
    }
    if (argument.bytes.size() == 8 && argument.addresses.size() == 1) {
      return argument_of(std::move(argument.addresses.front()));
    }
    if (argument.addresses.empty() && argument.bytes.size() == sizeof(std::int32_t)) {
      std::int32_t value = 0;
      std::memcpy(&value, argument.bytes.data(), sizeof value);
      return Argument{ScalarArgument{value}};
    }
    return Argument{std::move(argument)};
  }

  /// The module that a launched kernel is in, as a module of the candidate. By its handle where
  /// that was seen being loaded, else by its name, which then must be in one module alone.
  Result<int> module_of(const RecordedLaunch& launch) {
    std::set<std::string> with_kernel;
    for (std::size_t i = 0; i < recording_.modules.size(); ++i) {
      if (launch.module >= 0 && i != static_cast<std::size_t>(launch.module)) continue;
      if (recording_.modules[i].empty()) continue;
      Result<const LoadedModule*> module = load(recording_.modules[i]);
      if (!module) return module.error();
      const bool has =
          std::any_of((*module)->kernels.begin(), (*module)->kernels.end(),
                      [&](const KernelResources& kernel) { return kernel.name == launch.kernel; });
      if (has) with_kernel.insert((*module)->bytes);
    }
    if (with_kernel.empty()) return Error{"is in none of the modules that were recorded"};
    if (with_kernel.size() > 1) return Error{"is in several of the modules that were recorded"};
    const auto known = std::find_if(used_.begin(), used_.end(), [&](const Code& code) {
      return code.text == *with_kernel.begin();
    });
    if (known != used_.end()) return static_cast<int>(known - used_.begin());
    used_.push_back({Language::cubin, *with_kernel.begin()});
    return static_cast<int>(used_.size() - 1);
  }

  struct LoadedModule {
    std::string bytes;
    std::vector<KernelResources> kernels;
  };

  /// Modules that are no machine code have no kernels here.
  Result<const LoadedModule*> load(const std::string& file) {
    const auto found = loaded_.find(file);
    if (found != loaded_.end()) return &found->second;
    Result<std::string> bytes = module_bytes_(file);
    if (!bytes) return bytes.error();
    Result<std::vector<KernelResources>> kernels = read_cubin(*bytes);
    LoadedModule module{*std::move(bytes), {}};
    if (kernels) module.kernels = *std::move(kernels);
    return &loaded_.emplace(file, std::move(module)).first->second;
  }

  Result<Program> finished() {
    const int own = static_cast<int>(used_.size());
    bool own_is_used = false;
    for (Step& step : program_.steps) {
      auto* launch = std::get_if<KernelLaunch>(&step);
      if (!launch || launch->module >= 0) continue;
      launch->module = own;
      own_is_used = true;
    }
    if (own_is_used) used_.push_back({Language::cuda, copy_source});
    if (used_.size() > most_modules) {
      return Error{"uses " + std::to_string(used_.size()) + " modules; expected at most " +
                   std::to_string(most_modules)};
    }
    set_code(program_, std::move(used_));
    return std::move(program_);
  }

  static constexpr std::size_t max_padded_shown = 8;

  struct Range {
    std::string name;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  const Recording& recording_;
  const ModuleBytes& module_bytes_;
  const Problem& problem_;
  std::array<std::vector<RecordedStep>, 2> steps_;
  std::map<std::int64_t, Range> workspaces_;  ///< by the allocation's address
  std::map<std::string, LoadedModule> loaded_;
  std::vector<Code> used_;
  std::optional<int> device_;
  std::size_t differing_bytes_ = 0;
  std::vector<std::string> padded_;  ///< where they are; not all, if there are many
  Program program_;
};

}  // namespace

Result<Candidate> make_plan(const Recording& recording, const ModuleBytes& modules,
                            const Problem& problem, Arch arch, const std::string& name,
                            const std::string& program) {
  if (!recording.problem.empty()) {
    return Error{"the recorder: " + one_line(recording.problem, 200)};
  }
  PlanMaker maker(recording, modules, problem);
  Result<Program> plan = maker.make();
  if (!plan) return plan.error();
  Candidate candidate;
  candidate.problem = problem.id;
  candidate.name = name;
  candidate.arch = arch;
  candidate.idea = "Captured from " + program + ": the device code and launches of one call.";
  candidate.origin.note = "captured from " + program + maker.note();
  candidate.program = *std::move(plan);
  // Everything in it is a stranger's: let the one validation judge it.
  Result<Candidate> judged =
      parse_candidate(candidate_json(candidate), code_of(candidate.program), "the captured plan");
  return judged;
}

}  // namespace rekernel
