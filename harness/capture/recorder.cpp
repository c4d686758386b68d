// A library that CUDA loads into a stranger's process (CUDA_INJECTION64_PATH). It writes down what
// the process asks the driver for: one file of JSON lines a process, and the bytes of every module
// beside it. Nothing here decides anything: what it writes is a stranger's word, since the process
// that it runs in is one, and plan_maker.h treats it so.
//
// It links neither the driver nor CUPTI: both are in the process, or are opened from it.

#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/capture/recorder_marks.h"

namespace {

/// The driver's functions that a launch is asked about with.
struct Driver {
  decltype(&::cuFuncGetParamInfo) function_parameter = nullptr;
  decltype(&::cuKernelGetParamInfo) kernel_parameter = nullptr;
  decltype(&::cuFuncGetName) function_name = nullptr;
  decltype(&::cuKernelGetName) kernel_name = nullptr;
  decltype(&::cuFuncGetModule) function_module = nullptr;
  decltype(&::cuKernelGetLibrary) kernel_library = nullptr;
  decltype(&::cuPointerGetAttributes) pointer_attributes = nullptr;
  decltype(&::cuGraphGetNodes) graph_nodes = nullptr;
  decltype(&::cuGraphGetEdges) graph_edges = nullptr;
  decltype(&::cuGraphNodeGetType) node_type = nullptr;
  decltype(&::cuGraphKernelNodeGetParams) kernel_node = nullptr;
  decltype(&::cuGraphKernelNodeGetAttribute) kernel_node_attribute = nullptr;
  decltype(&::cuGraphMemsetNodeGetParams) memset_node = nullptr;
  decltype(&::cuGraphMemcpyNodeGetParams) copy_node = nullptr;
};

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
}

struct Recorder {
  Driver driver;
  pid_t process = 0;
  int log = -1;
  std::string folder;
  std::mutex mutex;
  std::map<std::uint64_t, int> module_of_handle;  ///< CUmodule and CUlibrary
  int modules = 0;
  std::atomic<int> windows{0};  ///< above 0 while a call is recorded
};

Recorder* recorder = nullptr;

/// What one thread is in the middle of.
struct Thread {
  bool inside = false;      ///< our own calls of the driver are not written down
  std::vector<int> loaded;  ///< modules since the outermost call began
  int depth = 0;
};
thread_local Thread thread;

/// While it lives, the driver's calls of this thread are our own.
class Ours {
 public:
  Ours() { thread.inside = true; }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;
  ~Ours() { thread.inside = false; }
};

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
      result += escape.data();
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string hexadecimal(const void* bytes, std::size_t size) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  result.reserve(2 * size);
  for (std::size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<const unsigned char*>(bytes)[i];
    result += digits[byte >> 4];
    result += digits[byte & 15];
  }
  return result;
}

template <class Handle>
std::uint64_t number_of(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uint64_t>(handle);
  } else {
    return static_cast<std::uint64_t>(handle);
  }
}

/// One line of the log.
class Line {
 public:
  explicit Line(std::string_view event) { add("event", event); }

  Line& raw(std::string_view key, std::string_view json) {
    text_ += text_.empty() ? '{' : ',';
    text_ += quoted(key) + ":" + std::string(json);
    return *this;
  }
  Line& add(std::string_view key, std::string_view text) { return raw(key, quoted(text)); }
  Line& number(std::string_view key, std::uint64_t value) {
    return raw(key, std::to_string(value));
  }
  std::string json() const { return text_ + "}"; }

 private:
  std::string text_;
};

void write_whole(int file, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(file, bytes, size);
    if (written <= 0) return;  // the disk is full: the log ends without its last line
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

/// A child that was forked has the file, too, and may not write into it.
void write_line(const Line& line) {
  if (::getpid() != recorder->process) return;
  const std::string text = line.json() + "\n";
  const std::lock_guard lock(recorder->mutex);
  write_whole(recorder->log, text.data(), text.size());
}

void record_module(const CUpti_ModuleResourceData& module) {
  int id = 0;
  {
    const std::lock_guard lock(recorder->mutex);
    id = recorder->modules++;
  }
  const std::string name = std::to_string(recorder->process) + "." + std::to_string(id) + ".module";
  const std::string path = recorder->folder + "/" + name;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) {
    write_whole(file, module.pCubin, module.cubinSize);
    ::close(file);
  }
  thread.loaded.push_back(id);
  write_line(Line("module")
                 .number("id", static_cast<std::uint64_t>(id))
                 .number("bytes", module.cubinSize)
                 .add("file", name));
}

