#include "harness/capture/recording.h"

#include "harness/capture/plan_maker.h"
#include "harness/problems/catalog.h"
#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_recording(std::string_view bytes) {
  const Result<Recording> recording = read_recording(bytes, "7.log");
  if (!recording) return require_one_line(recording.error().message);
  const ModuleBytes none = [](const std::string&) {
    return Result<std::string>(Error{"no such module"});
  };
  const Result<Candidate> candidate =
      make_plan(*recording, none, *find_problem("softmax"), "sm_90a", "captured", "program.py");
  // Copies and memsets alone are no plan, and no kernel is in a module that is not there.
  require(!candidate.ok(), "a plan has a kernel");
  require_one_line(candidate.error().message);
}

}  // namespace rekernel::fuzz
