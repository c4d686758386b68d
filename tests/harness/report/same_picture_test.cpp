#include "harness/report/same_picture.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace rekernel {
namespace {

const std::string picture = R"svg(<svg width="820"><g transform="translate(26,-96.5)">)svg"
                            R"svg(<path d="M0,0h764v12Z" fill="#123456"/>)svg"
                            R"svg(<text x="3">1127.0% of 5</text></g></svg>)svg";

std::string with(const std::string& from, const std::string& to) {
  std::string changed = picture;
  return changed.replace(changed.find(from), from.size(), to);
}

TEST(Pictures, WordsMayStandALittleElsewhere) {
  EXPECT_TRUE(is_same_picture(picture, picture));
  EXPECT_TRUE(is_same_picture(with("26,-96.5", "27.25,-100"), picture));
  EXPECT_TRUE(is_same_picture(with("h764", "h760.1"), picture));
}

TEST(Pictures, FiguresWordsColoursAndTagsAreTheSame) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"1127.0%", "1128.0%"},
                                                        {"h764", "h700"},
                                                        {"26,", "-26,"},
                                                        {"123456", "123457"},
                                                        {"of 5", "of 6"},
                                                        {"</svg>", "<script>1</script></svg>"},
                                                        {"x=\"3\"", "x=\"3\" onload=\"1\""},
                                                        {"</svg>", ""}}) {
    EXPECT_FALSE(is_same_picture(with(from, to), picture)) << from << " → " << to;
    EXPECT_FALSE(is_same_picture(picture, with(from, to))) << from << " → " << to;
  }
}

TEST(Pictures, AreThoseThatReadmeShows) {
  EXPECT_EQ(pictures_of("![a](results/pictures/a.svg) and (results/pictures/b.svg)."),
            (std::set<std::string>{"a.svg", "b.svg"}));
}

}  // namespace
}  // namespace rekernel
