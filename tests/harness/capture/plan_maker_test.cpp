#include "harness/capture/plan_maker.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "harness/base/files.h"
#include "harness/candidate/code.h"
#include "harness/compile/compile.h"
#include "harness/problems/catalog.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

/// Logs of real programs, as the recorder wrote them on an H200.
const fs::path recorded = fs::path(REKERNEL_SOURCE_DIR) / "tests/harness/capture/recorded";

std::string log_text(const std::string& program) {
  for (const fs::directory_entry& entry : fs::directory_iterator(recorded / program)) {
    if (entry.path().extension() == ".log") return read_file(entry.path()).value();
  }
  return {};
}

Result<Candidate> plan_of(const std::string& log, const std::string& program,
                          const std::string& problem) {
  const Result<Recording> recording = read_recording(log, program);
  if (!recording) return recording.error();
  const ModuleBytes modules = [&](const std::string& file) {
    return read_file(recorded / program / file);
  };
  return make_plan(*recording, modules, *find_problem(problem), "sm_90a", "captured",
                   program + ".py");
}

/// The log of the Triton softmax with something else in it. Every occurrence counts: both calls.
class Changed {
 public:
  Changed& with(const std::string& before, const std::string& after, int most = 1 << 20) {
    std::size_t at = 0;
    int count = 0;
    for (; count < most && (at = log_.find(before, at)) != std::string::npos; ++count) {
      log_.replace(at, before.size(), after);
      at += after.size();
    }
    EXPECT_GT(count, 0) << before;
    return *this;
  }
  /// A line right before each launch.
  Changed& before_launches(const std::string& line, int most = 1 << 20) {
    return with(launch_begin, line + "\n" + std::string(launch_begin), most);
  }
  Result<Candidate> plan() const { return plan_of(log_, "triton_softmax", "softmax"); }
  std::string complaint() const {
    const Result<Candidate> candidate = plan();
    return candidate ? "" : candidate.error().message;
  }

 private:
  static constexpr const char* launch_begin = R"({"event":"call","name":"cuLaunchKernelEx")";
  std::string log_ = log_text("triton_softmax");
};

const KernelLaunch& launch_at(const Candidate& candidate, std::size_t i) {
  return std::get<KernelLaunch>(candidate.program.steps.at(i));
}

std::string call(const std::string& name) {
  return R"({"event":"call","name":")" + name + R"(","thread":1091})";
}

/// Device memory that is no tensor of the problem.
constexpr const char* elsewhere =
    R"({"address":1052672,"start":1048576,"bytes":8192,"type":2,"managed":0,"device":0})";

TEST(PlanMaker, TakesATritonProgramsLaunch) {
  const Result<Candidate> candidate = Changed().plan();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  EXPECT_EQ(candidate->program.language, Language::cubin);
  EXPECT_TRUE(candidate->program.modules.empty());
  EXPECT_TRUE(candidate->program.workspaces.empty());
  ASSERT_EQ(candidate->program.steps.size(), 1u);
  const KernelLaunch& launch = launch_at(*candidate, 0);
  EXPECT_EQ(launch.kernel, "row_softmax");
  EXPECT_EQ(launch.grid[0].count, 4096);
  EXPECT_EQ(launch.block, (std::array<std::int64_t, 3>{256, 1, 1}));
  EXPECT_EQ(launch.dynamic_shared_bytes, 32);
  ASSERT_EQ(launch.args.size(), 5u);
  EXPECT_EQ(std::get<BufferArgument>(launch.args[0]).buffer, "y");
  EXPECT_EQ(std::get<BufferArgument>(launch.args[1]).buffer, "x");
  EXPECT_EQ(std::get<ScalarArgument>(launch.args[2]), ScalarArgument(std::int32_t{65536}));
  EXPECT_EQ(std::get<BytesArgument>(launch.args[3]).bytes, std::string(8, '\0'));
  const Result<CompiledProgram> code = program_from(candidate->program.source, {});
  ASSERT_TRUE(code.ok());
  const Result<Ok> fits = check_launches(candidate->program, *code, "plan");
  EXPECT_TRUE(fits.ok()) << fits.error().message;
}

