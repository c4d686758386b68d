#include "replay/trajectory/templates.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "replay/search/fixed_texts.h"
#include "tests/replay/fakes.h"

namespace rekernel {
namespace {

/// The number in check_templates' message on a limit that is too low.
std::int64_t shortest_prompt_tokens(const std::string& message) {
  std::int64_t tokens = 0;
  const char* format = "h: settings: prompt_tokens: the shortest prompt has up to %" SCNd64;
  EXPECT_EQ(std::sscanf(message.c_str(), format, &tokens), 1) << message;
  return tokens;
}

TEST(Templates, AreCheckedForTheirPlaceholders) {
  Header header = testing::small_header();
  const auto message = [&] {
    const auto checked =
        check_templates(header.templates, header.texts, header.settings.prompt_tokens, "h");
    return checked ? std::string("good") : checked.error().message;
  };
  EXPECT_EQ(message(), "good");
  header.templates.ideas += "{{weather}}";
  EXPECT_EQ(message(), "h: templates: ideas: unknown placeholder {{weather}}");
  header.templates = {default_templates().ideas + "{{history}}", default_templates().kernel};
  EXPECT_EQ(message(), "h: templates: ideas: expected the placeholder {{history}} exactly once");
  header.templates = {default_templates().ideas, "Write {{idea}}"};
  EXPECT_EQ(message(), "h: templates: kernel: expected the placeholder {{problem}} exactly once");
  header.templates = default_templates();
  header.settings.prompt_tokens = 500;
  // One that would nearly do is told by its own number.
  header.settings.prompt_tokens = shortest_prompt_tokens(message());
  EXPECT_EQ(message(), "good");
  const std::string needed = std::to_string(header.settings.prompt_tokens--);
  EXPECT_EQ(message(), "h: settings: prompt_tokens: the shortest prompt has up to " + needed +
                           " tokens, the limit is " +
                           std::to_string(header.settings.prompt_tokens));
}

}  // namespace
}  // namespace rekernel
