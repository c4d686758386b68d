// The examples of replay/SEARCHING.md are what the program takes.

#include <gtest/gtest.h>

#include "replay/model/endpoint.h"
#include "replay/search/search_file.h"
#include "replay/trajectory/continuation.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

class SearchingPage : public ::testing::Test {
 protected:
  /// Writes the example of this name to a file.
  std::filesystem::path example(const std::string& name) const {
    const std::string page = testing::read_text(project / "replay/SEARCHING.md");
    const std::string beginning = "<!-- example: " + name + " -->\n```json\n";
    const std::size_t at = page.find(beginning);
    if (at == std::string::npos) throw std::runtime_error("no example " + name);
    const std::size_t begin = at + beginning.size();
    testing::write_text(folder / "example.json",
                        page.substr(begin, page.find("\n```", begin) - begin));
    return folder / "example.json";
  }

  TemporaryFolder folder;
  const std::filesystem::path project = REKERNEL_SOURCE_DIR;
};

TEST_F(SearchingPage, HasASettingsFileThatMakesASearch) {
  const auto file = load_search_file(example("settings"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  const auto header = new_header("mine", *file, project, {});
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ(header->settings.round_plans.size(), 2u);
  EXPECT_EQ(header->seeds.size(), 1u);
}

TEST_F(SearchingPage, HasAContinuationOfThatSearch) {
  const auto file = load_search_file(example("settings"));
  ASSERT_TRUE(file.ok());
  const auto more = load_continuation(example("continue"), file->settings);
  ASSERT_TRUE(more.ok()) << more.error().message;
  EXPECT_TRUE(continued(file->settings, *more, "here").ok());
}

TEST_F(SearchingPage, HasEndpointsOfThatSearch) {
  const auto endpoints = load_endpoint_file(example("endpoints"));
  ASSERT_TRUE(endpoints.ok()) << endpoints.error().message;
  const auto file = load_search_file(example("settings"));
  ASSERT_TRUE(file.ok());
  for (const ModelSettings& model : file->settings.models) {
    EXPECT_TRUE(endpoints->contains(model.name)) << model.name;
  }
}

}  // namespace
}  // namespace rekernel
