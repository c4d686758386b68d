#include "harness/compile/compile.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "harness/base/files.h"
#include "harness/compile/cubin.h"
#include "harness/gpu/library.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

TEST(DynamicLibrary, FindsFunctions) {
  const auto library = DynamicLibrary::open({"libabsent.so.1", "libm.so.6"});
  ASSERT_TRUE(library.ok()) << library.error().message;
  EXPECT_EQ(library->path().find("libm.so.6"), library->path().size() - 9);
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(library->load("cos", cosine));
  EXPECT_EQ(cosine(0.0), 1.0);
  EXPECT_FALSE(library->load("no_such_function", cosine));
  EXPECT_EQ(library->find("no_such_function"), nullptr);
}

TEST(DynamicLibrary, ErrorNamesLibrariesAndFolders) {
  const auto library = DynamicLibrary::open({"libabsent.so.2", "libabsent.so.1"});
  ASSERT_FALSE(library.ok());
  const std::string& message = library.error().message;
  EXPECT_EQ(message.rfind("libabsent.so.2, libabsent.so.1: not found in ", 0), 0u) << message;
  EXPECT_NE(message.find("/usr/lib/x86_64-linux-gnu"), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(DynamicLibrary, ADriverLibraryIsTheLoadersChoice) {
  const auto library = DynamicLibrary::open({"libcuda.so.0"});
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().message,
            "libcuda.so.0: not found in /usr/local/nvidia/lib64 or on the loader's own path");
}

constexpr const char* scale_source = R"(
#include "problem.h"
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void scale(const float* x, float* y, int n, double a, unsigned char flag,
                                 const __grid_constant__ Map map) {
  __shared__ float tile[problem::columns];
  tile[threadIdx.x] = x[threadIdx.x] + map.bytes[n];
  __syncthreads();
  y[threadIdx.x] = tile[problem::columns - 1 - threadIdx.x] * float(a) + flag;
}
extern "C" __global__ void nothing() {}
)";
constexpr const char* header = "namespace problem { inline constexpr int columns = 32; }\n";

/// Every test has a cache of its own.
class NvrtcCompiler : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(compiler_.ok()) << compiler_.error().message; }

  static Program program(const std::string& source) {
    Program result;
    result.source = source;
    return result;
  }

  CompiledProgram compiled(const Program& program, const std::string& target = "sm_80") const {
    auto result = compiler_->compile(program, header, target);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? *std::move(result) : CompiledProgram{};
  }

  std::string compile_error(const std::string& source) const {
    const auto result = compiler_->compile(program(source), header, "sm_80");
    return result.ok() ? "" : result.error().message;
  }

  std::vector<fs::path> cached_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(cache_ / "cubin"))
      files.push_back(entry.path());
    return files;
  }

  Result<Compiler> compiler_ = Compiler::load();
  TemporaryFolder cache_;
  ScopedVariable variable_{"REKERNEL_CACHE", cache_.path().string()};
};

TEST_F(NvrtcCompiler, KnowsItsVersion) {
  EXPECT_GE(std::stod(compiler_->version()), 12.0);
  EXPECT_NE(compiler_->version().find('.'), std::string::npos);
}

TEST_F(NvrtcCompiler, KnowsTheTargetsThatItCompilesFor) {
  // CUDA 12.0 knows these; who knows more is asked.
  for (const char* target : {"sm_80", "sm_89", "sm_90a"}) EXPECT_TRUE(compiler_->knows(target));
  EXPECT_EQ(compiler_->knows("sm_103a"),
            compiler_->compile(program(scale_source), header, "sm_103a").ok());
  for (const char* target : {"sm_999a", "sm_20", "", "x"}) EXPECT_FALSE(compiler_->knows(target));
}

