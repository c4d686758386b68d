# Parsing the same headers again and again was a good part of the build. They are parsed once, for all
# targets that link Boost.JSON (a precompiled header serves only where the same macros are defined).
# The preset debug, with each source by itself, and clang-tidy, which sees large units without it, find most of
# the #includes that are missing.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cpp CONTENT "")
add_library(rekernel_precompiled OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
target_link_libraries(rekernel_precompiled PRIVATE Boost::json)
target_precompile_headers(rekernel_precompiled PRIVATE
  <algorithm> <boost/json.hpp> <chrono> <filesystem> <functional> <iostream> <map> <memory>
  <optional> <string> <variant> <vector>)
