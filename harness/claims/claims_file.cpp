#include "harness/claims/claims_file.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <set>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/utf8.h"
#include "harness/claims/claim_json.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t longest_source = 64u << 20;

/// Names become names of files and folders.
bool is_name(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), plain);
}

/// Below its folder, whatever that is.
bool stays_below(const fs::path& path) {
  return !path.empty() && path.is_relative() &&
         std::none_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

Result<Ok> check_figure(const ClaimedFigure& figure) {
  if (!(figure.value > 0) || !std::isfinite(figure.value)) {
    return Error{"claimed: value: expected a number above 0"};
  }
  if (figure.unit != "x" && figure.unit != "ms") {
    return Error{"claimed: unit: expected \"x\" or \"ms\", got \"" + one_line(figure.unit, 64) +
                 "\""};
  }
  if ((figure.unit == "x") == figure.over.empty()) {
    return Error{"claimed: over: expected what it is faster than with unit \"x\" alone"};
  }
  return Ok{};
}

Result<Ok> check_claim(const Claim& claim) {
  if (!is_name(claim.name)) return Error{"name: expected 1 to 64 of a-z, 0-9 and _"};
  if (!stays_below(claim.source.file)) {
    return Error{"source.file: expected a path below the folder of sources"};
  }
  if ((claim.source.line == 0) != claim.source.key.empty()) {
    return Error{"source: expected both line and key, or neither"};
  }
  const bool hexadecimal =
      claim.source.sha256.size() == 64 &&
      claim.source.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!hexadecimal) return Error{"source.sha256: expected 64 digits of 0-9 and a-f"};
  const bool is_file = claim.problem.ends_with(".json") || claim.problem.ends_with(".py");
  if (is_file && !stays_below(claim.problem)) {
    return Error{
        "problem: expected an id, a file (.json) beside the file of claims, or a program (.py) "
        "below the folder of sources"};
  }
  if (!claim.wrapper.empty() && !(stays_below(claim.wrapper) && claim.wrapper.ends_with(".py"))) {
    return Error{"wrapper: expected a Python file (.py) beside the file of claims"};
  }
  for (const ClaimedFigure& figure : claim.claimed) {
    if (Result<Ok> sound = check_figure(figure); !sound) return sound;
  }
  return Ok{};
}

Result<std::string> key_of_line(const std::string& text, const ClaimSource& source) {
  std::size_t begin = 0;
  for (int line = 1; line < source.line && begin != std::string::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos || begin >= text.size()) {
    return Error{"has no line " + std::to_string(source.line)};
  }
  const std::string_view line =
      std::string_view(text).substr(begin, text.find('\n', begin) - begin);
  const Result<json::value> value = parse_json(line, "line " + std::to_string(source.line));
  if (!value) return value.error();
  const json::object* object = value->if_object();
  const json::value* found = object ? object->if_contains(source.key) : nullptr;
  if (!found || !found->is_string()) {
    return Error{"line " + std::to_string(source.line) + " has no text \"" + source.key + "\""};
  }
  return std::string(found->get_string());
}

}  // namespace

Result<ClaimsFile> parse_claims(const std::string& text, const std::string& where) {
  const Result<json::value> value = parse_json(text, where);
  if (!value) return value.error();
  JsonReader reader(where, *value);
  ClaimsFile file = json_fields::read_object<ClaimsFile>(reader, claim_json::file);
  if (auto error = reader.error()) return *error;
  if (!is_name(file.name)) return Error{where + ": name: expected 1 to 64 of a-z, 0-9 and _"};
  std::set<std::string> names;
  for (std::size_t i = 0; i < file.claims.size(); ++i) {
    Claim& claim = file.claims[i];
    const std::string place = where + ": claims[" + std::to_string(i) + "].";
    if (Result<Ok> sound = check_claim(claim); !sound) return Error{place + sound.error().message};
    if (!names.insert(claim.name).second) {
      return Error{place + "name: there is another claim \"" + claim.name + "\""};
    }
    if (claim.compile.empty() && !claim.source.file.ends_with(".py") && claim.source.key.empty()) {
      claim.compile = file.compile;
    }
  }
  return file;
}

Result<ClaimsFile> read_claims(const fs::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  Result<ClaimsFile> file = parse_claims(*text, path.string());
  if (file) file->folder = fs::absolute(path).parent_path();
  return file;
}

std::string claim_text(const Claim& claim) {
  return json::serialize(json_fields::object_of(claim, claim_json::claim));
}

Result<std::string> source_of(const Claim& claim, const fs::path& sources) {
  const fs::path path = sources / claim.source.file;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) {
    return Error{claim.source.file + ": there is no such file in " + sources.string()};
  }
  Result<std::string> text = read_file(path, longest_source);
  if (!text) return text;
  if (claim.source.line != 0) {
    text = key_of_line(*text, claim.source);
    if (!text) return Error{claim.source.file + ": " + text.error().message};
  }
  const std::string found = sha256_hex(*text);
  if (found == claim.source.sha256) return text;
  return Error{claim.source.file + ": is not what the claim is about: its SHA-256 is " + found};
}

}  // namespace rekernel
