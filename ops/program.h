#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ops/dtype.h"

namespace rekernel {

/// What code is written in: CUDA C++, the assembler's language, or machine code.
enum class Language { cuda, ptx, cubin };

/// Code that is compiled and loaded as one module.
struct Code {
  Language language = Language::cuda;
  std::string text;
};

/// How NVRTC is asked to compile a program's source.
struct CompileOptions {
  bool fast_math = false;
  std::optional<int> max_registers;
  /// Macro name to replacement text (an integer or an identifier).
  std::map<std::string, std::string> defines;
  /// Somebody wants to know whether it compiles: the code is small work for the compiler, and slow.
  bool for_an_answer_alone = false;
};

/// What a program's workspaces and the variables of its device code may have together.
constexpr std::int64_t max_workspace_bytes = std::int64_t{8} << 30;

/// Scratch memory that the harness allocates, poisons and guards. Its content at the first launch
/// is undefined.
struct Workspace {
  std::string name;
  std::int64_t bytes = 0;
};

/// The device address of a tensor or workspace, passed as a pointer.
struct BufferArgument {
  std::string buffer;
};

/// A scalar passed by value. The alternative fixes the C type of the kernel's parameter.
using ScalarArgument =
    std::variant<std::int32_t, std::uint32_t, std::int64_t, std::uint64_t, float, double>;

/// Bytes of a CUtensorMap, and where one may begin.
constexpr std::int64_t tensor_map_bytes = 128;
constexpr std::int64_t tensor_map_alignment = 64;

/// A descriptor for the bulk tensor copy engine, encoded by the harness and passed by value as a
/// 128-byte `const __grid_constant__ CUtensorMap`. Dimensions run from the innermost outwards, as
/// in cuTensorMapEncodeTiled.
struct TensorMapArgument {
  enum class Swizzle { none, b32, b64, b128 };
  enum class L2Promotion { none, b64, b128, b256 };

  std::string buffer;
  DType dtype = DType::f16;
  std::int64_t offset_bytes = 0;              ///< start within the buffer; a multiple of 16
  std::vector<std::int64_t> dims;             ///< 1 to 5 extents, in elements
  std::vector<std::int64_t> strides_bytes;    ///< rank − 1 strides (the innermost is the element)
  std::vector<std::int64_t> box;              ///< rank extents of one copy, 1 to 256 elements each
  std::vector<std::int64_t> element_strides;  ///< rank steps, 1 to 8; empty means all 1
  Swizzle swizzle = Swizzle::none;
  L2Promotion l2_promotion = L2Promotion::none;
  bool fill_nan = false;  ///< what lies outside reads as NaN rather than as zero
};

/// A parameter as its bytes, into which the harness writes addresses and tensor maps: a struct that
/// holds some, a pointer into the middle of a buffer. How captured programs pass theirs.
struct BytesArgument {
  /// The address of a buffer plus an offset, eight bytes from `at` on.
  struct Address {
    std::int64_t at = 0;
    std::string buffer;
    std::int64_t offset_bytes = 0;
  };

  /// The 128 bytes from `at` on.
  struct PlacedMap {
    std::int64_t at = 0;
    TensorMapArgument map;
  };

  std::string bytes;
  std::vector<Address> addresses;
  std::vector<PlacedMap> tensor_maps;
};

using Argument = std::variant<BufferArgument, ScalarArgument, TensorMapArgument, BytesArgument>;

/// One grid extent: a count, or a count per multiprocessor of the device (of a cooperative launch:
/// as many as can be resident at once, up to the count).
struct GridExtent {
  std::int64_t count = 1;
  bool per_sm = false;
};

/// Of KernelLaunch::shared_memory_carveout, in percent.
constexpr int most_carveout = 100;

struct KernelLaunch {
  std::string kernel;  ///< an extern "C" __global__ function of the source
  int module = 0;      ///< which of the program's modules has it
  std::array<GridExtent, 3> grid;
  std::array<std::int64_t, 3> block = {1, 1, 1};
  std::array<std::int64_t, 3> cluster = {1, 1, 1};
  std::int64_t dynamic_shared_bytes = 0;
  bool cooperative = false;
  bool programmatic_launch = false;
  /// What the launch prefers: the percentage of the memory that shared memory and the L1 cache
  /// divide between them which is shared memory.
  std::optional<int> shared_memory_carveout;
  std::vector<Argument> args;
};

/// Sets every byte of a workspace (never of an input), or of a part of it, before the next launch.
struct Memset {
  std::string buffer;
  std::uint8_t value = 0;
  std::int64_t offset_bytes = 0;
  std::int64_t bytes = 0;  ///< 0: up to the end
};

using Step = std::variant<KernelLaunch, Memset>;

/// Device code plus a launch plan: all that a candidate, and every device-side tool of the harness
/// itself, consists of.
struct Program {
  std::string source;
  Language language = Language::cuda;  ///< of `source`
  std::vector<Code> modules;           ///< what there is beside `source`: modules 1, 2, …
  CompileOptions compile;
  std::vector<Workspace> workspaces;
  std::vector<Step> steps;
};

}  // namespace rekernel