TEST(PlanMaker, TakesWhatTorchCompileLaunches) {
  const Result<Candidate> candidate =
      plan_of(log_text("compile_layernorm"), "compile_layernorm", "layernorm");
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  ASSERT_EQ(candidate->program.steps.size(), 3u);
  EXPECT_EQ(candidate->program.modules.size(), 2u);
  EXPECT_EQ(launch_at(*candidate, 0).module, 0);
  EXPECT_EQ(launch_at(*candidate, 2).module, 2);
  EXPECT_EQ(launch_at(*candidate, 2).kernel, "triton_poi_fused_native_layer_norm_2");
  EXPECT_EQ(std::get<BufferArgument>(launch_at(*candidate, 0).args[0]).buffer, "x");
  ASSERT_FALSE(candidate->program.workspaces.empty());
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<CompiledProgram> code =
        program_from(module_program(candidate->program, i).source, {});
    ASSERT_TRUE(code.ok());
    EXPECT_NE(code->find(launch_at(*candidate, i).kernel), nullptr);
  }
  // The plan as text is the same plan: what is written is what is judged.
  const Result<Candidate> again =
      parse_candidate(candidate_json(*candidate), code_of(candidate->program), "kernel.json");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(candidate_sha256(*again), candidate_sha256(*candidate));
}

TEST(PlanMaker, SaysWhatCannotBeCaptured) {
  EXPECT_NE(Changed()
                .before_launches(call("cuMemcpyDtoHAsync_v2"))
                .complaint()
                .find("cuMemcpyDtoHAsync copies from the device to the host"),
            std::string::npos);
  EXPECT_NE(Changed().before_launches(call("cuMemcpyHtoDAsync_v2")).complaint().find("the host's"),
            std::string::npos);
  EXPECT_EQ(Changed().before_launches(call("cuLaunchHostFunc")).complaint(),
            "cuLaunchHostFunc runs host code in the stream");
  EXPECT_EQ(Changed().before_launches(call("cuMemAllocManaged")).complaint(),
            "cuMemAllocManaged uses pinned or managed memory");
  EXPECT_EQ(Changed().before_launches(call("cuMagic_v3")).complaint(),
            "cuMagic is not known to leave the work on the device as it is");
  EXPECT_EQ(Changed().with(R"("type":2)", R"("type":1)").complaint(),
            "kernel row_softmax: uses memory of the host");
  EXPECT_EQ(Changed().with(R"("managed":0)", R"("managed":1)").complaint(),
            "kernel row_softmax: uses managed memory");
  EXPECT_EQ(Changed().with(R"("device":0)", R"("device":1)", 1).complaint(),
            "kernel row_softmax: uses several devices");
}

TEST(PlanMaker, WantsTheSameLaunchesTwice) {
  EXPECT_EQ(Changed().with(R"("bytes":"00000100")", R"("bytes":"00000200")", 1).complaint(),
            "step 0 of the two recorded calls differs: kernel row_softmax: parameter 2, byte 2");
  EXPECT_EQ(Changed().with(R"("grid":[4096,1,1])", R"("grid":[4095,1,1])", 1).complaint(),
            "step 0 of the two recorded calls differs: kernel row_softmax: its grid, block, "
            "attributes or module");
  const std::string memset = R"({"event":"call","name":"cuMemsetD8Async","thread":1091,)"
                             R"("stream":0,"to":)" +
                             std::string(elsewhere) + R"(,"value":0,"width":1,"count":4})";
  EXPECT_EQ(Changed().before_launches(memset, 1).complaint(),
            "step 0 of the two recorded calls differs: another kind of work");
  std::string log = log_text("triton_softmax");
  log.resize(log.find(R"("call":2)"));
  log.resize(log.rfind('\n') + 1);
  const Result<Candidate> once = plan_of(log, "triton_softmax", "softmax");
  ASSERT_FALSE(once.ok());
  EXPECT_EQ(once.error().message, "recorded 1 whole call; expected 2");
}

/// Both calls with a structure of 16 bytes in the place of the last parameter, and pointers in it.
Changed with_structures(const std::string& first, const std::string& second,
                        const std::string& first_pointers = "",
                        const std::string& second_pointers = "") {
  const std::string last = R"({"offset":32,"bytes":"0000000000000000"})";
  const auto structure = [](const std::string& bytes, const std::string& pointers) {
    return R"({"offset":32,"bytes":")" + bytes + "\"" +
           (pointers.empty() ? "" : ",\"pointers\":[" + pointers + "]") + "}";
  };
  return Changed()
      .with(last, structure(first, first_pointers), 1)
      .with(last, structure(second, second_pointers), 1);
}

