#include "harness/service/own_problem.h"

#include <boost/json.hpp>
#include <mutex>
#include <set>

#include "harness/base/fields.h"
#include "harness/problems/catalog.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

/// Which definitions this process knows, by the ids that own_problem() gives.
class KnownDefinitions {
 public:
  Result<Ok> add(const std::string& id, const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (ids_.contains(id)) return Ok{};
    if (ids_.size() >= most_definitions) {
      return Error{"problem: this service has " + std::to_string(most_definitions) +
                   " definitions of its clients already: expected one of these, or an id of "
                   "/v1/problems"};
    }
    const std::string group(strangers_group);
    if (auto adopted = adopt_problem(joined_fields({id, group, text}), "problem"); !adopted) {
      return adopted;
    }
    ids_.insert(id);
    return Ok{};
  }

 private:
  std::mutex mutex_;
  std::set<std::string> ids_;
};

KnownDefinitions& known_definitions() {
  static KnownDefinitions one;
  return one;
}

}  // namespace

Result<std::string> own_problem(const json::object& definition) {
  const Result<NamedByContent> named = named_by_content(definition);
  if (!named) return Error{"problem: " + named.error().message};
  if (definition.contains("program")) {
    return Error{
        "problem: program: a service runs no programs of its clients: expected a definition"};
  }
  if (auto added = known_definitions().add(named->id, named->text); !added) return added.error();
  return named->id;
}

}  // namespace rekernel::service
