#include "harness/capture/capture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "harness/base/files.h"
#include "harness/problems/catalog.h"
#include "harness/process/sandbox.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// As much of PyTorch as the driver needs. Tensors lie where those of the recorded Triton softmax
/// lay: the inputs of two calls, then the output.
constexpr const char* fake_torch = R"python(
__version__ = "fake"
float16, bfloat16, float32, float64, uint8, int32 = "f16", "bf16", "f32", "f64", "u8", "i32"
places = [139765315796992, 139764242055168]

class Tensor:
    is_cuda = True
    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype
        self.place = places.pop(0) if places else 139763168313344
    def data_ptr(self):
        return self.place
    def numel(self):
        return self.shape[0] * self.shape[1]
    def element_size(self):
        return 4
    def is_contiguous(self):
        return True
    def fill_(self, value):
        pass
    def normal_(self, mean, deviation):
        pass

def empty(shape, dtype, device):
    return Tensor(shape if isinstance(shape, list) else [shape, 1], dtype)

class no_grad:
    def __enter__(self):
        pass
    def __exit__(self, *error):
        pass

class Event:
    def __init__(self, enable_timing):
        pass
    record = synchronize = lambda self: None
    def elapsed_time(self, other):
        return 0.5

class cuda:
    Event = Event
    is_available = staticmethod(lambda: SEES_GPU)
    set_device = staticmethod(lambda device: None)
    synchronize = staticmethod(lambda: None)
    _sleep = staticmethod(lambda cycles: None)
    class get_device_properties:
        L2_cache_size = 1024
        def __init__(self, device):
            pass

def manual_seed(seed):
    pass

def set_grad_enabled(on):
    pass
)python";

/// The recorded Triton softmax: its module, and what its two calls asked the driver for.
const fs::path recorded_softmax =
    fs::path(REKERNEL_SOURCE_DIR) / "tests/harness/capture/recorded/triton_softmax";

void write_recorded_calls(const fs::path& folder) {
  std::istringstream lines(read_file(recorded_softmax / "1091.log").value());
  int call = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("\"tensors\"") != std::string::npos) ++call;
    if (line.find("\"event\":\"call\"") == std::string::npos) continue;
    std::ofstream(folder / ("calls." + std::to_string(call)), std::ios::app) << line << "\n";
  }
}

/// Programs of strangers, run by the python3 that is here.
class CapturedProgram : public ::testing::Test {
 protected:
  explicit CapturedProgram(const std::string& sandbox = "off")
      : sandbox_("REKERNEL_SANDBOX", sandbox) {}

  Result<Capture> capture(const std::string& program,
                          std::chrono::seconds deadline = std::chrono::seconds(30),
                          bool sees_gpu = true) {
    std::ofstream(folder_ / "torch.py") << "SEES_GPU = " << (sees_gpu ? "True" : "False") << "\n"
                                        << fake_torch;
    std::ofstream(folder_ / "program.py") << program;
    CaptureRequest request;
    request.program = folder_ / "program.py";
    request.recorder = FAKE_RECORDER;
    request.name = "program";
    request.arch = "sm_90a";
    request.deadline = deadline;
    request.samples = 10;
    return capture_program(request, *find_problem("softmax"));
  }

  std::string complaint(const std::string& program,
                        std::chrono::seconds deadline = std::chrono::seconds(30),
                        bool sees_gpu = true) {
    const Result<Capture> captured = capture(program, deadline, sees_gpu);
    EXPECT_FALSE(captured.ok());
    const std::string message = captured ? "" : captured.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    const std::string place = (folder_ / "program.py").string() + ": ";
    EXPECT_EQ(message.rfind(place, 0), 0u) << message;
    return message.substr(std::min(place.size(), message.size()));
  }

  TemporaryFolder folder_{fs::temp_directory_path()};  // a sandbox has a /dev of its own
  ScopedVariable sandbox_;
  ScopedVariable modules_{"PYTHONPATH", folder_.path().string()};
  ScopedVariable calls_{"FAKE_CALLS", (folder_ / "calls.").string()};
};

constexpr const char* softmax_program =
    "import torch\ndef softmax(x):\n  return torch.empty(x.shape, x.dtype, 'cuda')\n";

