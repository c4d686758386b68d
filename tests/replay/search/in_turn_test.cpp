#include "replay/search/in_turn.h"

#include <gtest/gtest.h>

#include <string>

namespace rekernel {
namespace {

struct Heard {
  std::string text;
  bool going = true;
  InTurn<char> turn{4,
                    [this](std::size_t index, const char& item) {
                      text += std::to_string(index) + item;
                      if (item == '!') going = false;
                    },
                    [this] { return going; }};
};

TEST(InTurn, HandsOnInOrderAndAtOnce) {
  Heard heard;
  heard.turn.arrive(2, 'c');
  EXPECT_EQ(heard.text, "");
  EXPECT_TRUE(heard.turn.is_next(0));
  heard.turn.arrive(0, 'a');
  EXPECT_EQ(heard.text, "0a");
  EXPECT_TRUE(heard.turn.is_next(1));
  heard.turn.arrive(1, 'b');
  EXPECT_EQ(heard.text, "0a1b2c");
  heard.turn.arrive(3, 'd');
  EXPECT_EQ(heard.text, "0a1b2c3d");
}

TEST(InTurn, PassesTheNextOneWhereItLies) {
  Heard heard;
  heard.turn.arrive(1, 'b');
  heard.turn.pass_next('a');
  EXPECT_EQ(heard.text, "0a1b");
}

TEST(InTurn, StopsWhereNothingMoreIsWanted) {
  Heard heard;
  heard.turn.arrive(1, 'b');
  heard.turn.arrive(0, '!');
  EXPECT_EQ(heard.text, "0!");
}

}  // namespace
}  // namespace rekernel
