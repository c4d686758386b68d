#include "harness/service/problem_json.h"

#include <boost/json.hpp>
#include <map>

#include "harness/problems/catalog.h"
#include "harness/report/tensor_json.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

json::array tensors_json(const Problem& problem) {
  json::array tensors;
  for (const Tensor& tensor : problem.tensors) tensors.push_back(tensor_json(tensor));
  return tensors;
}

std::string made_json(const Problem& problem) {
  const json::object body{
      {"id", problem.id},
      {"title", problem.title},
      {"group", problem.group},
      {"definition", json::value_from(problem.formula)},
      {"pytorch", problem.pytorch},
      {"tensors", tensors_json(problem)},
      {"tolerance",
       {{"absolute", problem.tolerance.absolute}, {"relative", problem.tolerance.relative}}},
      {"problem_h", problem_header(problem)}};
  return json::serialize(body);
}

}  // namespace

std::string problems_json() {
  static const std::string text = [] {
    json::array problems;
    for (const Problem& problem : catalog()) {
      problems.push_back(
          json::object{{"id", problem.id}, {"title", problem.title}, {"group", problem.group}});
    }
    return json::serialize(json::object{{"problems", std::move(problems)}});
  }();
  return text;
}

Result<std::string> problem_json(const std::string& id) {
  static std::map<std::string, std::string> made;
  if (const auto found = made.find(id); found != made.end()) return found->second;
  const Problem* problem = find_problem(id);
  if (!problem) return unknown_problem(id);
  return made[id] = made_json(*problem);
}

}  // namespace rekernel::service
