#pragma once

#include "harness/base/json_fields.h"
#include "harness/claims/claims_file.h"

/// How claims stand in JSON, in the file of claims and in its record.
namespace rekernel::claim_json {

// The words of field lists, in a namespace that has nothing else.
// NOLINTNEXTLINE(google-build-using-namespace)
using namespace json_fields;

inline constexpr std::size_t most_claims = 4096;
inline constexpr Text words{4096};
inline constexpr Text name{200};
inline constexpr List command{words, 0, 256};

inline constexpr std::tuple figure{field("quantity", &ClaimedFigure::quantity, name),
                                   field("value", &ClaimedFigure::value, real),
                                   field("unit", &ClaimedFigure::unit, name),
                                   field("over", &ClaimedFigure::over, name, unless_empty)};

inline constexpr std::tuple source{
    field("file", &ClaimSource::file, words),
    field("line", &ClaimSource::line, Whole{1, 1 << 20}, unless_empty),
    field("key", &ClaimSource::key, name, unless_empty),
    field("sha256", &ClaimSource::sha256, name)};

inline constexpr std::tuple claim{
    field("name", &Claim::name, name),
    field("problem", &Claim::problem, name),
    field("axes", &Claim::axes, Entries{Whole{1, std::int64_t{1} << 40}}, unless_empty),
    field("source", &Claim::source, Nested{source}),
    field("wrapper", &Claim::wrapper, words, unless_empty),
    field("compile", &Claim::compile, command, unless_empty),
    field("arguments", &Claim::arguments, command, unless_empty),
    field("function", &Claim::function, name, unless_empty),
    field("claimed", &Claim::claimed, List{Nested{figure}, 0, 64})};

/// What a list and its record begin with.
inline constexpr std::tuple head{schema(1),
                                 field("name", &ClaimsFile::name, name),
                                 field("title", &ClaimsFile::title, words),
                                 field("repository", &ClaimsFile::repository, words),
                                 field("revision", &ClaimsFile::revision, name),
                                 field("licence", &ClaimsFile::licence, words),
                                 field("device", &ClaimsFile::device, name),
                                 field("method", &ClaimsFile::method, words)};

inline constexpr std::tuple file = std::tuple_cat(
    head, std::tuple{field("compile", &ClaimsFile::compile, command, unless_empty),
                     field("rehearse", &ClaimsFile::rehearse, flag, unless_empty),
                     field("claims", &ClaimsFile::claims, List{Nested{claim}, 1, most_claims})});

}  // namespace rekernel::claim_json
