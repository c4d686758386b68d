#include "replay/search/search_file.h"

#include <gtest/gtest.h>
#include <boost/json.hpp>

#include "harness/candidate/candidate.h"
#include "replay/search/reply.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

using testing::write_text;

std::string load_error(const std::string& text) {
  TemporaryFolder folder;
  write_text(folder / "s.json", text);
  const auto file = load_search_file(folder / "s.json");
  return file ? "good" : file.error().message.substr(folder.path().string().size() + 1);
}

TEST(SearchFile, TakesDefaultsForWhatIsAbsent) {
  TemporaryFolder folder;
  write_text(folder / "s.json", "{}");
  const auto file = load_search_file(folder / "s.json");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->settings.rounds, 5);
  EXPECT_FALSE(file->device);
}

TEST(SearchFile, NamesWhatIsWrong) {
  EXPECT_EQ(load_error(R"({"colour": "red"})").substr(0, 31), "s.json: unknown key \"colour\"; k");
  EXPECT_EQ(load_error(R"({"settings": {"rounds": 0}})"),
            "s.json: settings.rounds: expected an integer from 1 to 1000, got 0");
  EXPECT_EQ(
      load_error(R"({"target": "tpu"})"),
      "s.json: target: expected \"h200\" or \"l40s\"; other GPUs need \"device\", got \"tpu\"");
  EXPECT_EQ(
      load_error(R"({"settings": {"models": [{"name": "m", "base_url": "https://me:pw@x/v1"}]}})"),
      "s.json: settings.models[0].base_url: expected an http:// or https:// address without "
      "user name, password or query, got \"https://me:pw@x/v1\"");
  EXPECT_EQ(load_error(R"({"settings": {"rounds": 2, "round_plans": [{"round": 3}]}})"),
            "s.json: settings.round_plans[0].round: expected an integer from 1 to 2, got 3");
  EXPECT_EQ(load_error(R"({"settings": {"round_plans": [{"round": 1}, {"round": 1}]}})"),
            "s.json: settings.round_plans[1]: a second plan for this round");
  EXPECT_EQ(
      load_error(R"({"library": [{"name": "a"}]})"),
      "s.json: library[0]: expected either \"folder\", a candidate's, or \"source\", a .cu file");
}

class NewHeader : public ::testing::Test {
 protected:
  NewHeader() {
    const auto example = testing::candidate_from_text(testing::kernel_reply("seed"),
                                                      {"softmax", "f", "seed", "i", "sm_90a"});
    std::filesystem::create_directories(root / "kernels/seed");
    write_text(root / "kernels/seed/kernel.json", candidate_json(*example));
    write_text(root / "kernels/seed/kernel.cu", example->program.source);
    write_text(root / "kernels/gemm.cu", "// a product\n");
    file.problem = "softmax";
    file.settings.models = {{"chat", "", ""}};
    file.seeds = {"kernels/seed"};
    file.library = {{"gemm", "a note", "", "kernels/gemm.cu"}, {"seed", "", "kernels/seed", ""}};
  }
  std::string error_of(const std::string& name = "new") {
    const auto header = new_header(name, file, root.path(), {});
    return header ? "good" : header.error().message;
  }

  TemporaryFolder root;
  SearchFile file;
};

TEST_F(NewHeader, ReadsTheKernelsThatTheFileNames) {
  const auto header = new_header("new", file, root.path(), {{"NVRTC", "13.0"}});
  ASSERT_TRUE(header) << header.error().message;
  ASSERT_EQ(header->seeds.size(), 1u);
  EXPECT_NE(header->seeds[0].source.find("// seed"), std::string::npos);
  ASSERT_EQ(header->library.size(), 2u);
  EXPECT_EQ(header->library[0].source, "// a product\n");
  EXPECT_FALSE(header->library[1].plan.empty());
  const auto again = header_from_json(to_json(*header), "again");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(to_json(*again), to_json(*header));
}

TEST_F(NewHeader, RefusesWhatTheSearchCannotUse) {
  EXPECT_EQ(error_of(), "good");
  EXPECT_EQ(error_of("Big Name"), "search Big Name: name: expected 1 to 64 of a-z, 0-9, _ and -");
  file.settings.round_plans = {{2, {}, std::vector<std::string>{"r2.i1.b1"}, {}}};
  EXPECT_EQ(error_of(),
            "search new: the plan of round 2: parent \"r2.i1.b1\" is no candidate of an "
            "earlier round (\"r4.i2.b1\") and no seed (\"seed.1\")");
  file.settings.round_plans = {{2, {}, std::vector<std::string>{"r1.i1.b1", "seed.1"}, {"gemm"}}};
  EXPECT_EQ(error_of(), "good");
  file.settings.round_plans = {{1, {}, {}, {"convolution"}}};
  EXPECT_EQ(error_of(),
            "search new: the plan of round 1: bank kernel \"convolution\" is not in the library");
  file.settings.round_plans.clear();
  file.problem = "conv2d";
  EXPECT_EQ(error_of(), "search new: the seed kernels/seed is for softmax");
  file.problem = "poetry";
  EXPECT_EQ(error_of().substr(0, 45), "search new: unknown problem 'poetry': `rekern");
}

TEST_F(NewHeader, IsComparedWithARecordedOne) {
  const auto header = new_header("new", file, root.path(), {{"NVRTC", "13.0"}});
  auto other = new_header("new", file, root.path(), {{"NVRTC", "12.9"}});
  ASSERT_TRUE(header && other);
  EXPECT_FALSE(first_difference(*header, *other));
  other->settings.branches = 7;
  EXPECT_EQ(first_difference(*header, *other), "settings.branches");
  other = header;
  other->notes = "x";
  EXPECT_EQ(first_difference(*header, *other), "notes");
}

}  // namespace
}  // namespace rekernel
