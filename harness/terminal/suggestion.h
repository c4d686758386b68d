#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rekernel {

/// The names that somebody may have meant by an unknown one, the nearest first, at most two: those
/// that few changed, missing, added or swapped characters lead to (`nearest`), and then those that
/// begin with it, if it has three characters.
std::vector<std::string> suggestions(std::string_view unknown, std::vector<std::string> names);

/// " (did you mean 'softmax'?)", to follow the unknown name in a message; empty where no name is
/// near.
std::string did_you_mean(std::string_view unknown, std::vector<std::string> names);
/// The same with names that were chosen otherwise.
std::string did_you_mean(const std::vector<std::string>& suggested);

}  // namespace rekernel
