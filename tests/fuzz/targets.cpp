#include "targets.h"

#include <algorithm>
#include <array>

namespace rekernel::fuzz {
namespace {

constexpr std::array all_targets = {Target{"bench", fuzz_bench},
                                    Target{"chat_completion", fuzz_chat_completion},
                                    Target{"cubin", fuzz_cubin},
                                    Target{"definition", fuzz_definition},
                                    Target{"evaluation", fuzz_evaluation},
                                    Target{"json", fuzz_json},
                                    Target{"ncu", fuzz_ncu},
                                    Target{"plan", fuzz_plan},
                                    Target{"recording", fuzz_recording},
                                    Target{"reply", fuzz_reply},
                                    Target{"search", fuzz_search},
                                    Target{"search_file", fuzz_search_file},
                                    Target{"source", fuzz_source},
                                    Target{"squeue", fuzz_squeue},
                                    Target{"trajectory", fuzz_trajectory}};

}  // namespace

std::span<const Target> targets() { return all_targets; }

const Target* find_target(std::string_view name) {
  const auto found = std::find_if(all_targets.begin(), all_targets.end(),
                                  [&](const Target& target) { return target.name == name; });
  return found == all_targets.end() ? nullptr : &*found;
}

}  // namespace rekernel::fuzz