TEST_F(NvrtcCompiler, CompilesForEveryTarget) {
  for (const std::string& target : targets_of("sm_80")) {
    if (!compiler_->knows(target)) continue;
    const CompiledProgram result = compiled(program(scale_source), target);
    ASSERT_EQ(result.kernels.size(), 2u) << target;
    EXPECT_FALSE(result.from_cache);
    EXPECT_GT(result.compile_ns, 0);
    const KernelResources* scale = result.find("scale");
    ASSERT_NE(scale, nullptr);
    EXPECT_GT(scale->registers, 0);
    EXPECT_EQ(scale->static_shared_bytes, 128) << target;
    EXPECT_EQ(scale->spill_store_bytes, 0);
    ASSERT_EQ(scale->parameters.size(), 6u);
    const std::int64_t sizes[] = {8, 8, 4, 8, 1, 128};
    const std::int64_t offsets[] = {0, 8, 16, 24, 32};  // where the map lies depends on the target
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(scale->parameters[i].size, sizes[i]) << i;
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(scale->parameters[i].offset, offsets[i]) << i;
    EXPECT_GE(scale->parameters[5].offset, 33);
    const KernelResources* nothing = result.find("nothing");
    ASSERT_NE(nothing, nullptr);
    EXPECT_TRUE(nothing->parameters.empty());
    EXPECT_EQ(nothing->static_shared_bytes, 0);
    EXPECT_EQ(result.find("absent"), nullptr);
  }
}

TEST_F(NvrtcCompiler, AllowListedHeadersCompile) {
  const CompiledProgram result = compiled(program(R"(
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <mma.h>
extern "C" __global__ void k(cuda::std::uint32_t* x) {
  cooperative_groups::this_grid().sync();
  x[0] = __half2float(__float2half(1.5f));
}
)"),
                                          "sm_90a");
  EXPECT_NE(result.find("k"), nullptr);
}

TEST_F(NvrtcCompiler, OptionsReachTheCompiler) {
  Program options = program(R"(
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
extern "C" __global__ void hopper(TYPE* x) { x[0] = STAGES + sinf(x[1]); }
#else
extern "C" __global__ void portable(TYPE* x) { x[0] = STAGES + sinf(x[1]); }
#endif
)");
  options.compile.defines = {{"TYPE", "float"}, {"STAGES", "-3"}};
  EXPECT_NE(compiled(options, "sm_90a").find("hopper"), nullptr);
  const CompiledProgram precise = compiled(options);
  ASSERT_NE(precise.find("portable"), nullptr);
  options.compile.fast_math = true;
  const CompiledProgram fast = compiled(options);
  EXPECT_NE(fast.cubin, precise.cubin);
  EXPECT_LT(fast.find("portable")->registers, precise.find("portable")->registers);
}

TEST_F(NvrtcCompiler, RegisterLimitShowsAsSpills) {
  Program crowded = program(R"(
extern "C" __global__ void k(float* p, int n) {
  float a[96];
  for (int i = 0; i < 96; ++i) a[i] = p[i * n];
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < 96; ++i) a[i] = a[i] * a[(i + 1) % 96] + j;
  for (int i = 0; i < 96; ++i) p[i * n] = a[i];
}
)");
  EXPECT_EQ(compiled(crowded).find("k")->spill_store_bytes, 0);
  crowded.compile.max_registers = 32;
  const CompiledProgram limited = compiled(crowded);
  EXPECT_LE(limited.find("k")->registers, 32);
  EXPECT_GT(limited.find("k")->spill_store_bytes, 0);
  EXPECT_GT(limited.find("k")->spill_load_bytes, 0);
  EXPECT_GT(limited.find("k")->stack_bytes, 0);
}

TEST_F(NvrtcCompiler, ErrorHoldsTheLog) {
  const std::string error = compile_error("extern \"C\" __global__ void k() { int a = b; }\n");
  EXPECT_EQ(
      error.rfind("does not compile for sm_80 (NVRTC_ERROR_COMPILATION):\nkernel.cu(1): error: "
                  "identifier \"b\" is undefined\n",
                  0),
      0u)
      << error;
  std::string many;
  for (int i = 0; i < 400; ++i) many += "static_assert(problem_" + std::to_string(i) + ", \"\");\n";
  EXPECT_LT(compile_error("#pragma nv_diag_suppress 1\n" + many).size(), 20000u);
  EXPECT_FALSE(compiler_->compile(program("int a;"), header, "sm_10").ok());
}

