#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/json.h"
#include "harness/candidate/arch.h"
#include "harness/candidate/plan_expression.h"
#include "ops/problem.h"
#include "ops/program.h"

namespace rekernel {

/// For messages.
std::string json_quoted(std::string_view text);

/// What the words of a plan's launches stand for, and how its integers are read.
class PlanContext {
 public:
  /// `problem`, at the sizes for which the plan is read, must outlive it. Of the candidate's own
  /// macros, integers are names in expressions.
  PlanContext(const Problem& problem, Arch arch, const CompileOptions& compile);

  const Problem& problem() const { return problem_; }
  Arch arch() const { return arch_; }

  /// An integer, or an expression of one, within a range. Where steps are skipped, what is read is
  /// looked at for its grammar alone, and the value is 1.
  std::int64_t integer(JsonReader reader, std::int64_t min, std::int64_t max);
  /// The same from 0 to 2^64 − 1.
  std::uint64_t unsigned_integer(JsonReader reader);
  bool condition(JsonReader reader);

  /// Whether any integer was an expression, or any step had a condition.
  bool is_in_axes() const { return is_in_axes_; }

  /// Steps whose condition does not hold are read like the others, but their values can be any.
  void skip(bool skips) { skips_ = skips; }
  /// Fails for values that do not go together, unless nothing depends on them.
  void refuse(JsonReader& reader, const std::string& problem) const {
    if (!skips_) reader.fail(problem);
  }

  void add(Workspace workspace) { workspaces_.push_back(std::move(workspace)); }
  const std::vector<Workspace>& workspaces() const { return workspaces_; }
  /// Of a tensor or a workspace.
  std::optional<std::int64_t> bytes(const std::string& name) const;
  /// The name of one of them.
  std::string buffer(JsonReader reader) const;
  void require(bool (*has_feature)(Arch), JsonReader& reader) const;

 private:
  std::string known_buffers() const;
  std::optional<std::int64_t> computed(JsonReader& reader);
  const PlanNames* names_for(JsonReader& reader);

  const Problem& problem_;
  Arch arch_;
  std::vector<Workspace> workspaces_;
  PlanNames names_;
  /// Names of macros that are axes too: which of them an expression means, nobody knows.
  std::vector<std::string> ambiguous_;
  bool is_in_axes_ = false;
  bool skips_ = false;
};

}  // namespace rekernel
