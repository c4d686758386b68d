#pragma once

#include <boost/json/fwd.hpp>
#include <string>
#include <vector>

#include "harness/candidate/arch.h"
#include "harness/plan/plan_table.h"

namespace rekernel {

// What is made of the table of kernel.json, for each of its readers.

/// "integer from 1 to 32", "list of 1 to 3 integers from 1 to 1024".
std::string value_text(const PlanValue& value);

/// generated/PLAN.md: the page for people.
std::string plan_page();

/// generated/kernel.schema.json, JSON Schema 2020-12: for editors. It cannot say what depends on
/// the problem (the names of its tensors, the sizes of buffers) or on products (threads of a
/// block).
boost::json::object plan_schema();

/// The keys that a model's reply holds, a line each, for a device that runs these architectures,
/// the oldest first. `arch_words` is what `arch` can be.
std::string plan_lines(const std::vector<Arch>& archs, const std::string& arch_words);

}  // namespace rekernel
