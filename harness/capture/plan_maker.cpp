#include "harness/capture/plan_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "harness/candidate/code.h"
#include "harness/capture/call_comparison.h"
#include "harness/capture/copy_kernels.h"
#include "harness/capture/recorded_work.h"
#include "harness/capture/tensor_maps.h"
#include "harness/compile/cubin.h"

namespace rekernel {
namespace {

/// CUlaunchAttributeID and CUmemorytype, which no recording may depend on a header
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
constexpr int device_memory = 2;

constexpr std::int64_t workspace_alignment = 512;

class PlanMaker {
 public:
  PlanMaker(const Recording& recording, const ModuleBytes& modules, const Problem& problem)
      : recording_(recording), module_bytes_(modules), problem_(problem) {}

  /// What the plan has otherwise than the program; empty where it is the same.
  std::string note() const {
    constexpr const char* in_a_row =
        "; what the program has in several streams or branches of a graph runs in one here";
    return (overlapping_ ? in_a_row : "") + comparison_.note();
  }

  Result<Program> make() {
    if (recording_.calls.size() < 2) {
      return Error{"recorded " + counted(recording_.calls.size(), "whole call") + "; expected 2"};
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (Result<Ok> sound = check_tensors(recording_.calls[i]); !sound) return sound.error();
      Result<RecordedWork> work = work_of(recording_.calls[i]);
      if (!work) return work.error();
      overlapping_ |= work->overlapping;
      steps_[i] = std::move(work->steps);
      take_tensor_maps(recording_.calls[i], steps_[i]);
    }
    for (std::size_t i = 0; i < std::max(steps_[0].size(), steps_[1].size()); ++i) {
      if (Result<Ok> same = comparison_.compare(i); !same) return same.error();
    }
    find_workspaces();
    for (const RecordedStep& step : steps_[0]) {
      if (Result<Ok> added = add(step); !added) return added.error();
    }
    return finished();
  }

 private:
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
    const RecordedPlace place = place_of(call, map.address.address);
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
    const RecordedPlace place = place_of(first(), address.address);
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
    const std::string where = "kernel " + shown_kernel(recorded.kernel) + ": ";
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
    if (own_is_used) used_.push_back({Language::cuda, copy_kernels});
    if (used_.size() > most_modules) {
      return Error{"uses " + std::to_string(used_.size()) + " modules; expected at most " +
                   std::to_string(most_modules)};
    }
    set_code(program_, std::move(used_));
    return std::move(program_);
  }

  struct Range {
    std::string name;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  const Recording& recording_;
  const ModuleBytes& module_bytes_;
  const Problem& problem_;
  std::array<std::vector<RecordedStep>, 2> steps_;
  bool overlapping_ = false;
  CallComparison comparison_{recording_, steps_};
  std::map<std::int64_t, Range> workspaces_;  ///< by the allocation's address
  std::map<std::string, LoadedModule> loaded_;
  std::vector<Code> used_;
  std::optional<int> device_;
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
