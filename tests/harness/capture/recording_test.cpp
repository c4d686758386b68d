#include "harness/capture/recording.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

constexpr const char* start = R"({"event":"start","cupti":130001,"problem":""})";
constexpr const char* begin = R"({"event":"note","note":{"call":1,"tensors":{"x":[4096,64]}}})";
constexpr const char* end = R"({"event":"note","note":{"call":1,"outputs":{"y":[8192,64]}}})";

std::string log_of(std::initializer_list<std::string> lines) {
  std::string log;
  for (const std::string& line : lines) log += line + "\n";
  return log;
}

std::string complaint(std::initializer_list<std::string> lines) {
  const Result<Recording> recording = read_recording(log_of(lines), "7.log");
  return recording ? "" : recording.error().message;
}

TEST(Recording, HasModulesCallsAndWhatTheyDid) {
  const Result<Recording> recording = read_recording(
      log_of(
          {start, R"({"event":"module","id":1,"bytes":9,"file":"7.1.module"})", begin,
           R"({"event":"call","name":"cuCtxGetDevice","thread":7})",
           R"({"event":"call","name":"cuLaunchKernel","thread":7,"stream":5,"kernel":"k",)"
           R"("module":1,"grid":[2,1,1],"block":[32,1,1],"shared_bytes":16,)"
           R"("attributes":[[4,"020000000100000001000000"]],"parameters":[{"offset":0,)"
           R"("bytes":"0010000000000000","pointers":[[0,{"address":4096,"start":4096,)"
           R"("bytes":64,"type":2,"managed":0,"device":0}]]}]})",
           R"({"event":"call","name":"cuMemsetD8Async","thread":7,"stream":0,"to":{"address":9},)"
           R"("value":1,"width":1,"count":4})",
           end}),
      "7.log");
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  EXPECT_EQ(recording->modules, (std::vector<std::string>{"", "7.1.module"}));
  ASSERT_EQ(recording->calls.size(), 1u);
  const RecordedCall& call = recording->calls.front();
  EXPECT_EQ(call.inputs.front().name, "x");
  EXPECT_EQ(call.outputs.front().name, "y");
  EXPECT_EQ(call.outputs.front().address, 8192);
  ASSERT_EQ(call.steps.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<RecordedOther>(call.steps[0].what));
  EXPECT_EQ(call.steps[1].stream, 5);
  const auto& launch = std::get<RecordedLaunch>(call.steps[1].what);
  EXPECT_EQ(launch.kernel, "k");
  EXPECT_EQ(launch.module, 1);
  EXPECT_EQ(launch.attributes.front().first, 4);
  EXPECT_EQ(launch.attributes.front().second.size(), 12u);
  ASSERT_EQ(launch.parameters.size(), 1u);
  EXPECT_EQ(launch.parameters.front().bytes, std::string("\0\x10\0\0\0\0\0\0", 8));
  EXPECT_EQ(launch.parameters.front().addresses.front().second.bytes, 64);
  EXPECT_EQ(std::get<RecordedMemset>(call.steps[2].what).to.bytes, 0);
}

TEST(Recording, WithoutItsEndIsReadAsFarAsItGoes) {
  const Result<Recording> recording =
      read_recording(log_of({start, begin}) + R"({"event":"ca)", "7.log");
  ASSERT_TRUE(recording.ok()) << recording.error().message;
  EXPECT_TRUE(recording->calls.empty());
}

TEST(Recording, IsAStrangersWord) {
  EXPECT_EQ(complaint({"nonsense"}).rfind("7.log: line 1: ", 0), 0u);
  EXPECT_EQ(complaint({R"({"event":"party"})"}), "7.log: line 1: unknown event");
  EXPECT_EQ(complaint({start, R"({"event":"module","id":0,"bytes":1,"file":"../secret"})"}),
            "7.log: line 2: file: expected digits, a-z and dots");
  EXPECT_EQ(complaint({start, R"({"event":"module","id":9999,"bytes":1,"file":"a"})"}),
            "7.log: line 2: id: expected an integer from 0 to 4095, got 9999");
  EXPECT_EQ(complaint({start, end}), "7.log: line 2: note: a call ends out of turn");
  EXPECT_EQ(complaint({start, begin, begin}), "7.log: line 3: note: a call begins out of turn");
  EXPECT_EQ(complaint({start, R"({"event":"call","name":"cuInit","thread":1})"}),
            "7.log: line 2: a call of the driver outside of the program's calls");
  EXPECT_NE(complaint({start, begin,
                       R"({"event":"call","name":"c","thread":1,"kernel":"k","grid":[1,1,1],)"
                       R"("block":[1,1,1],"shared_bytes":0,"parameters":[{"offset":0,)"
                       R"("bytes":"00112","pointers":[]}]})"}),
            "");
  EXPECT_NE(complaint({start, begin,
                       R"({"event":"call","name":"c","thread":1,"from":{"address":1},)"
                       R"("to":{"address":9,"start":1,"bytes":4,"type":2,"managed":0,"device":0},)"
                       R"("count":1})"})
                .find("outside of its allocation"),
            std::string::npos);
  EXPECT_NE(complaint({start, begin,
                       R"({"event":"call","name":"c","thread":1,"to":{"address":1},"value":7,)"
                       R"("width":3,"count":1})"})
                .find("width: expected 1, 2 or 4"),
            std::string::npos);
  EXPECT_NE(complaint({start, R"({"event":"graph","graph":1,"nodes":[],"edges":[[0,0]]})"}), "");
}

}  // namespace
}  // namespace rekernel
