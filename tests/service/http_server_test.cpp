#include "harness/service/http_server.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "harness/service/routes.h"

namespace rekernel::service {
namespace {

TEST(ListenAddress, IsReadInParts) {
  const auto tcp = parse_listen_address("0.0.0.0:80");
  ASSERT_TRUE(tcp);
  EXPECT_EQ(tcp->port, 80);
  EXPECT_FALSE(tcp->is_loopback());
  EXPECT_TRUE(parse_listen_address("[::1]:0")->is_loopback());
  EXPECT_TRUE(parse_listen_address("127.0.0.1:8420")->is_loopback());
  EXPECT_TRUE(parse_listen_address("unix:/tmp/x")->is_loopback());
  for (const char* bad : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "host.name:1",
                          "unix:", "1:99999999999999999999"}) {
    EXPECT_FALSE(parse_listen_address(bad)) << bad;
  }
}

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

TEST(UrlDecoded, KnowsBrokenOnes) {
  EXPECT_EQ(url_decoded("a%20b+c", true), "a b c");
  EXPECT_EQ(url_decoded("a+b", false), "a+b");
  EXPECT_FALSE(url_decoded("%", false));
  EXPECT_FALSE(url_decoded("%2", false));
  EXPECT_FALSE(url_decoded("%zz", false));
}

}  // namespace
}  // namespace rekernel::service