/// A handle that the program got for what it just loaded.
void remember_handle(std::uint64_t handle) {
  if (thread.loaded.size() != 1) return;
  const std::lock_guard lock(recorder->mutex);
  recorder->module_of_handle[handle] = thread.loaded.front();
}

/// The memory that a word of a parameter points into, as JSON; empty if it points nowhere.
std::string pointed_at(std::uint64_t word) {
  if (word < 4096) return {};
  CUdeviceptr start = 0;
  std::size_t size = 0;
  unsigned type = 0;
  unsigned managed = 0;
  int device = -1;
  std::array attributes = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                           CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                           CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, 5> values = {&start, &size, &type, &managed, &device};
  if (recorder->driver.pointer_attributes(5, attributes.data(), values.data(), word) !=
          CUDA_SUCCESS ||
      size == 0) {
    return {};
  }
  std::string json = "{\"address\":" + std::to_string(word) + ",\"start\":" + std::to_string(start);
  json += ",\"bytes\":" + std::to_string(size) + ",\"type\":" + std::to_string(type);
  json += ",\"managed\":" + std::to_string(managed) + ",\"device\":" + std::to_string(device) + "}";
  return json;
}

std::int64_t bytes_from(std::uint64_t address) {
  CUdeviceptr start = 0;
  std::size_t size = 0;
  unsigned type = 0;
  std::array attributes = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                           CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
  std::array<void*, 3> values = {&start, &size, &type};
  const CUresult asked =
      recorder->driver.pointer_attributes(3, attributes.data(), values.data(), address);
  if (asked != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE) return 0;
  return static_cast<std::int64_t>(start + size - address);
}

/// Offset, bytes and pointers of one parameter.
std::string parameter_json(const unsigned char* bytes, std::size_t offset, std::size_t size) {
  std::string pointers;
  for (std::size_t at = 0; at + 8 <= size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + at, sizeof word);
    const std::string target = pointed_at(word);
    if (target.empty()) continue;
    pointers += (pointers.empty() ? "" : ",") + ("[" + std::to_string(at) + "," + target + "]");
  }
  std::string json = "{\"offset\":" + std::to_string(offset) + ",\"bytes\":\"";
  json += hexadecimal(bytes, size) + "\"";
  if (!pointers.empty()) json += ",\"pointers\":[" + pointers + "]";
  return json + "}";
}

/// A function by either kind of handle: libraries launch CUkernel handles as CUfunction.
class Function {
 public:
  explicit Function(CUfunction handle) : handle_(handle) {
    const char* name = nullptr;
    std::size_t offset = 0;
    std::size_t size = 0;
    const CUresult first = driver().function_parameter(handle, 0, &offset, &size);
    is_kernel_ = first != CUDA_SUCCESS && first != CUDA_ERROR_INVALID_VALUE;
    const CUresult named =
        is_kernel_ ? driver().kernel_name(&name, kernel()) : driver().function_name(&name, handle_);
    if (named == CUDA_SUCCESS && name) name_ = name;
  }

  const std::string& name() const { return name_; }

  bool parameter(std::size_t index, std::size_t& offset, std::size_t& size) const {
    const CUresult result = is_kernel_
                                ? driver().kernel_parameter(kernel(), index, &offset, &size)
                                : driver().function_parameter(handle_, index, &offset, &size);
    return result == CUDA_SUCCESS;
  }

  /// The module that the function is known to come from, or -1.
  int module() const {
    std::uint64_t owner = 0;
    if (is_kernel_) {
      CUlibrary library = nullptr;
      if (driver().kernel_library(&library, kernel()) == CUDA_SUCCESS) owner = number_of(library);
    } else {
      CUmodule module = nullptr;
      if (driver().function_module(&module, handle_) == CUDA_SUCCESS) owner = number_of(module);
    }
    const std::lock_guard lock(recorder->mutex);
    const auto found = recorder->module_of_handle.find(owner);
    return found == recorder->module_of_handle.end() ? -1 : found->second;
  }