TEST_F(NvrtcCompiler, FilesOfTheWorkingDirectoryAreOutOfReach) {
  const fs::path before = fs::current_path();
  fs::create_directories(cache_ / "cuda" / "std");
  for (const char* name : {"problem.h", "mma.h", "secret.h", "cuda/std/cstdint"}) {
    std::ofstream(cache_ / name) << "#error taken from the working directory\n";
  }
  fs::current_path(cache_.path());
  const std::string result = compile_error(
      "#include \"problem.h\"\n#include \"mma.h\"\n#include \"cuda/std/cstdint\"\n"
      "extern \"C\" __global__ void k(int* x) { x[0] = problem::columns; }\n");
  const std::string secret = compile_error("#include \"secret.h\"\n");
  fs::current_path(before);
  EXPECT_EQ(result, "");
  EXPECT_NE(secret.find("cannot open source file \"secret.h\""), std::string::npos) << secret;
}

TEST_F(NvrtcCompiler, SecondTimeComesFromTheCache) {
  const Program scale = program(scale_source);
  const CompiledProgram first = compiled(scale);
  const CompiledProgram second = compiled(scale);
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.compile_ns, 0);
  EXPECT_EQ(second.cubin, first.cubin);
  EXPECT_EQ(second.log, first.log);
  EXPECT_NE(first.log.find("Used"), std::string::npos) << first.log;
  ASSERT_EQ(second.kernels.size(), first.kernels.size());
  for (std::size_t i = 0; i < first.kernels.size(); ++i) {
    EXPECT_EQ(second.kernels[i].name, first.kernels[i].name);
    EXPECT_EQ(second.kernels[i].registers, first.kernels[i].registers);
    EXPECT_EQ(second.kernels[i].static_shared_bytes, first.kernels[i].static_shared_bytes);
    EXPECT_EQ(second.kernels[i].parameters.size(), first.kernels[i].parameters.size());
  }
  EXPECT_EQ(cached_files().size(), 1u);
}

TEST_F(NvrtcCompiler, EverythingThatMattersIsInTheKey) {
  const Program scale = program("#include \"problem.h\"\nextern \"C\" __global__ void k() {}\n");
  EXPECT_FALSE(compiled(scale).from_cache);
  EXPECT_FALSE(compiled(scale, "sm_89").from_cache);
  EXPECT_FALSE(compiler_->compile(scale, "// other header\n", "sm_80")->from_cache);
  Program changed = scale;
  changed.source += "\n";
  EXPECT_FALSE(compiled(changed).from_cache);
  changed = scale;
  changed.compile.fast_math = true;
  EXPECT_FALSE(compiled(changed).from_cache);
  changed.compile.max_registers = 64;
  EXPECT_FALSE(compiled(changed).from_cache);
  changed.compile.defines["A"] = "1";
  EXPECT_FALSE(compiled(changed).from_cache);
  EXPECT_TRUE(compiled(scale).from_cache);
}

TEST_F(NvrtcCompiler, DamagedCacheFilesAreReplaced) {
  const Program scale = program(scale_source);
  const CompiledProgram first = compiled(scale);
  ASSERT_EQ(cached_files().size(), 1u);
  const fs::path file = cached_files()[0];
  const std::string content = *read_file(file);
  std::string flipped = content;
  flipped[content.size() / 2] ^= 1;
  for (const std::string& damaged :
       {std::string(), content.substr(0, 10), content.substr(0, content.size() - 1), flipped,
        content + "x", "rekernel cubin 0\n" + content.substr(17)}) {
    ASSERT_TRUE(write_file_atomically(file, damaged).ok());
    const CompiledProgram again = compiled(scale);
    EXPECT_FALSE(again.from_cache);
    EXPECT_EQ(again.cubin, first.cubin);
    EXPECT_EQ(*read_file(file), content);
  }
}