TEST(PlanMaker, TakesPaddingFromTheFirstCall) {
  const Result<Candidate> same = with_structures(std::string(32, '1'), std::string(32, '1')).plan();
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_EQ(same->origin.note, "captured from triton_softmax.py");
  const Result<Candidate> candidate =
      with_structures("01000000aabbccdd0200000003000000", "01000000000000ff0200000003000000")
          .plan();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  EXPECT_EQ(candidate->origin.note,
            "captured from triton_softmax.py; 4 bytes of parameters differed between the two "
            "recorded calls and are those of one: row_softmax, parameter 4");
  const auto& argument = std::get<BytesArgument>(launch_at(*candidate, 0).args.at(4));
  EXPECT_EQ(argument.bytes, std::string("\x01\0\0\0\xaa\xbb\xcc\xdd\x02\0\0\0\x03\0\0\0", 16));
}

/// A tensor map of the softmax's input, as the recorder writes it. `word` is the address in its
/// bytes, little endian.
std::string map_line(const std::string& address, const std::string& word, int swizzle = 3,
                     const std::string& strides = "[262144]") {
  return R"({"event":"tensor_map","of":{"address":)" + address + R"(,"start":)" + address +
         R"(,"bytes":1073741824,"type":2,"managed":0,"device":0},"type":7,"rank":2,)"
         R"("dims":[65536,4096],"strides":)" +
         strides + R"(,"box":[32,64],"element_strides":[1,1],"interleave":0,"swizzle":)" +
         std::to_string(swizzle) + R"(,"promotion":2,"fill":0,"bytes":")" + word +
         std::string(240, '7') + "\"}";
}

/// The inputs of the two recorded calls, as numbers and as bytes.
constexpr const char* first_input = "139765315796992";
constexpr const char* first_word = "000000a61d7f0000";
constexpr const char* second_input = "139764242055168";
constexpr const char* second_word = "000000661d7f0000";

/// Both calls with a structure of 192 bytes that holds a tensor map at 64, whose first word is an
/// address.
Changed with_maps_in_structures(const std::string& first_map, const std::string& second_map) {
  const auto structure = [](const std::string& word) {
    return std::string(128, '1') + word + std::string(240, '7');
  };
  const auto pointer = [](const std::string& address) {
    return R"([64,{"address":)" + address + R"(,"start":)" + address +
           R"(,"bytes":1073741824,"type":2,"managed":0,"device":0}])";
  };
  return with_structures(structure(first_word), structure(second_word), pointer(first_input),
                         pointer(second_input))
      .with(R"({"event":"note","note":{"call":1,"tensors")",
            first_map + "\n" + second_map + "\n" + R"({"event":"note","note":{"call":1,"tensors")");
}

TEST(PlanMaker, TakesTensorMapsOutOfStructures) {
  const Result<Candidate> candidate = with_maps_in_structures(map_line(first_input, first_word),
                                                              map_line(second_input, second_word))
                                          .plan();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  EXPECT_EQ(candidate->origin.note, "captured from triton_softmax.py");
  const auto& argument = std::get<BytesArgument>(launch_at(*candidate, 0).args.at(4));
  EXPECT_TRUE(argument.addresses.empty());
  ASSERT_EQ(argument.tensor_maps.size(), 1u);
  EXPECT_EQ(argument.tensor_maps[0].at, 64);
  EXPECT_EQ(argument.bytes, std::string(64, '\x11') + std::string(128, '\0'));
  const TensorMapArgument& map = argument.tensor_maps[0].map;
  EXPECT_EQ(map.buffer, "x");
  EXPECT_EQ(map.dtype, DType::f32);
  EXPECT_EQ(map.offset_bytes, 0);
  EXPECT_EQ(map.dims, (std::vector<std::int64_t>{65536, 4096}));
  EXPECT_EQ(map.strides_bytes, std::vector<std::int64_t>{262144});
  EXPECT_EQ(map.box, (std::vector<std::int64_t>{32, 64}));
  EXPECT_EQ(map.swizzle, TensorMapArgument::Swizzle::b128);
  EXPECT_EQ(map.l2_promotion, TensorMapArgument::L2Promotion::b128);
}

TEST(PlanMaker, LeavesTensorMapsAsBytesThatAPlanHasNoWordsFor) {
  // A stride beyond the buffer; a swizzle that is not known.
  for (const auto& [swizzle, strides] :
       {std::pair{3, std::string("[524288]")}, std::pair{9, std::string("[262144]")}}) {
    const Result<Candidate> candidate =
        with_maps_in_structures(map_line(first_input, first_word, swizzle, strides),
                                map_line(second_input, second_word, swizzle, strides))
            .plan();
    ASSERT_TRUE(candidate.ok()) << candidate.error().message;
    const auto& argument = std::get<BytesArgument>(launch_at(*candidate, 0).args.at(4));
    EXPECT_TRUE(argument.tensor_maps.empty());
    ASSERT_EQ(argument.addresses.size(), 1u);
    EXPECT_EQ(argument.addresses[0].at, 64);
    EXPECT_EQ(argument.addresses[0].buffer, "x");
  }
}

