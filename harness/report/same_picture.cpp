#include "harness/report/same_picture.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace rekernel {

namespace {

/// In the units of a picture that is 820 wide: as much as other letters move what stands beside
/// them.
constexpr double max_distance = 16.0;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

/// Reads a number at `at` and moves past it.
double number_at(std::string_view text, std::size_t& at) {
  double value = 0.0;
  double place = 1.0;
  bool behind_point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !behind_point)); ++at) {
    if (text[at] == '.') {
      behind_point = true;
    } else {
      value = 10.0 * value + (text[at] - '0');
      if (behind_point) place *= 10.0;
    }
  }
  return value / place;
}

/// A number with its sign, which may be absent in one of two.
double signed_number_at(std::string_view text, std::size_t& at) {
  const bool negative = at < text.size() && text[at] == '-';
  if (negative) ++at;
  const double value = number_at(text, at);
  return negative ? -value : value;
}

bool begins_number(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  return is_digit(text[at]) || (text[at] == '-' && at + 1 < text.size() && is_digit(text[at + 1]));
}

/// Where a coordinate may stand: in the value of one of these attributes.
bool is_of_places(std::string_view attribute) {
  constexpr std::string_view places[] = {"transform", "d",  "x",     "y",      "x1",     "x2",
                                         "y1",        "y2", "width", "height", "viewBox"};
  return std::find(std::begin(places), std::end(places), attribute) != std::end(places);
}

/// Follows a text through SVG: outside of tags, in one, in the value of an attribute.
class Position {
 public:
  bool in_place() const { return in_value_ && is_of_places(attribute_); }
  void pass(char character) {
    if (in_value_) {
      in_value_ = character != '"';
    } else if (character == '<') {
      in_tag_ = true;
      attribute_.clear();
    } else if (character == '>') {
      in_tag_ = false;
    } else if (in_tag_ && character == '"') {
      in_value_ = true;
    } else if (in_tag_ && character == ' ') {
      attribute_.clear();
    } else if (in_tag_ && character != '=') {
      attribute_ += character;
    }
  }

 private:
  bool in_tag_ = false;
  bool in_value_ = false;
  std::string attribute_;
};

}  // namespace

std::set<std::string> pictures_of(const std::string& readme) {
  constexpr std::string_view folder = "(results/pictures/";
  std::set<std::string> names;
  for (std::size_t at = 0; (at = readme.find(folder, at)) != std::string::npos;) {
    at += folder.size();
    const std::size_t end = readme.find(')', at);
    if (end != std::string::npos) names.insert(readme.substr(at, end - at));
  }
  return names;
}

bool is_same_picture(std::string_view picture, std::string_view made) {
  Position position;
  std::size_t a = 0;
  std::size_t b = 0;
  while (a < picture.size() && b < made.size()) {
    if (position.in_place() && begins_number(picture, a) && begins_number(made, b)) {
      const double apart = signed_number_at(picture, a) - signed_number_at(made, b);
      if (!(std::abs(apart) <= max_distance)) return false;
      continue;
    }
    if (picture[a] != made[b]) return false;
    position.pass(picture[a]);
    ++a;
    ++b;
  }
  return a == picture.size() && b == made.size();
}

}  // namespace rekernel
