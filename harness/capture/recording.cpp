#include "harness/capture/recording.h"

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <optional>

#include "harness/base/json.h"
#include "harness/base/text.h"
#include "ops/program.h"

namespace rekernel {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t max_lines = 1u << 20;
constexpr std::size_t max_modules_loaded = 4096;
constexpr std::size_t max_nodes = 4096;
constexpr std::size_t max_parameter_bytes = 32764;

std::string read_bytes(JsonReader reader, std::size_t max_bytes) {
  const std::optional<std::string> bytes = from_hexadecimal(reader.string(2 * max_bytes));
  if (!bytes) reader.expect("pairs of hexadecimal digits");
  return bytes.value_or("");
}

RecordedAddress read_address(JsonReader reader) {
  RecordedAddress address;
  address.address = reader.required("address").integer(0, largest);
  if (reader.has("bytes")) {
    address.start = reader.required("start").integer(0, largest);
    address.bytes = reader.required("bytes").integer(1, largest);
    address.memory_type = static_cast<int>(reader.required("type").integer(0, 255));
    address.managed = reader.required("managed").integer(0, 255) != 0;
    address.device = static_cast<int>(reader.required("device").integer(-2, 4096));
    if (!reader.error() &&
        (address.address < address.start || address.address - address.start >= address.bytes)) {
      reader.fail("the address lies outside of its allocation");
    }
  }
  reader.no_other_keys();
  return address;
}

RecordedParameter read_parameter(JsonReader reader) {
  RecordedParameter parameter;
  reader.required("offset").integer(0, max_parameter_bytes);
  parameter.bytes = read_bytes(reader.required("bytes"), max_parameter_bytes);
  if (auto pointers = reader.optional("pointers")) {
    for (JsonReader& entry : pointers->array(1, max_parameter_bytes / 8)) {
      std::vector<JsonReader> pair = entry.array(2, 2);
      if (reader.error()) return parameter;
      const std::int64_t at = pair[0].integer(0, max_parameter_bytes);
      const std::int64_t free =
          parameter.addresses.empty() ? 0 : parameter.addresses.back().first + 8;
      if (at % 8 != 0 || at < free || at + 8 > static_cast<std::int64_t>(parameter.bytes.size())) {
        pair[0].fail("expected multiples of 8, rising, inside of the bytes");
      }
      parameter.addresses.emplace_back(at, read_address(pair[1]));
    }
  }
  reader.no_other_keys();
  return parameter;
}

std::vector<std::int64_t> read_numbers(JsonReader reader, std::size_t count, std::int64_t min) {
  std::vector<std::int64_t> numbers;
  for (JsonReader& number : reader.array(count, count)) {
    numbers.push_back(number.integer(min, std::int64_t{1} << 40));
  }
  return numbers;
}

RecordedTensorMap read_tensor_map(JsonReader& reader) {
  const auto enumerator = [&](const char* key) {
    return static_cast<int>(reader.required(key).integer(0, 255));
  };
  RecordedTensorMap map;
  map.address = read_address(reader.required("of"));
  map.type = enumerator("type");
  map.interleave = enumerator("interleave");
  map.swizzle = enumerator("swizzle");
  map.promotion = enumerator("promotion");
  map.fill = enumerator("fill");
  JsonReader bytes = reader.required("bytes");
  map.bytes = read_bytes(bytes, tensor_map_bytes);
  if (map.bytes.size() != tensor_map_bytes) bytes.fail("expected 128 bytes");
  const auto rank = static_cast<std::size_t>(reader.required("rank").integer(1, 5));
  map.dims = read_numbers(reader.required("dims"), rank, 1);
  map.strides = read_numbers(reader.required("strides"), rank - 1, 0);
  map.box = read_numbers(reader.required("box"), rank, 1);
  map.element_strides = read_numbers(reader.required("element_strides"), rank, 1);
  return map;
}

std::array<std::int64_t, 3> read_extents(JsonReader reader) {
  std::array<std::int64_t, 3> extents{};
  std::vector<JsonReader> numbers = reader.array(3, 3);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    extents[i] = numbers[i].integer(1, std::numeric_limits<std::int32_t>::max());
  }
  return extents;
}

