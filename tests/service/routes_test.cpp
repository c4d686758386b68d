#include "harness/service/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

namespace rekernel::service {
namespace {

TEST(Routes, AreThoseOfTheDocument) {
  const boost::json::value document = boost::json::parse(Routes::openapi());
  EXPECT_TRUE(document.at("openapi").as_string().starts_with("3.1"));
  std::set<std::string> described, ids;
  for (const auto& [path, operations] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : operations.as_object()) {
      std::string upper(method);
      std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
      described.insert(upper + " " + std::string(path));
      EXPECT_TRUE(ids.insert(std::string(operation.at("operationId").as_string())).second);
      EXPECT_FALSE(operation.at("responses").as_object().empty());
    }
  }
  const std::vector<std::string> served = Routes::operations();
  EXPECT_EQ(described, (std::set<std::string>(served.begin(), served.end())));
}

/// Every "$ref" leads somewhere.
void check_references(const boost::json::value& value, const boost::json::value& document) {
  if (const auto* object = value.if_object()) {
    if (const auto* reference = object->if_contains("$ref")) {
      const std::string pointer = std::string(reference->as_string()).substr(1);
      boost::system::error_code missing;
      EXPECT_NE(document.find_pointer(pointer, missing), nullptr) << pointer;
    }
    for (const auto& [key, member] : *object) check_references(member, document);
  }
  if (const auto* array = value.if_array()) {
    for (const auto& element : *array) check_references(element, document);
  }
}

TEST(Routes, TheDocumentsReferencesLeadSomewhere) {
  const boost::json::value document = boost::json::parse(Routes::openapi());
  check_references(document, document);
}

}  // namespace
}  // namespace rekernel::service