 private:
  static const Driver& driver() { return recorder->driver; }
  CUkernel kernel() const { return reinterpret_cast<CUkernel>(handle_); }

  CUfunction handle_;
  bool is_kernel_ = false;
  std::string name_;
};

struct Launch {
  CUfunction function = nullptr;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned shared_bytes = 0;
  void** parameters = nullptr;
  void** extra = nullptr;
  bool cooperative = false;
  const CUlaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

std::string triple(const std::array<unsigned, 3>& extents) {
  return "[" + std::to_string(extents[0]) + "," + std::to_string(extents[1]) + "," +
         std::to_string(extents[2]) + "]";
}

/// The packed parameters of a launch that hands over one buffer, or nullptr.
const unsigned char* packed_parameters(void** extra) {
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      return static_cast<const unsigned char*>(extra[1]);
    }
  }
  return nullptr;
}

void add_launch(Line& line, const Launch& launch) {
  const Function function(launch.function);
  line.add("kernel", function.name());
  if (const int module = function.module(); module >= 0) {
    line.number("module", static_cast<std::uint64_t>(module));
  }
  line.raw("grid", triple(launch.grid)).raw("block", triple(launch.block));
  line.number("shared_bytes", launch.shared_bytes);
  if (launch.cooperative) line.raw("cooperative", "true");
  std::string attributes;
  for (unsigned i = 0; i < launch.attribute_count; ++i) {
    const CUlaunchAttribute& attribute = launch.attributes[i];
    attributes += (attributes.empty() ? "[" : ",[") + std::to_string(attribute.id) + ",\"" +
                  hexadecimal(&attribute.value, sizeof attribute.value) + "\"]";
  }
  if (!attributes.empty()) line.raw("attributes", "[" + attributes + "]");
  const unsigned char* packed = packed_parameters(launch.extra);
  std::string parameters;
  std::size_t offset = 0;
  std::size_t size = 0;
  for (std::size_t i = 0; function.parameter(i, offset, size); ++i) {
    const unsigned char* bytes = packed ? packed + offset : nullptr;
    if (!packed && launch.parameters) {
      bytes = static_cast<const unsigned char*>(launch.parameters[i]);
    }
    if (!bytes) break;
    parameters += (parameters.empty() ? "" : ",") + parameter_json(bytes, offset, size);
  }
  line.raw("parameters", "[" + parameters + "]");
}

void add_range(Line& line, std::string_view key, std::uint64_t address) {
  const std::string target = pointed_at(address);
  if (target.empty()) {
    line.raw(key, "{\"address\":" + std::to_string(address) + "}");
  } else {
    line.raw(key, target);
  }
}

void add_memset(Line& line, std::uint64_t address, std::uint64_t value, unsigned width,
                std::uint64_t count) {
  add_range(line, "to", address);
  line.number("value", value).number("width", width).number("count", count);
}

void add_copy(Line& line, std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  add_range(line, "to", to);
  add_range(line, "from", from);
  line.number("count", bytes);
}

template <class Params>
const Params& as(const CUpti_CallbackData& data) {
  return *static_cast<const Params*>(data.functionParams);
}

Launch launch_of(const CUlaunchConfig& config, CUfunction function, void** parameters,
                 void** extra) {
  return {.function = function,
          .grid = {config.gridDimX, config.gridDimY, config.gridDimZ},
          .block = {config.blockDimX, config.blockDimY, config.blockDimZ},
          .shared_bytes = config.sharedMemBytes,
          .parameters = parameters,
          .extra = extra,
          .attributes = config.attrs,
          .attribute_count = config.numAttrs};
}

