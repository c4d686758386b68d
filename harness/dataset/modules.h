#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/json.h"
#include "ops/program.h"
#include "ops/result.h"

namespace rekernel {

/// "cuda", "ptx", "cubin".
const char* language_name(Language language);

/// A module as a row tells it: its file, its language, and its bytes as "text" or, where they are
/// no text, as "base64".
boost::json::object module_column(const std::string& file, Language language,
                                  std::string_view bytes);

/// All modules of a program that is more than one source in CUDA C++; none for one that is just
/// that.
boost::json::array module_columns(const Program& program);
/// The way back. Errors land in the reader.
std::vector<Code> modules_from_columns(JsonReader reader);

}  // namespace rekernel