RecordedLaunch read_launch(JsonReader& reader) {
  RecordedLaunch launch;
  launch.kernel = reader.required("kernel").string(4096);
  if (auto module = reader.optional("module")) {
    launch.module = static_cast<int>(module->integer(0, max_modules_loaded - 1));
  }
  launch.grid = read_extents(reader.required("grid"));
  launch.block = read_extents(reader.required("block"));
  launch.shared_bytes = reader.required("shared_bytes").integer(0, 1 << 24);
  if (auto flag = reader.optional("cooperative")) launch.cooperative = flag->boolean();
  if (auto attributes = reader.optional("attributes")) {
    for (JsonReader& entry : attributes->array(0, 64)) {
      std::vector<JsonReader> pair = entry.array(2, 2);
      if (reader.error()) return launch;
      const int id = static_cast<int>(pair[0].integer(0, 1 << 16));
      launch.attributes.emplace_back(id, read_bytes(pair[1], 256));
    }
  }
  for (JsonReader& parameter : reader.required("parameters").array(0, 4096)) {
    launch.parameters.push_back(read_parameter(parameter));
  }
  return launch;
}

/// What a call or a graph's node does, by the keys that are there.
RecordedStep read_step(JsonReader& reader) {
  RecordedStep step;
  if (reader.has("kernel")) {
    step.what = read_launch(reader);
  } else if (reader.has("value")) {
    RecordedMemset memset;
    memset.to = read_address(reader.required("to"));
    memset.value = reader.required("value").integer(0, std::numeric_limits<std::uint32_t>::max());
    JsonReader width = reader.required("width");
    memset.width = width.integer(1, 4);
    if (memset.width == 3) width.fail("expected 1, 2 or 4");
    memset.count = reader.required("count").integer(0, std::int64_t{1} << 48);
    step.what = memset;
  } else if (reader.has("from")) {
    RecordedCopy copy;
    copy.to = read_address(reader.required("to"));
    copy.from = read_address(reader.required("from"));
    copy.bytes = reader.required("count").integer(0, std::int64_t{1} << 48);
    step.what = copy;
  } else if (reader.has("graph")) {
    step.what = RecordedGraphLaunch{reader.required("graph").integer(0, largest)};
  }
  return step;
}

class LogReader {
 public:
  explicit LogReader(std::string where) : where_(std::move(where)) {}

  Result<Recording> read(std::string_view log) {
    while (!log.empty()) {
      const std::size_t end = log.find('\n');
      // A process that was killed leaves half a line.
      if (end == std::string_view::npos) break;
      if (++line_ > max_lines) {
        return Error{where_ + ": more than " + std::to_string(max_lines) + " lines"};
      }
      const std::string place = where_ + ": line " + std::to_string(line_);
      const Result<boost::json::value> value = parse_json(log.substr(0, end), place);
      if (!value) return value.error();
      JsonReader reader(place, *value);
      read_line(reader);
      if (auto error = reader.error()) return *error;
      log.remove_prefix(end + 1);
    }
    if (in_call_) recording_.calls.pop_back();  // it never ended
    return std::move(recording_);
  }

 private:
  void read_line(JsonReader& reader) {
    const std::string event = reader.required("event").string(32);
    if (reader.error()) return;
    if (event == "start") {
      reader.required("cupti").integer(0, largest);
      recording_.problem = reader.required("problem").string(1000);
    } else if (event == "module") {
      read_module(reader);
    } else if (event == "graph") {
      read_graph(reader);
    } else if (event == "tensor_map") {
      recording_.tensor_maps.push_back(read_tensor_map(reader));
    } else if (event == "time") {
      const bool device = reader.required("device").boolean();
      (device ? recording_.device_ns : recording_.call_ns)
          .push_back(reader.required("ns").integer(1, std::int64_t{1} << 50));
    } else if (event == "note") {
      read_note(reader.required("note"));
    } else if (event == "call") {
      read_call(reader);
    } else {
      reader.fail("unknown event");
    }
    reader.no_other_keys();
  }

