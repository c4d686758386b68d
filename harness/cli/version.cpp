#include <boost/json.hpp>
#include <boost/version.hpp>
#include <iostream>

#include "harness/base/harness_digest.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/capture/capture.h"
#include "harness/cli/commands.h"
#include "harness/compile/compile.h"
#include "harness/gpu/cuda.h"
#include "harness/terminal/exit_status.h"

namespace rekernel {

namespace {

#ifdef __clang__
constexpr const char* compiler_name = "Clang";
#else
constexpr const char* compiler_name = "GCC";
#endif

std::string boost_version() {
  return std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
}

std::string cuda_version() {
  return std::to_string(CUDA_VERSION / 1000) + "." + std::to_string(CUDA_VERSION % 1000 / 10);
}

}  // namespace

int print_version(bool as_json) {
  const Result<Compiler> compiler = Compiler::load();
  const Result<std::filesystem::path> recorder = find_recorder();
  if (as_json) {
    boost::json::object json = {{"version", REKERNEL_VERSION},
                                {"judge", harness_digests().judge},
                                {"compiler", std::string(compiler_name) + " " + __VERSION__},
                                {"cuda_headers", cuda_version()},
                                {"boost", boost_version()},
                                {"nvrtc", nullptr},
                                {"recorder", nullptr}};
    if (compiler) json["nvrtc"] = compiler->version();
    if (recorder) json["recorder"] = recorder->string();
    std::cout << pretty_json(json);
    return exit_good;
  }
  constexpr std::size_t longest = 200;
  std::cout << "rekernel " << REKERNEL_VERSION << "\njudge " << harness_digests().judge
            << "\nNVRTC "
            << (compiler ? compiler->version()
                         : "none: " + one_line(compiler.error().message, longest))
            << "\nbuilt by " << compiler_name << " " << __VERSION__ << " with CUDA "
            << cuda_version() << " and Boost " << boost_version()
            << (recorder ? "" : ", without a recorder for capture") << "\n";
  return exit_good;
}

}  // namespace rekernel
