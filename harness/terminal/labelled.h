#pragma once

#include <string>

namespace rekernel {

/// "  name        text", in lines of a page; empty for an empty text.
std::string labelled(const std::string& name, const std::string& text);

}  // namespace rekernel