  void read_module(JsonReader& reader) {
    const auto id = static_cast<std::size_t>(
        reader.required("id").integer(0, static_cast<std::int64_t>(max_modules_loaded) - 1));
    reader.required("bytes").integer(0, largest);
    const std::string file = reader.required("file").string(64);
    const bool plain = !file.empty() && std::all_of(file.begin(), file.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.';
    });
    if (!plain || file.front() == '.') reader.fail("file: expected digits, a-z and dots");
    if (recording_.modules.size() <= id) recording_.modules.resize(id + 1);
    recording_.modules[id] = file;
  }

  void read_graph(JsonReader& reader) {
    RecordedGraph graph;
    const std::int64_t handle = reader.required("graph").integer(0, largest);
    for (JsonReader& node : reader.required("nodes").array(0, max_nodes)) {
      node.required("event").string(32);
      int type = -1;
      if (auto given = node.optional("type")) type = static_cast<int>(given->integer(0, 255));
      RecordedStep step = read_step(node);
      step.name = "node";
      if (auto* other = std::get_if<RecordedOther>(&step.what)) other->node_type = type;
      node.no_other_keys();
      graph.nodes.push_back(std::move(step));
    }
    const auto count = static_cast<std::int64_t>(graph.nodes.size());
    for (JsonReader& edge : reader.required("edges").array(0, 16 * max_nodes)) {
      std::vector<JsonReader> pair = edge.array(2, 2);
      if (reader.error()) return;
      const std::int64_t from = pair[0].integer(0, count - 1);
      const std::int64_t to = pair[1].integer(0, count - 1);
      graph.edges.emplace_back(static_cast<std::size_t>(from), static_cast<std::size_t>(to));
    }
    graphs_[handle] = std::move(graph);
  }

  static RecordedTensor read_tensor(const std::string& name, JsonReader reader) {
    RecordedTensor tensor;
    tensor.name = name;
    std::vector<JsonReader> pair = reader.array(2, 2);
    if (reader.error()) return tensor;
    tensor.address = pair[0].integer(1, largest);
    tensor.bytes = pair[1].integer(0, std::int64_t{1} << 48);
    if (tensor.bytes > largest - tensor.address) reader.fail("reaches beyond all addresses");
    return tensor;
  }

  /// {"call": 1, "tensors": {"x": [address, bytes]}} before a call and {"call": 1, "outputs":
  /// {"y": [address, bytes]}} after it.
  void read_note(JsonReader reader) {
    const auto number = static_cast<std::size_t>(reader.required("call").integer(1, 1000));
    if (reader.has("tensors")) {
      if (in_call_ || number != recording_.calls.size() + 1) {
        reader.fail("a call begins out of turn");
      }
      RecordedCall call;
      for (auto& [name, entry] : reader.required("tensors").entries()) {
        call.inputs.push_back(read_tensor(name, entry));
      }
      call.graphs = graphs_;
      recording_.calls.push_back(std::move(call));
      in_call_ = true;
    } else {
      JsonReader outputs = reader.required("outputs");
      if (!in_call_ || number != recording_.calls.size()) {
        reader.fail("a call ends out of turn");
      } else {
        for (auto& [name, entry] : outputs.entries()) {
          recording_.calls.back().outputs.push_back(read_tensor(name, entry));
        }
      }
      in_call_ = false;
    }
    reader.no_other_keys();
  }

  void read_call(JsonReader& reader) {
    RecordedStep step = read_step(reader);
    step.name = one_line(reader.required("name").string(128), 128);
    step.thread = reader.required("thread").integer(0, largest);
    if (auto stream = reader.optional("stream")) step.stream = stream->integer(0, largest);
    if (auto result = reader.optional("result")) step.error = result->integer(1, 1 << 20);
    if (!in_call_) {
      reader.fail("a call of the driver outside of the program's calls");
    } else {
      recording_.calls.back().steps.push_back(std::move(step));
    }
  }

  std::string where_;
  std::size_t line_ = 0;
  Recording recording_;
  std::map<std::int64_t, RecordedGraph> graphs_;
  bool in_call_ = false;
};

}  // namespace

Result<Recording> read_recording(std::string_view log, const std::string& where) {
  return LogReader(where).read(log);
}

}  // namespace rekernel
