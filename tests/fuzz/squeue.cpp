#include "harness/jobs/slurm.h"
#include "property.h"
#include "targets.h"

namespace rekernel::fuzz {

void fuzz_squeue(std::string_view bytes) {
  const Result<std::vector<SlurmTask>> tasks = parse_squeue(std::string(bytes));
  if (!tasks) {
    require_error(tasks.error(), "squeue");
    return;
  }
  for (const SlurmTask& task : *tasks) {
    require(!task.job.empty() && !task.name.empty(), "a task can be told from others");
    require_one_line(what_ended(task, {}, "/folder", "/program"));
    (void)is_over(task);
  }
  (void)refusal_of(std::string(bytes));
}

}  // namespace rekernel::fuzz