/// What a call that works on the device was given. Other calls are known by their names alone.
void add_arguments(Line& line, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      const auto& call = as<cuLaunchKernel_params>(data);
      line.number("stream", number_of(call.hStream));
      add_launch(line, {.function = call.f,
                        .grid = {call.gridDimX, call.gridDimY, call.gridDimZ},
                        .block = {call.blockDimX, call.blockDimY, call.blockDimZ},
                        .shared_bytes = call.sharedMemBytes,
                        .parameters = call.kernelParams,
                        .extra = call.extra});
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      const auto& call = as<cuLaunchCooperativeKernel_params>(data);
      line.number("stream", number_of(call.hStream));
      add_launch(line, {.function = call.f,
                        .grid = {call.gridDimX, call.gridDimY, call.gridDimZ},
                        .block = {call.blockDimX, call.blockDimY, call.blockDimZ},
                        .shared_bytes = call.sharedMemBytes,
                        .parameters = call.kernelParams,
                        .cooperative = true});
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& call = as<cuLaunchKernelEx_params>(data);
      line.number("stream", number_of(call.config->hStream));
      add_launch(line, launch_of(*call.config, call.f, call.kernelParams, call.extra));
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2_ptds: {
      const auto& call = as<cuMemsetD8_v2_params>(data);
      add_memset(line, call.dstDevice, call.uc, 1, call.N);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz: {
      const auto& call = as<cuMemsetD8Async_params>(data);
      line.number("stream", number_of(call.hStream));
      add_memset(line, call.dstDevice, call.uc, 1, call.N);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2_ptds: {
      const auto& call = as<cuMemsetD16_v2_params>(data);
      add_memset(line, call.dstDevice, call.us, 2, call.N);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz: {
      const auto& call = as<cuMemsetD16Async_params>(data);
      line.number("stream", number_of(call.hStream));
      add_memset(line, call.dstDevice, call.us, 2, call.N);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2_ptds: {
      const auto& call = as<cuMemsetD32_v2_params>(data);
      add_memset(line, call.dstDevice, call.ui, 4, call.N);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz: {
      const auto& call = as<cuMemsetD32Async_params>(data);
      line.number("stream", number_of(call.hStream));
      add_memset(line, call.dstDevice, call.ui, 4, call.N);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz: {
      const auto& call = as<cuMemcpyDtoDAsync_v2_params>(data);
      line.number("stream", number_of(call.hStream));
      add_copy(line, call.dstDevice, call.srcDevice, call.ByteCount);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2_ptds: {
      const auto& call = as<cuMemcpyDtoD_v2_params>(data);
      add_copy(line, call.dstDevice, call.srcDevice, call.ByteCount);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpy:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds: {
      const auto& call = as<cuMemcpy_params>(data);
      add_copy(line, call.dst, call.src, call.ByteCount);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz: {
      const auto& call = as<cuMemcpyAsync_params>(data);
      line.number("stream", number_of(call.hStream));
      add_copy(line, call.dst, call.src, call.ByteCount);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz: {
      const auto& call = as<cuGraphLaunch_params>(data);
      line.number("stream", number_of(call.hStream));
      line.number("graph", number_of(call.hGraph));
      break;
    }
    default:
      break;
  }
}

/// The stream of a call that works on the device, for the marks; nothing for other calls.
std::optional<CUstream> work_stream(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      return as<cuLaunchKernel_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      return as<cuLaunchCooperativeKernel_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
      return as<cuLaunchKernelEx_params>(data).config->hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async_ptsz:
      return as<cuMemsetD8Async_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async_ptsz:
      return as<cuMemsetD16Async_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32Async_ptsz:
      return as<cuMemsetD32Async_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoDAsync_v2_ptsz:
      return as<cuMemcpyDtoDAsync_v2_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz:
      return as<cuMemcpyAsync_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      return as<cuGraphLaunch_params>(data).hStream;
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD8_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD16_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemsetD32_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoD_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpy:
      return CUstream{};
    default:
      return std::nullopt;
  }
}

template <class Number>
std::string numbers(const Number* values, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) {
    list += (i == 0 ? "" : ",") + std::to_string(values[i]);
  }
  return "[" + list + "]";
}

/// What a tensor map was made of, and its bytes: parameters that hold them are found by these.
void record_tensor_map(const cuTensorMapEncodeTiled_params& call) {
  Line line("tensor_map");
  add_range(line, "of", number_of(call.globalAddress));
  line.number("type", call.tensorDataType).number("rank", call.tensorRank);
  line.raw("dims", numbers(call.globalDim, call.tensorRank));
  line.raw("strides", numbers(call.globalStrides, call.tensorRank - 1));
  line.raw("box", numbers(call.boxDim, call.tensorRank));
  line.raw("element_strides", numbers(call.elementStrides, call.tensorRank));
  line.number("interleave", call.interleave).number("swizzle", call.swizzle);
  line.number("promotion", call.l2Promotion).number("fill", call.oobFill);
  write_line(line.add("bytes", hexadecimal(call.tensorMap, sizeof *call.tensorMap)));
}

/// One node of a graph as JSON: a launch, a memset, a copy, or what else its number of type says.
std::string node_json(CUgraphNode node) {
  const Driver& driver = recorder->driver;
  Line line("node");
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (driver.node_type(node, &type) != CUDA_SUCCESS) return line.json();
  line.number("type", static_cast<std::uint64_t>(type));
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    CUDA_KERNEL_NODE_PARAMS params{};
    if (driver.kernel_node(node, &params) != CUDA_SUCCESS) return line.json();
    Launch launch = {
        .function = params.func ? params.func : reinterpret_cast<CUfunction>(params.kern),
        .grid = {params.gridDimX, params.gridDimY, params.gridDimZ},
        .block = {params.blockDimX, params.blockDimY, params.blockDimZ},
        .shared_bytes = params.sharedMemBytes,
        .parameters = params.kernelParams,
        .extra = params.extra};
    std::vector<CUlaunchAttribute> attributes;
    for (const CUlaunchAttributeID id :
         {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE}) {
      CUlaunchAttribute attribute{};
      attribute.id = id;
      if (driver.kernel_node_attribute(node, id, &attribute.value) == CUDA_SUCCESS) {
        attributes.push_back(attribute);
      }
    }
    launch.attributes = attributes.data();
    launch.attribute_count = static_cast<unsigned>(attributes.size());
    add_launch(line, launch);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    CUDA_MEMSET_NODE_PARAMS params{};
    if (driver.memset_node(node, &params) != CUDA_SUCCESS || params.height > 1) return line.json();
    add_memset(line, params.dst, params.value, params.elementSize, params.width);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    CUDA_MEMCPY3D copy{};
    if (driver.copy_node(node, &copy) != CUDA_SUCCESS || copy.Height > 1 || copy.Depth > 1 ||
        copy.srcMemoryType == CU_MEMORYTYPE_HOST || copy.dstMemoryType == CU_MEMORYTYPE_HOST) {
      return line.json();
    }
    add_copy(line, copy.dstDevice + copy.dstXInBytes, copy.srcDevice + copy.srcXInBytes,
             copy.WidthInBytes);
  }
  return line.json();
}

/// A graph's nodes and the edges between them, by the nodes' numbers.
void record_graph(CUgraph graph, CUgraphExec executable) {
  const Driver& driver = recorder->driver;
  std::size_t count = 0;
  if (driver.graph_nodes(graph, nullptr, &count) != CUDA_SUCCESS) return;
  std::vector<CUgraphNode> nodes(count);
  if (count > 0 && driver.graph_nodes(graph, nodes.data(), &count) != CUDA_SUCCESS) return;
  std::map<CUgraphNode, std::size_t> number;
  std::string list;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    number[nodes[i]] = i;
    list += (list.empty() ? "" : ",") + node_json(nodes[i]);
  }
  std::string edges;
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
  std::size_t edge_count = 0;
#if CUDA_VERSION >= 13000
  std::vector<CUgraphEdgeData> data;
  const auto get = [&](CUgraphNode* first, CUgraphNode* second, CUgraphEdgeData* edge) {
    return driver.graph_edges(graph, first, second, edge, &edge_count) == CUDA_SUCCESS;
  };
#else
  std::vector<char> data;
  const auto get = [&](CUgraphNode* first, CUgraphNode* second, char*) {
    return driver.graph_edges(graph, first, second, &edge_count) == CUDA_SUCCESS;
  };
#endif
  if (!get(nullptr, nullptr, nullptr)) return;
  from.resize(edge_count);
  to.resize(edge_count);
  data.resize(edge_count);
  if (edge_count > 0 && !get(from.data(), to.data(), data.data())) return;
  for (std::size_t i = 0; i < edge_count; ++i) {
    edges += (edges.empty() ? "[" : ",[") + std::to_string(number[from[i]]) + "," +
             std::to_string(number[to[i]]) + "]";
  }
  write_line(Line("graph")
                 .number("graph", number_of(executable))
                 .raw("nodes", "[" + list + "]")
                 .raw("edges", "[" + edges + "]"));
}

/// What is written down at all times, since a recorded call may use it later.
void record_preparation(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
      remember_handle(number_of(*as<cuModuleLoad_params>(data).module));
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
      remember_handle(number_of(*as<cuModuleLoadData_params>(data).module));
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
      remember_handle(number_of(*as<cuModuleLoadDataEx_params>(data).module));
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary:
      remember_handle(number_of(*as<cuModuleLoadFatBinary_params>(data).module));
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData:
      remember_handle(number_of(*as<cuLibraryLoadData_params>(data).library));
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuTensorMapEncodeTiled:
      record_tensor_map(as<cuTensorMapEncodeTiled_params>(data));
      break;
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags: {
      const auto& call = as<cuGraphInstantiateWithFlags_params>(data);
      record_graph(call.hGraph, *call.phGraphExec);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz: {
      const auto& call = as<cuGraphInstantiateWithParams_params>(data);
      record_graph(call.hGraph, *call.phGraphExec);
      break;
    }
    default:
      break;
  }
}

void record_call(CUpti_CallbackId id, const CUpti_CallbackData& data) {
  if (data.callbackSite == CUPTI_API_ENTER) {
    if (thread.depth++ == 0) thread.loaded.clear();
    if (rekernel_recorder::marks_are_on()) {
      if (const auto stream = work_stream(id, data)) rekernel_recorder::before_work(*stream);
    }
    return;
  }
  if (thread.depth > 0) --thread.depth;
  const auto* result = static_cast<const CUresult*>(data.functionReturnValue);
  const bool good = result && *result == CUDA_SUCCESS;
  if (good) record_preparation(id, data);
  if (good && rekernel_recorder::marks_are_on()) {
    if (const auto stream = work_stream(id, data)) rekernel_recorder::after_work(*stream);
  }
  if (recorder->windows == 0) return;
  Line line("call");
  line.add("name", data.functionName)
      .number("thread", static_cast<std::uint64_t>(::syscall(SYS_gettid)));
  if (good) {
    add_arguments(line, id, data);
  } else {
    line.number("result", result ? *result : 999);
  }
  write_line(line);
}

void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* data) {
  if (thread.inside || !recorder) return;
  thread.inside = true;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    record_call(id, *static_cast<const CUpti_CallbackData*>(data));
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    const auto* resource = static_cast<const CUpti_ResourceData*>(data);
    record_module(*static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor));
  }
  thread.inside = false;
}

/// CUPTI as the process has it, or from the place that the parent names, or from anywhere.
void* open_cupti() {
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  if (const char* path = std::getenv("REKERNEL_CUPTI")) {
    if (void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

/// Empty, or why nothing can be recorded.
std::string subscribe() {
  void* cupti = open_cupti();
  if (!cupti) return "libcupti cannot be opened";
  decltype(&::cuptiSubscribe) subscribe_to = nullptr;
  decltype(&::cuptiEnableDomain) enable = nullptr;
  find(cupti, "cuptiSubscribe", subscribe_to);
  find(cupti, "cuptiEnableDomain", enable);
  if (!subscribe_to || !enable) return "libcupti lacks its callbacks";
  CUpti_SubscriberHandle subscriber = nullptr;
  const CUptiResult subscribed = subscribe_to(&subscriber, on_callback, nullptr);
  if (subscribed != CUPTI_SUCCESS) {
    return "CUPTI refuses a subscriber: error " + std::to_string(subscribed);
  }
  for (const CUpti_CallbackDomain domain : {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RESOURCE}) {
    if (enable(1, subscriber, domain) != CUPTI_SUCCESS) return "CUPTI refuses its callbacks";
  }
  return {};
}

bool load_driver(Driver& driver) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return false;
  find(library, "cuFuncGetParamInfo", driver.function_parameter);
  find(library, "cuKernelGetParamInfo", driver.kernel_parameter);
  find(library, "cuFuncGetName", driver.function_name);
  find(library, "cuKernelGetName", driver.kernel_name);
  find(library, "cuFuncGetModule", driver.function_module);
  find(library, "cuKernelGetLibrary", driver.kernel_library);
  find(library, "cuPointerGetAttributes", driver.pointer_attributes);
  find(library, "cuGraphGetNodes", driver.graph_nodes);
#if CUDA_VERSION >= 13000
  find(library, "cuGraphGetEdges_v2", driver.graph_edges);
#else
  find(library, "cuGraphGetEdges", driver.graph_edges);
#endif
  find(library, "cuGraphNodeGetType", driver.node_type);
  find(library, "cuGraphKernelNodeGetParams_v2", driver.kernel_node);
  find(library, "cuGraphKernelNodeGetAttribute", driver.kernel_node_attribute);
  find(library, "cuGraphMemsetNodeGetParams", driver.memset_node);
  find(library, "cuGraphMemcpyNodeGetParams", driver.copy_node);
  return driver.function_parameter && driver.kernel_parameter && driver.function_name &&
         driver.kernel_name && driver.function_module && driver.kernel_library &&
         driver.pointer_attributes && driver.graph_nodes && driver.graph_edges &&
         driver.node_type && driver.kernel_node && driver.kernel_node_attribute &&
         driver.memset_node && driver.copy_node;
}

constexpr rekernel_recorder::MarkServices mark_services = {
    .write_note = [](const std::string& json) { write_line(Line("note").raw("note", json)); },
    .write_time =
        [](bool device, std::int64_t nanoseconds) {
          if (nanoseconds <= 0) return;
          write_line(Line("time")
                         .raw("device", device ? "true" : "false")
                         .number("ns", static_cast<std::uint64_t>(nanoseconds)));
        },
    .bytes_from = bytes_from,
    .record = [](bool on) { recorder->windows = on; }};

}  // namespace

extern "C" {

/// CUDA calls this when the process initialises it. What is wrong stands in the log.
__attribute__((visibility("default"))) int InitializeInjection() {
  const char* folder = std::getenv("REKERNEL_CAPTURE_LOGS");
  if (!folder || recorder) return 1;
  auto fresh = std::make_unique<Recorder>();
  fresh->process = ::getpid();
  fresh->folder = folder;
  const std::string path = fresh->folder + "/" + std::to_string(fresh->process) + ".log";
  fresh->log = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (fresh->log < 0) return 1;
  std::string problem;
  if (!load_driver(fresh->driver)) problem = "the driver lacks a function: too old";
  recorder = fresh.release();  // lives as long as the process: callbacks may come until its end
  if (problem.empty()) problem = subscribe();
  write_line(Line("start").number("cupti", CUPTI_API_VERSION).add("problem", problem));
  if (const char* samples = std::getenv("REKERNEL_CAPTURE_MARKS"); samples && problem.empty()) {
    rekernel_recorder::start_marks(mark_services, std::atoi(samples));
  }
  return 1;
}

/// A line of JSON from the program's driver: which tensors lie where.
__attribute__((visibility("default"))) void rekernel_note(const char* json) {
  if (recorder) write_line(Line("note").raw("note", json));
}

/// Begins (1) or ends (0) the recording of a call. Calls are numbered by their notes.
__attribute__((visibility("default"))) void rekernel_record(int on) {
  if (recorder) recorder->windows = on;
}

/// The marks of rekernel_marks.h: "a", a, "b", b, …, nullptr.
__attribute__((visibility("default"))) void rekernel_begin(const char* name, ...) {
  if (!rekernel_recorder::marks_are_on()) return;
  const Ours ours;
  std::va_list rest;
  va_start(rest, name);
  rekernel_recorder::mark_begin(name, rest);
  va_end(rest);
}

__attribute__((visibility("default"))) void rekernel_end(const char*, ...) {
  if (!rekernel_recorder::marks_are_on()) return;
  const Ours ours;
  rekernel_recorder::mark_end();
}

__attribute__((visibility("default"))) void rekernel_count_calls(const char* none, ...) {
  std::va_list rest;
  va_start(rest, none);
  *va_arg(rest, int*) = rekernel_recorder::marked_calls();
  va_end(rest);
}

}  // extern "C"