TEST_F(CapturedProgram, BecomesACandidate) {
  write_recorded_calls(folder_.path());
  // Its module, as the recorder would have written it: from within the process.
  const Result<Capture> captured = capture(
      "import os, shutil\nlogs = os.environ['REKERNEL_CAPTURE_LOGS']\n"
      "shutil.copy('" +
      (recorded_softmax / "1091.1.module").string() +
      "', logs)\n"
      "open(logs + '/7.log', 'a').write("
      "'{\"event\":\"module\",\"id\":1,\"bytes\":9,\"file\":\"1091.1.module\"}\\n')\n" +
      std::string(softmax_program));
  ASSERT_TRUE(captured.ok()) << captured.error().message;
  EXPECT_EQ(captured->entry, "softmax");
  EXPECT_EQ(captured->torch, "fake");
  EXPECT_EQ(captured->call_ns, std::vector<std::int64_t>(10, 500000));
  EXPECT_EQ(captured->device_ns.size(), 10u);
  const Program& program = captured->candidate.program;
  EXPECT_EQ(captured->candidate.name, "program");
  EXPECT_EQ(captured->candidate.origin.note, "captured from program.py (softmax)");
  ASSERT_EQ(program.steps.size(), 1u);
  const auto& launch = std::get<KernelLaunch>(program.steps.front());
  EXPECT_EQ(launch.kernel, "row_softmax");
  EXPECT_EQ(std::get<BufferArgument>(launch.args[0]).buffer, "y");
  EXPECT_EQ(std::get<BufferArgument>(launch.args[1]).buffer, "x");
}

TEST_F(CapturedProgram, MustLaunchSomething) {
  EXPECT_EQ(complaint(softmax_program), "launches no kernel inside of the call");
}

TEST_F(CapturedProgram, MustHaveItsModules) {
  write_recorded_calls(folder_.path());
  EXPECT_EQ(complaint(softmax_program),
            "kernel row_softmax: is in none of the modules that were recorded");
}

TEST_F(CapturedProgram, MayWriteNonsenseIntoItsLog) {
  const std::string begin = "import os\nlog = os.environ['REKERNEL_CAPTURE_LOGS'] + '/7.log'\n";
  EXPECT_EQ(complaint(begin + "open(log, 'w').write('nonsense\\n')\n" + softmax_program)
                .rfind("7.log: line 1: ", 0),
            0u);
  EXPECT_EQ(complaint(begin + "os.symlink(os.environ['FAKE_CALLS'] + 'elsewhere', log)\n" +
                      softmax_program),
            "7.log: not a regular file");
  EXPECT_EQ(complaint(begin + "os.mkfifo(log)\n" + softmax_program, std::chrono::seconds(3)),
            "not done within 3 s (--deadline gives more)");
}

TEST_F(CapturedProgram, MustBeLoaded) {
  EXPECT_EQ(complaint("import tensorpuree\n"),
            "the program cannot be loaded: ModuleNotFoundError: No module named 'tensorpuree'");
  EXPECT_EQ(complaint("x = = 1\n").rfind("the program cannot be loaded: SyntaxError", 0), 0u);
  EXPECT_EQ(complaint("raise RuntimeError('two\\nlines')\n"),
            "the program cannot be loaded: RuntimeError: two lines");
}

TEST_F(CapturedProgram, MustHaveSomethingToCall) {
  EXPECT_EQ(complaint("def helper(a, b):\n  return a\n"),
            "the program has no ModelNew or Model, no custom_kernel and no function of x");
  EXPECT_EQ(complaint("def one(x):\n  return x\ndef two(x):\n  return x\n"),
            "the program has one and two; choose with --function");
  EXPECT_EQ(complaint("class ModelNew:\n  pass\n"),
            "ModelNew without get_inputs(); KernelBench's format has it");
}

TEST_F(CapturedProgram, MustNotEndBeforeItsTime) {
  EXPECT_EQ(complaint("import sys\nsys.exit(3)\n"),
            "the program ended itself while it was loaded (status 3)");
  EXPECT_EQ(complaint("import os\nos._exit(0)\n"), "ended early without an answer");
  EXPECT_EQ(complaint("import os\nos._exit(7)\n"), "ended with status 7");
  EXPECT_EQ(complaint("import os\nos.abort()\n"), "died of Aborted");
}

