#include "harness/base/placeholders.h"

#include <gtest/gtest.h>

#include <string>

namespace rekernel {
namespace {

std::string walked(std::string_view source) {
  std::string result;
  walk_template(
      source, [&](std::string_view text) { result += "[" + std::string(text) + "]"; },
      [&](std::string_view name) { result += "<" + std::string(name) + ">"; });
  return result;
}

TEST(WalkTemplate, TellsTextFromPlaceholders) {
  EXPECT_EQ(walked("a {{b}} c{{d}}"), "[a ]<b>[ c]<d>[]");
  EXPECT_EQ(walked("plain"), "[plain]");
  EXPECT_EQ(walked(""), "[]");
  EXPECT_EQ(walked("{{}}"), "[]<>[]");
  EXPECT_EQ(walked("{{a}}};"), "[]<a>[};]");
}

TEST(WalkTemplate, WhatIsOpenedAndNotClosedIsText) {
  EXPECT_EQ(walked("a {{b"), "[a {{b]");
  EXPECT_EQ(walked("{{a}} {{b}"), "[]<a>[ {{b}]");
}

}  // namespace
}  // namespace rekernel
