#include "harness/base/harness_digest.h"

#include <algorithm>
#include <set>

#include "harness/base/files.h"

namespace rekernel {

namespace {

constexpr std::size_t digits = 16;

std::string digest_in(const std::map<std::string, std::string>& digests, const std::string& id) {
  const auto found = digests.find(id);
  return found == digests.end() ? std::string(digits, '0') : found->second;
}

}  // namespace

const HarnessDigests& harness_digests() {
  static const HarnessDigests digests = {
#include "harness_digest.inc"
  };
  return digests;
}

std::string harness_digest(const std::string& of_problem,
                           const std::vector<std::string>& references) {
  const HarnessDigests& own = harness_digests();
  std::string of_references;
  for (const std::string& id : std::set<std::string>(references.begin(), references.end())) {
    of_references += id + " " + digest_in(own.references, id) + "\n";
  }
  return own.judge + "-" + of_problem + "-" + sha256_hex(of_references).substr(0, digits);
}

std::vector<std::string> differing_sources(const HarnessDigests& one, const HarnessDigests& other) {
  std::vector<std::string> names;
  if (one.judge != other.judge) names.emplace_back("the judge");
  std::map<std::string, std::string> all = one.references;
  all.insert(other.references.begin(), other.references.end());
  for (const auto& [id, digest] : all) {
    if (digest_in(one.references, id) != digest_in(other.references, id)) {
      names.push_back("reference " + id);
    }
  }
  return names;
}

bool is_row_digest(std::string_view text) {
  constexpr std::size_t parts = 3;
  if (text.size() != parts * digits + parts - 1) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_hyphen = i % (digits + 1) == digits;
    const bool is_digit = std::string_view("0123456789abcdef").find(text[i]) != text.npos;
    if (is_hyphen ? text[i] != '-' : !is_digit) return false;
  }
  return true;
}

}  // namespace rekernel