TEST_F(CapturedProgram, HasADeadline) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(complaint("while True:\n  pass\n", std::chrono::seconds(2)),
            "not done within 2 s (--deadline gives more)");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(CapturedProgram, IsNotWaitedForAfterWhatItStarted) {
  const auto begin = std::chrono::steady_clock::now();
  complaint("import os, time\nif os.fork() == 0:\n  time.sleep(60)\n  os._exit(0)\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST_F(CapturedProgram, MayPrintWhatItLikes) {
  EXPECT_EQ(complaint("import sys\nfor i in range(256):\n  sys.stdout.write('x' * (1 << 20))\n"
                      "  sys.stderr.write('y' * (1 << 16))\nraise KeyError('enough')\n"),
            "the program cannot be loaded: KeyError: 'enough'");
}

TEST_F(CapturedProgram, NeedsAGpu) {
  EXPECT_EQ(complaint("", std::chrono::seconds(30), false), "PyTorch sees no GPU");
}

TEST_F(CapturedProgram, LeavesNoFolder) {
  const auto folders = [] {
    std::size_t count = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::temp_directory_path())) {
      count += entry.path().filename().string().starts_with("rekernel-capture-") ? 1 : 0;
    }
    return count;
  };
  TemporaryFolder own_temporary;
  const ScopedVariable temporary("TMPDIR", own_temporary.path().string());
  complaint("open('file', 'w')\nraise KeyError('enough')\n");
  EXPECT_EQ(folders(), 0u);
}

/// A program without Python, which calls its work between marks.
class MarkedProgram : public CapturedProgram {
 protected:
  Result<Capture> capture_marked(std::vector<std::string> arguments) {
    CaptureRequest request;
    request.program = MARKED_PROGRAM;
    request.arguments = std::move(arguments);
    request.recorder = FAKE_RECORDER;
    request.name = "program";
    request.arch = "sm_90a";
    request.samples = 10;
    return capture_program(request, *find_problem("softmax"));
  }

  std::string complaint_of_marks(std::vector<std::string> arguments) {
    const Result<Capture> captured = capture_marked(std::move(arguments));
    EXPECT_FALSE(captured.ok());
    const std::string message = captured ? "" : captured.error().message;
    const std::string place = std::string(MARKED_PROGRAM) + ": ";
    EXPECT_EQ(message.rfind(place, 0), 0u) << message;
    return message.substr(std::min(place.size(), message.size()));
  }

  ScopedVariable module_{"FAKE_MODULE", (recorded_softmax / "1091.1.module").string()};
};

TEST_F(MarkedProgram, BecomesACandidate) {
  write_recorded_calls(folder_.path());
  const Result<Capture> captured = capture_marked({});
  ASSERT_TRUE(captured.ok()) << captured.error().message;
  EXPECT_EQ(captured->entry, "marked_program");
  EXPECT_EQ(captured->torch, "");
  EXPECT_TRUE(captured->device_ns.empty());
  ASSERT_EQ(captured->candidate.program.steps.size(), 1u);
  const auto& launch = std::get<KernelLaunch>(captured->candidate.program.steps.front());
  EXPECT_EQ(launch.kernel, "row_softmax");
  EXPECT_EQ(std::get<BufferArgument>(launch.args[0]).buffer, "y");
  EXPECT_EQ(std::get<BufferArgument>(launch.args[1]).buffer, "x");
}

TEST_F(MarkedProgram, MayCallItsWorkMoreOftenAndNotLess) {
  write_recorded_calls(folder_.path());
  EXPECT_TRUE(capture_marked({"y", "7"}).ok());
  EXPECT_EQ(complaint_of_marks({"y", "2"}), "recorded 1 whole call; expected 2");
  const std::string none =
      "marked no call of its work, or fewer than three (rekernel_marks.h): the first warms up, the "
      "two after it are recorded";
  EXPECT_EQ(complaint_of_marks({"y", "1"}), none);
  EXPECT_EQ(complaint_of_marks({"y", "0"}), none);
}

TEST_F(MarkedProgram, NamesTheProblemsTensors) {
  EXPECT_EQ(complaint_of_marks({"z"}), "marks \"z\", which is no tensor of softmax; it has x, y");
  EXPECT_EQ(complaint_of_marks({"-"}), "marks no \"y\"; expected x, y");
}

TEST_F(MarkedProgram, HasItsTensorsInDeviceMemory) {
  {
    const ScopedVariable bytes("FAKE_BYTES", "4096");
    EXPECT_EQ(complaint_of_marks({}),
              "marks \"x\", which has 1073741824 bytes, where its memory has only 4096");
  }
  const ScopedVariable bytes("FAKE_BYTES", "0");
  EXPECT_EQ(complaint_of_marks({}), "marks \"x\" with no address of device memory");
}

