#include "harness/service/own_problem.h"

#include <boost/json.hpp>
#include <mutex>
#include <set>

#include "harness/base/fields.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/problems/catalog.h"

namespace rekernel::service {

namespace json = boost::json;

namespace {

constexpr std::size_t hash_digits = 10;
constexpr std::size_t longest_id = 64;

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
  const json::value* name = definition.if_contains("id");
  if (!name || !name->is_string() || !is_identifier(name->get_string())) {
    return Error{"problem: id: expected an identifier (letters, digits and _, at most 64)"};
  }
  if (definition.contains("program")) {
    return Error{
        "problem: program: a service runs no programs of its clients: expected a definition"};
  }
  const std::string hash = sha256_hex(json::serialize(definition)).substr(0, hash_digits);
  const std::string given(name->get_string());
  const std::string id = given.substr(0, longest_id - hash_digits - 1) + "_" + hash;
  json::object renamed = definition;
  renamed["id"] = id;
  if (auto added = known_definitions().add(id, json::serialize(renamed)); !added) {
    return added.error();
  }
  return id;
}

}  // namespace rekernel::service
