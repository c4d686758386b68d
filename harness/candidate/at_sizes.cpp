// Candidates in axes at sizes that are not their problem's own.

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "harness/candidate/candidate.h"
#include "harness/candidate/known_problem.h"
#include "harness/candidate/plan_reader.h"
#include "harness/problems/sizes.h"

namespace rekernel {

Result<Candidate> at_sizes(const Candidate& candidate, const Problem& instance) {
  const std::string name = candidate.problem + "/" + candidate.name;
  if (!candidate.is_in_axes()) {
    return Error{name + ": its plan has no expressions of axes: it is for its problem's own sizes"};
  }
  const Sizes sizes = sizes_of(instance);
  const std::string where = name + "/kernel.json at " + sizes_text(sizes);
  const Result<boost::json::value> written = parse_json(candidate.written, where);
  if (!written) return written.error();
  Candidate sized = candidate;
  sized.sizes = sizes;
  if (auto read = read_plan_for(instance, where, *written, sized); !read) return read.error();
  return sized;
}

Result<Candidate> parse_candidate_at(const Sizes& sizes, std::string_view plan_json,
                                     std::vector<Code> modules, const std::string& where) {
  Result<Candidate> candidate = parse_candidate(plan_json, std::move(modules), where);
  if (!candidate || sizes.empty()) return candidate;
  candidate->sizes = sizes;
  const auto instance = problem_of(*candidate);
  if (!instance) return instance.error();
  return at_sizes(*candidate, **instance);
}

Result<std::shared_ptr<const Problem>> problem_of(const Candidate& candidate) {
  const Result<const Problem*> known = known_problem(candidate.problem);
  if (!known) return known.error();
  // The catalogue's stay.
  if (candidate.sizes.empty()) return std::shared_ptr<const Problem>(*known, [](const Problem*) {});
  Result<Problem> instance = problem_at(**known, candidate.sizes);
  if (!instance) return instance.error();
  return std::make_shared<const Problem>(*std::move(instance));
}

}  // namespace rekernel
