#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ops/result.h"

namespace rekernel {

/// An address in a recorded process and the allocation that it lay in; no bytes where the driver
/// knew of none.
struct RecordedAddress {
  std::int64_t address = 0;
  std::int64_t start = 0;
  std::int64_t bytes = 0;
  int memory_type = 0;  ///< CUmemorytype: 1 host, 2 device
  bool managed = false;
  int device = 0;
};

/// A tensor map as the driver was asked to encode it, and what it made. Enumerators are CUDA's
/// numbers; dimensions run from the innermost outwards.
struct RecordedTensorMap {
  std::string bytes;
  RecordedAddress address;
  int type = 0;  ///< CUtensorMapDataType
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;  ///< in bytes, one fewer than dimensions
  std::vector<std::int64_t> box;
  std::vector<std::int64_t> element_strides;
  int interleave = 0;
  int swizzle = 0;
  int promotion = 0;
  int fill = 0;
};

struct RecordedParameter {
  std::string bytes;
  std::vector<std::pair<std::int64_t, RecordedAddress>> addresses;  ///< by their place in the bytes
  /// The same of tensor maps, whose bytes are then 0 and hold no address (tensor_maps.h finds
  /// them).
  std::vector<std::pair<std::int64_t, RecordedTensorMap>> tensor_maps;
};

struct RecordedLaunch {
  std::string kernel;
  int module = -1;  ///< -1: not known by its handle
  std::array<std::int64_t, 3> grid{};
  std::array<std::int64_t, 3> block{};
  std::int64_t shared_bytes = 0;
  bool cooperative = false;
  std::vector<std::pair<int, std::string>>
      attributes;  ///< CUlaunchAttributeID and the value's bytes
  std::vector<RecordedParameter> parameters;
};

struct RecordedMemset {
  RecordedAddress to;
  std::int64_t value = 0;
  std::int64_t width = 1;  ///< bytes of the value
  std::int64_t count = 0;  ///< of values
};

struct RecordedCopy {
  RecordedAddress to;
  RecordedAddress from;
  std::int64_t bytes = 0;
};

struct RecordedGraphLaunch {
  std::int64_t graph = 0;
};

/// A call of the driver that is known by its name alone.
struct RecordedOther {
  int node_type = -1;  ///< of a graph's node: CUgraphNodeType
};

struct RecordedStep {
  std::string name;  ///< "cuLaunchKernelEx"; of a graph's node "node"
  std::int64_t thread = 0;
  std::int64_t stream = 0;
  std::int64_t error = 0;  ///< CUresult
  std::variant<RecordedOther, RecordedLaunch, RecordedMemset, RecordedCopy, RecordedGraphLaunch>
      what;
};

/// A graph as it was instantiated: nodes, and edges between them by their numbers.
struct RecordedGraph {
  std::vector<RecordedStep> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> edges;
};

struct RecordedTensor {
  std::string name;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
};

/// One call of the program's function, as it was noted around it.
struct RecordedCall {
  std::vector<RecordedTensor> inputs;
  std::vector<RecordedTensor> outputs;
  std::vector<RecordedStep> steps;
  std::map<std::int64_t, RecordedGraph> graphs;  ///< by handle, as they were when the call began
};

/// What one process did, in its own words: a stranger's.
struct Recording {
  std::string problem;               ///< why the recorder could not work; empty if it could
  std::vector<std::string> modules;  ///< file names by number, beside the log
  std::vector<RecordedCall> calls;
  std::vector<RecordedTensorMap> tensor_maps;  ///< in the order in which they were encoded
  std::vector<std::int64_t> call_ns;           ///< of further marked calls, from mark to mark
  std::vector<std::int64_t> device_ns;         ///< the same, of their work on the device
};

/// Reads a log of the recorder (recorder.cpp says what it writes). Every line is looked at: its
/// keys, kinds and ranges. `where` starts error messages.
Result<Recording> read_recording(std::string_view log, const std::string& where);

}  // namespace rekernel