TEST_F(NvrtcCompiler, WorksWithoutAWritableCache) {
  std::ofstream(cache_ / "file") << "in the way";
  const ScopedVariable in_the_way("REKERNEL_CACHE", (cache_ / "file").string());
  EXPECT_EQ(compiled(program(scale_source)).kernels.size(), 2u);
}

TEST_F(NvrtcCompiler, FailuresAreNotCached) {
  EXPECT_NE(compile_error("#error no\n"), "");
  EXPECT_FALSE(fs::exists(cache_ / "cubin"));
}

TEST_F(NvrtcCompiler, ThreadsCompileSideBySide) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const std::string name = "k" + std::to_string(t / 2);
      const CompiledProgram result =
          compiled(program("extern \"C\" __global__ void " + name + "() {}\n"));
      EXPECT_NE(result.find(name), nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cached_files().size(), 2u);
}

TEST_F(NvrtcCompiler, CubinReaderSurvivesDamage) {
  const std::string cubin = compiled(program(scale_source), "sm_90a").cubin;
  Elf64_Ehdr header;
  std::memcpy(&header, cubin.data(), sizeof header);
  const std::size_t end = header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr);
  for (std::size_t size = 0; size < end; size += 7) {
    EXPECT_FALSE(read_cubin(std::string_view(cubin).substr(0, size)).ok()) << size;
  }
  std::size_t refused = 0;
  for (std::size_t i = 0; i < cubin.size(); ++i) {
    std::string damaged = cubin;
    damaged[i] = static_cast<char>(~damaged[i]);
    refused += !read_cubin(damaged).ok();
  }
  EXPECT_GT(refused, 0u);
}

/// A plan with one launch of `kernel`.
Program plan_of(const std::string& kernel, std::vector<Argument> args) {
  Program result;
  KernelLaunch launch;
  launch.kernel = kernel;
  launch.args = std::move(args);
  result.steps = {Memset{"w", 0}, launch};
  return result;
}

TEST_F(NvrtcCompiler, LaunchesMustFitTheKernels) {
  const CompiledProgram scale = compiled(program(scale_source));
  const auto error = [&](const std::string& kernel, std::vector<Argument> args) {
    const auto result = check_launches(plan_of(kernel, std::move(args)), scale, "kernel.json");
    return result.ok() ? "" : result.error().message;
  };
  const BufferArgument x = {"x"};
  const TensorMapArgument map;
  const auto scalar = [](auto value) { return ScalarArgument(value); };
  EXPECT_EQ(error("nothing", {}), "");
  EXPECT_EQ(error("scale", {x}),
            "kernel.json: launches[1].args: kernel \"scale\" takes 6 arguments, got 1");
  EXPECT_EQ(error("nothing", {x}),
            "kernel.json: launches[1].args: kernel \"nothing\" takes 0 arguments, got 1");
  EXPECT_EQ(error("scalar", {}),
            "kernel.json: launches[1].kernel: no kernel \"scalar\" in the source; it has nothing, "
            "scale (a plain name needs extern \"C\")");
  EXPECT_EQ(error("scale", {x, x, x, scalar(1.0), scalar(1), map}),
            "kernel.json: launches[1].args[2]: a pointer has 8 bytes, the parameter of kernel "
            "\"scale\" has 4");
  EXPECT_EQ(error("scale", {x, x, scalar(1), scalar(1.0f), scalar(1), map}),
            "kernel.json: launches[1].args[3]: this scalar has 4 bytes, the parameter of kernel "
            "\"scale\" has 8");
  EXPECT_EQ(error("scale", {map, x, scalar(1), scalar(1.0), scalar(1), map}),
            "kernel.json: launches[1].args[0]: a tensor map has 128 bytes, the parameter of kernel "
            "\"scale\" has 8");

  const CompiledProgram typed = compiled(program(
      "struct alignas(64) Map { char bytes[128]; };\n"
      "extern \"C\" __global__ void k(float*, int, unsigned, long long, unsigned long long, float, "
      "double, const __grid_constant__ Map) {}\n"));
  EXPECT_TRUE(check_launches(plan_of("k", {x, scalar(std::int32_t{1}), scalar(std::uint32_t{1}),
                                           scalar(std::int64_t{1}), scalar(std::uint64_t{1}),
                                           scalar(1.0f), scalar(1.0), map}),
                             typed, "f")
                  .ok());
  EXPECT_EQ(check_launches(plan_of("k", {}), compiled(program("int a;")), "f").error().message,
            "f: launches[1].kernel: no kernel \"k\" in the source; it has none");
}