TEST(PlanMaker, RefusesTensorMapsThatDiffer) {
  EXPECT_EQ(with_maps_in_structures(map_line(first_input, first_word, 3),
                                    map_line(second_input, second_word, 2))
                .complaint(),
            "step 0 of the two recorded calls differs: kernel row_softmax: parameter 4, its tensor "
            "maps");
}

TEST(PlanMaker, TakesAWorkspaceThatTheProgramAllocatesInTheCall) {
  // Another piece of memory in each call, and questions and attributes before the launch.
  const auto pointer = [](const std::string& address) {
    return R"([0,{"address":)" + address + R"(,"start":)" + address +
           R"(,"bytes":4096,"type":2,"managed":0,"device":0}])";
  };
  const Result<Candidate> candidate =
      with_structures("00001000000000000500000000000000", "00002000000000000500000000000000",
                      pointer("1048576"), pointer("2097152"))
          .before_launches(call("cuMemAlloc_v2"))
          .before_launches(call("cuFuncSetAttribute"))
          .before_launches(call("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"))
          .before_launches(call("cuDeviceGetAttribute"))
          .before_launches(call("cuKernelSetAttribute"))
          .before_launches(call("cuTensorMapEncodeTiled"))
          .plan();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  ASSERT_EQ(candidate->program.workspaces.size(), 1u);
  EXPECT_EQ(candidate->program.workspaces[0].bytes, 4096);
  const auto& argument = std::get<BytesArgument>(launch_at(*candidate, 0).args.at(4));
  ASSERT_EQ(argument.addresses.size(), 1u);
  EXPECT_EQ(argument.addresses[0].buffer, candidate->program.workspaces[0].name);
}

TEST(PlanMaker, TakesForPaddingWhatIsAnAddressInOneCallAlone) {
  const std::string at_zero = "[0," + std::string(elsewhere) + "]";
  const std::string with = "00101000000000000500000000000000";
  const std::string without = "00000000000000ff0500000000000000";
  for (const bool first : {true, false}) {
    const Result<Candidate> candidate = (first ? with_structures(with, without, at_zero)
                                               : with_structures(without, with, "", at_zero))
                                            .plan();
    ASSERT_TRUE(candidate.ok()) << candidate.error().message;
    const auto& argument = std::get<BytesArgument>(launch_at(*candidate, 0).args.at(4));
    EXPECT_TRUE(argument.addresses.empty());
    EXPECT_TRUE(candidate->program.workspaces.empty());
    EXPECT_NE(candidate->origin.note.find("; 3 bytes of parameters differed"), std::string::npos)
        << candidate->origin.note;
    EXPECT_EQ(argument.bytes, std::string("\0\0\0\0\0\0\0\xff\x05\0\0\0\0\0\0\0", 16));
  }
  const Result<Candidate> both = with_structures(with, with, at_zero, at_zero).plan();
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(std::get<BytesArgument>(launch_at(*both, 0).args.at(4)).addresses.size(), 1u);
}

TEST(PlanMaker, TakesForPaddingAnAddressThatMovesBetweenTensors) {
  const std::string output =
      R"([0,{"address":139763168313344,"start":139763168313344,"bytes":1073741824,"type":2,"managed":0,"device":0}])";
  const Result<Candidate> candidate =
      with_structures("000000261d7f00000500000000000000", "00101000000000000500000000000000",
                      output, "[0," + std::string(elsewhere) + "]")
          .plan();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  const auto& argument = std::get<BytesArgument>(launch_at(*candidate, 0).args.at(4));
  EXPECT_TRUE(argument.addresses.empty());
  EXPECT_EQ(argument.bytes, std::string("\0\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0", 16));
  EXPECT_NE(candidate->origin.note.find(" of parameters differed"), std::string::npos)
      << candidate->origin.note;
}

