#pragma once

#include <set>
#include <string>
#include <string_view>

namespace rekernel {

/// The pictures of results/pictures/ that README.md shows, by their names there.
std::set<std::string> pictures_of(const std::string& readme);

/// Whether a picture shows what another one does. Fonts differ between machines, and with them the
/// places of words: numbers in attributes may differ a little. Everything else is the same byte by
/// byte, what stands in words too.
bool is_same_picture(std::string_view picture, std::string_view made);

}  // namespace rekernel