TEST_F(NvrtcCompiler, VariablesOfDeviceCodeCountAsWorkspaces) {
  const CompiledProgram code = compiled(
      program("__device__ char zeroed[3ull << 30];\n"
              "__device__ int counted = 7;\n"
              "extern \"C\" __global__ void k() { zeroed[0] = static_cast<char>(counted); }\n"));
  EXPECT_EQ(static_device_bytes(code.cubin), (3ull << 30) + 4);
  EXPECT_EQ(static_device_bytes(code.cubin.substr(0, 100)), 0u);
  Program fits = plan_of("k", {});
  fits.workspaces = {{"w", std::int64_t{4} << 30}};
  EXPECT_TRUE(check_launches(fits, code, "f"));
  fits.workspaces = {{"w", std::int64_t{5} << 30}};
  EXPECT_EQ(check_launches(fits, code, "f").error().message,
            "f: workspaces and __device__ variables have 8589934596 bytes or more; expected at "
            "most 8589934592");
  CompiledProgram twice = code;
  twice.modules = {code, code};
  EXPECT_FALSE(check_launches(plan_of("k", {}), twice, "f"));
}

TEST_F(NvrtcCompiler, StacksOfResidentThreadsCountAsWorkspaces) {
  const CompiledProgram code = compiled(
      program("extern \"C\" __global__ void k(float* x) {\n"
              "  float own[32768];\n"
              "  for (int i = 0; i < 32768; ++i) own[i] = x[i];\n"
              "  x[0] = own[static_cast<int>(x[1])];\n"
              "}\n"
              "__device__ float deeper(float* x, int n) { return n < 1 ? x[n] : deeper(x, n - 1) + "
              "x[n]; }\n"
              "extern \"C\" __global__ void recursive(float* x) { x[0] = deeper(x, 7); }\n"));
  ASSERT_GE(code.find("k")->stack_bytes, 131072);
  EXPECT_LT(code.find("recursive")->stack_bytes, 1024) << "no static bound is no bound";
  const Result<Ok> checked = check_launches(plan_of("k", {BufferArgument{"x"}}), code, "f");
  ASSERT_FALSE(checked);
  EXPECT_EQ(
      checked.error().message.rfind("f: workspaces, __device__ variables and a stack of 1310", 0),
      0u)
      << checked.error().message;
}

TEST(LaunchChecks, ALargeStackIsMemoryOfEveryThreadOfTheDevice) {
  CompiledProgram code;
  code.kernels = {{"k", 32, 0, 16 << 10, 0, 0, {}}};
  Program plan;
  KernelLaunch launch;
  launch.kernel = "k";
  plan.steps = {launch};
  EXPECT_TRUE(check_launches(plan, code, "f")) << "3.4 GiB on an A100";
  plan.workspaces = {{"w", std::int64_t{5} << 30}};
  EXPECT_EQ(check_launches(plan, code, "f").error().message,
            "f: workspaces, __device__ variables and a stack of 16384 bytes for every resident "
            "thread of the device have more than the 8589934592 bytes that a candidate may have");
}

}  // namespace
}  // namespace rekernel