TEST(PlanMaker, KnowsEachOfSeveralOutputs) {
  Recording recording = *read_recording(log_text("triton_softmax"), "triton_softmax");
  // The softmax's tensors as if they were those of another problem, the second output first.
  const Problem& problem = *find_problem("top_k");
  const std::int64_t values = problem.find_tensor("values")->bytes();
  const std::int64_t index = problem.find_tensor("index")->bytes();
  for (RecordedCall& call : recording.calls) {
    call.inputs.front().bytes = problem.find_tensor("x")->bytes();
    const std::int64_t address = call.outputs.front().address;
    call.outputs = {{"values", address + index, values}, {"index", address, index}};
  }
  const auto plan = [&] {
    return make_plan(
        recording,
        [](const std::string& file) { return read_file(recorded / "triton_softmax" / file); },
        problem, "sm_90a", "captured", "program.py");
  };
  const Result<Candidate> candidate = plan();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  std::set<std::string> buffers;
  for (const Argument& argument : launch_at(*candidate, 0).args) {
    if (const auto* buffer = std::get_if<BufferArgument>(&argument)) buffers.insert(buffer->buffer);
  }
  EXPECT_EQ(buffers, (std::set<std::string>{"index", "x"}));
  recording.calls[1].outputs.pop_back();
  EXPECT_EQ(plan().error().message, "the recording does not have all outputs of top_k");
  recording.calls[1].outputs.push_back({"third", 1 << 20, 64});
  EXPECT_EQ(plan().error().message,
            "the recording has an output \"third\", which is not one of top_k's");
}

constexpr const char* in_a_row =
    "; what the program has in several streams or branches of a graph runs in one here";

TEST(PlanMaker, MakesOneRowOfWork) {
  const std::string other_stream = R"({"event":"call","name":"cuMemsetD8Async","thread":1091,)"
                                   R"("stream":77,"to":)" +
                                   std::string(elsewhere) + R"(,"value":0,"width":1,"count":4})";
  const Result<Candidate> two_streams = Changed().before_launches(other_stream).plan();
  ASSERT_TRUE(two_streams.ok()) << two_streams.error().message;
  EXPECT_EQ(two_streams->program.steps.size(), 2u);
  EXPECT_TRUE(two_streams->origin.note.ends_with(in_a_row)) << two_streams->origin.note;
  EXPECT_FALSE(Changed().plan()->origin.note.ends_with(in_a_row));
  const std::string other_thread = R"({"event":"call","name":"cuMemsetD8Async","thread":1092,)"
                                   R"("stream":0,"to":)" +
                                   std::string(elsewhere) + R"(,"value":0,"width":1,"count":4})";
  EXPECT_EQ(Changed().before_launches(other_thread).complaint(),
            "works from several threads; expected one");
  EXPECT_EQ(Changed()
                .with(R"("name":"cuLaunchKernelEx","thread":1091,)",
                      R"("name":"cuLaunchKernelEx","thread":1091,"result":701,)")
                .complaint(),
            "cuLaunchKernelEx failed with CUDA error 701");
  // A result that was kept on the host needs no launch.
  std::string log = log_text("triton_softmax");
  for (std::size_t at; (at = log.find(R"("name":"cuLaunchKernelEx")")) != std::string::npos;) {
    const std::size_t begin = log.rfind('\n', at) + 1;
    log.erase(begin, log.find('\n', at) + 1 - begin);
  }
  const Result<Candidate> none = plan_of(log, "triton_softmax", "softmax");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "launches no kernel inside of the call");
}

/// A call that works in stream 0.
std::string work(const std::string& name, const std::string& rest) {
  return R"({"event":"call","name":")" + name + R"(","thread":1091,"stream":0,)" + rest + "}";
}

const std::string to_elsewhere = R"("to":)" + std::string(elsewhere);

Result<Candidate> with_memsets_and_a_copy() {
  return Changed()
      .before_launches(
          work("cuMemsetD8Async", to_elsewhere + R"(,"value":7,"width":1,"count":100)"))
      .before_launches(
          work("cuMemsetD32Async", to_elsewhere + R"(,"value":9,"width":4,"count":10)"))
      .before_launches(work("cuMemcpyDtoDAsync_v2", to_elsewhere + R"(,"from":)" +
                                                        std::string(elsewhere) + R"(,"count":64)"))
      .plan();
}