TEST_F(MarkedProgram, RunsAsBeforeWhereNothingRecords) {
  EXPECT_EQ(std::system(MARKED_PROGRAM), 0);  // NOLINT(concurrency-mt-unsafe)
}

TEST(Capture, AProgramWithoutPythonIsAnExecutable) {
  const TemporaryFolder folder;
  CaptureRequest request;
  request.name = "program";
  request.program = folder / "program";
  std::ofstream(request.program) << "text";
  const auto complaint = [&] {
    const Result<Ok> sound = check_request(request, *find_problem("softmax"));
    return sound ? "" : sound.error().message;
  };
  EXPECT_EQ(complaint(),
            request.program.string() + ": expected a Python program (.py) or an executable");
  fs::permissions(request.program, fs::perms::owner_all);
  EXPECT_EQ(complaint(), "");
  request.function = "softmax";
  EXPECT_EQ(complaint(), "--function: expected a Python program (.py)");
  request.function.reset();
  request.program = folder / "program.py";
  request.arguments = {"4096"};
  std::ofstream(request.program) << softmax_program;
  EXPECT_EQ(complaint(), request.program.string() + ": a Python program gets no arguments");
}

class SandboxedProgram : public CapturedProgram {
 protected:
  SandboxedProgram() : CapturedProgram("on") {}
  void SetUp() override {
    if (!sandbox()) GTEST_SKIP() << sandbox().error().message;
  }
};

TEST_F(SandboxedProgram, HasNoNetworkAndNothingToWriteButItsScratchFolder) {
  const TemporaryFolder secret(fs::temp_directory_path());
  EXPECT_EQ(complaint("secret = '" + secret.path().string() + "'\n" + R"python(
import os, socket
def outcome(action):
    try:
        action()
        return "done"
    except OSError as error:
        return type(error).__name__
project = os.path.dirname(os.environ["CUDA_INJECTION64_PATH"])
raise RuntimeError(" ".join([
    outcome(lambda: socket.create_connection(("192.0.2.1", 9), 1)),
    outcome(lambda: open(os.path.join(project, "written"), "w")),
    outcome(lambda: open(__file__, "a")),
    outcome(lambda: os.listdir(secret)),
    outcome(lambda: open("written", "w")),
]))
)python"),
            "the program cannot be loaded: RuntimeError: OSError OSError OSError "
            "FileNotFoundError done");
}

TEST(Capture, NeedsAProgramAndARecorder) {
  const ScopedVariable sandbox("REKERNEL_SANDBOX", "off");
  CaptureRequest request;
  request.program = "/nowhere/program.py";
  EXPECT_EQ(capture_program(request, *find_problem("softmax")).error().message,
            "/nowhere/program.py: not a file");
  const TemporaryFolder folder;
  request.program = folder / "program.py";
  std::ofstream(request.program) << softmax_program;
  request.name = "program";
  request.recorder = "/nowhere/recorder.so";
  EXPECT_EQ(capture_program(request, *find_problem("softmax"))
                .error()
                .message.rfind("/nowhere/recorder.so is missing: ", 0),
            0u);
}

TEST(Capture, WhatIsWrongWithARequestIsKnownBeforeTheProgramRuns) {
  const TemporaryFolder folder;
  const fs::path program = folder / "program.py";
  const auto complaint = [&](const std::string& text, const std::string& name,
                             const std::optional<std::string>& function) {
    std::ofstream(program) << text;
    CaptureRequest request;
    request.program = program;
    request.name = name;
    request.function = function;
    const Result<Ok> sound = check_request(request, *find_problem("softmax"));
    return sound ? "" : sound.error().message;
  };
  const std::string where = program.string() + ": ";
  EXPECT_EQ(complaint(softmax_program, "program", {}), "");
  EXPECT_EQ(complaint(softmax_program, "program", "softmax"), "");
  EXPECT_EQ(complaint(softmax_program, "program", "soft"), where + "the program has no 'soft'");
  EXPECT_EQ(complaint("from other import *\n", "program", "soft"), "");
  EXPECT_EQ(complaint(softmax_program, "program", "a b"),
            "function 'a b': expected the name of a Python function");
  for (const char* name : {"c_Softmax", "../softmax", ""}) {
    const std::string message = complaint(softmax_program, name, {});
    EXPECT_EQ(message.rfind("the candidate: name: ", 0), 0u) << message;
  }
  EXPECT_NE(complaint(std::string(17u << 20, '\n'), "program", {}), "");
}

}  // namespace
}  // namespace rekernel
