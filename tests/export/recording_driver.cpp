// Stands in for the CUDA driver: writes down every call that does something as a line of JSON in
// the file $RECORDING, and does nothing. $CAPABILITY ("9.0") is the GPU's; $PARAMETERS tells the
// sizes of kernels' parameters, which only machine code knows ("kernel:8,8,128;other:8").

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

namespace {

constexpr int multiprocessors = 132;
constexpr int resident_blocks = 2;

std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text ? text : "";
}

void record(const std::string& line) {
  std::FILE* const file = std::fopen(variable("RECORDING").c_str(), "a");
  if (!file) std::abort();
  std::fprintf(file, "{%s}\n", line.c_str());
  std::fclose(file);
}

std::string hexadecimal(const void* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<const unsigned char*>(bytes)[i]);
    text += digits;
  }
  return text;
}

template <class Number>
std::string list(const Number* numbers, std::size_t count) {
  std::ostringstream text;
  for (std::size_t i = 0; i < count; ++i) text << (i ? ", " : "[") << numbers[i];
  return text.str() + (count ? "]" : "[]");
}

/// Functions are names that live as long as this library.
std::map<std::string, std::string>& functions() {
  static std::map<std::string, std::string> all;
  return all;
}

const std::string& name_of(CUfunction function) {
  return *reinterpret_cast<const std::string*>(function);
}

/// The sizes of a kernel's parameters.
std::string parameters_of(const std::string& kernel) {
  const std::string all = ";" + variable("PARAMETERS") + ";";
  const std::size_t begin = all.find(";" + kernel + ":");
  if (begin == std::string::npos) std::abort();
  const std::size_t first = begin + kernel.size() + 2;
  return all.substr(first, all.find(';', first) - first);
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_ERROR_OF_THE_TEST";
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const std::string capability = variable("CAPABILITY");
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = std::atoi(capability.c_str());
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = std::atoi(capability.c_str() + capability.find('.') + 1);
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = multiprocessors;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = std::getenv("SHARED_BYTES") ? std::atoi(variable("SHARED_BYTES").c_str()) : 232448;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  // The file's flags tell the architecture that it is for.
  record("\"call\": \"load\", \"elf\": \"" + hexadecimal(image, 64) + "\"");
  static int loaded;
  *module = reinterpret_cast<CUmodule>(&loaded);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  std::string& kept = functions()[name] = name;
  *function = reinterpret_cast<CUfunction>(&kept);
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  if (attribute != CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  record("\"call\": \"set\", \"kernel\": \"" + name_of(function) + "\", \"attribute\": " +
         std::to_string(attribute) + ", \"value\": " + std::to_string(value));
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int, std::size_t) {
  *blocks = resident_blocks;
  return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                void* address, const cuuint64_t* extents, const cuuint64_t* strides,
                                const cuuint32_t* box, const cuuint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  if (reinterpret_cast<std::uintptr_t>(map) % 64 != 0) return CUDA_ERROR_INVALID_VALUE;
  std::ostringstream text;
  text << "[" << type << ", " << reinterpret_cast<std::uintptr_t>(address) << ", "
       << list(extents, rank) << ", " << list(strides, rank - 1) << ", " << list(box, rank) << ", "
       << list(element_strides, rank) << ", " << interleave << ", " << swizzle << ", " << promotion
       << ", " << fill << "]";
  record("\"call\": \"map\", \"of\": " + text.str());
  // So that an argument tells which map it is.
  std::memset(map, 0, sizeof *map);
  const std::size_t digest = std::hash<std::string>{}(text.str());
  std::memcpy(map, &digest, sizeof digest);
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t count,
                         CUstream stream) {
  std::ostringstream text;
  text << "\"call\": \"memset\", \"address\": " << address << ", \"value\": " << int{value}
       << ", \"bytes\": " << count << ", \"stream\": " << reinterpret_cast<std::uintptr_t>(stream);
  record(text.str());
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void**) {
  const unsigned sizes[] = {config->gridDimX,  config->gridDimY,  config->gridDimZ,
                            config->blockDimX, config->blockDimY, config->blockDimZ};
  std::ostringstream text;
  text << "\"call\": \"launch\", \"kernel\": \"" << name_of(function)
       << "\", \"grid\": " << list(sizes, 3) << ", \"block\": " << list(sizes + 3, 3)
       << ", \"shared\": " << config->sharedMemBytes
       << ", \"stream\": " << reinterpret_cast<std::uintptr_t>(config->hStream)
       << ", \"attributes\": [";
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    const unsigned* const values = &attribute.value.clusterDim.x;
    const bool cluster = attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    text << (i ? ", " : "") << "[" << attribute.id << ", " << list(values, cluster ? 3 : 1) << "]";
  }
  text << "], \"arguments\": [";
  std::istringstream parameters(parameters_of(name_of(function)));
  std::string bytes;
  for (std::size_t i = 0; std::getline(parameters, bytes, ','); ++i) {
    text << (i ? ", \"" : "\"") << hexadecimal(arguments[i], std::stoul(bytes)) << "\"";
  }
  record(text.str() + "]");
  return CUDA_SUCCESS;
}
}