TEST(PlanMaker, KeepsMemsetsAndCopies) {
  const Result<Candidate> candidate = with_memsets_and_a_copy();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  ASSERT_EQ(candidate->program.steps.size(), 4u);
  const auto& memset = std::get<Memset>(candidate->program.steps[0]);
  EXPECT_EQ(memset.value, 7);
  EXPECT_EQ(memset.bytes, 100);
  ASSERT_EQ(candidate->program.workspaces.size(), 1u);
  EXPECT_EQ(candidate->program.workspaces[0].bytes, 4096);  // from the address to the end
  EXPECT_EQ(launch_at(*candidate, 1).kernel, "fill_bytes");
  EXPECT_EQ(launch_at(*candidate, 2).kernel, "copy_bytes");
  EXPECT_EQ(launch_at(*candidate, 2).module, 1);
  EXPECT_EQ(launch_at(*candidate, 3).module, 0);
  ASSERT_EQ(candidate->program.modules.size(), 1u);
  EXPECT_EQ(candidate->program.modules[0].language, Language::cuda);

  EXPECT_EQ(Changed()
                .before_launches(
                    work("cuMemsetD8Async", to_elsewhere + R"(,"value":7,"width":1,"count":5000)"))
                .complaint(),
            "a memset reaches past the end of its memory");
}

TEST(NvrtcPlanMaker, BringsKernelsThatCompile) {
  const Result<Candidate> candidate = with_memsets_and_a_copy();
  ASSERT_TRUE(candidate.ok()) << candidate.error().message;
  const Result<Compiler> compiler = Compiler::load();
  ASSERT_TRUE(compiler.ok()) << compiler.error().message;
  const Result<CompiledProgram> compiled =
      compiler->compile(candidate->program, problem_header(*find_problem("softmax")), "sm_90a");
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
}

TEST(PlanMaker, ExpandsGraphs) {
  const std::string log = log_text("triton_softmax");
  const std::size_t at = log.find(R"("name":"cuLaunchKernelEx")");
  const std::size_t begin = log.find(R"("kernel")", at);
  const std::string launch = log.substr(begin, log.find('\n', at) - begin);
  const std::string node = R"({"event":"node","type":0,)" + launch;
  // The second call's addresses are the first one's: a graph keeps its own.
  const auto with_graph = [&](const std::string& edges) {
    std::string text = log;
    for (std::size_t line;
         (line = text.find(R"("name":"cuLaunchKernelEx")")) != std::string::npos;) {
      const std::size_t from = text.rfind('\n', line) + 1;
      text.replace(from, text.find('\n', line) - from,
                   R"({"event":"call","name":"cuGraphLaunch","thread":1091,"stream":0,"graph":5})");
    }
    const std::size_t second = text.find(R"("call": 2)") != std::string::npos
                                   ? text.find(R"("call": 2)")
                                   : text.find(R"("call":2)");
    const std::size_t first = text.find(R"("tensors":)");
    const std::string tensors = text.substr(first, text.find('\n', first) - first);
    const std::size_t other = text.find(R"("tensors":)", second);
    text.replace(other, text.find('\n', other) - other, tensors);
    return text.insert(text.find('\n') + 1, R"({"event":"graph","graph":5,"nodes":[)" + node + "," +
                                                node + R"(],"edges":[)" + edges + "]}\n");
  };
  const Result<Candidate> chain = plan_of(with_graph("[1,0]"), "triton_softmax", "softmax");
  ASSERT_TRUE(chain.ok()) << chain.error().message;
  EXPECT_EQ(chain->program.steps.size(), 2u);
  EXPECT_FALSE(chain->origin.note.ends_with(in_a_row));
  const Result<Candidate> branches = plan_of(with_graph(""), "triton_softmax", "softmax");
  ASSERT_TRUE(branches.ok()) << branches.error().message;
  EXPECT_EQ(branches->program.steps.size(), 2u);
  EXPECT_TRUE(branches->origin.note.ends_with(in_a_row)) << branches->origin.note;
  const Result<Candidate> circle = plan_of(with_graph("[1,0],[0,1]"), "triton_softmax", "softmax");
  ASSERT_FALSE(circle.ok());
  EXPECT_EQ(circle.error().message, "launches a graph whose nodes wait for each other");
}

TEST(PlanMaker, WantsTheProblemsTensors) {
  const Result<Candidate> candidate =
      plan_of(log_text("triton_softmax"), "triton_softmax", "layernorm");
  ASSERT_FALSE(candidate.ok());
  EXPECT_NE(candidate.error().message.find("tensor \"x\" has 1073741824 bytes"), std::string::npos)
      << candidate.error().message;
}

TEST(PlanMaker, RefusesAKernelThatNoModuleHas) {
  EXPECT_EQ(Changed().with("row_softmax", "row_hardmax").complaint(),
            "kernel row_hardmax: is in none of the modules that were recorded");
}

}  // namespace
}  // namespace rekernel
