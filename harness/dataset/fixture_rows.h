#pragma once

#include <filesystem>
#include <string>

#include "harness/dataset/rows.h"
#include "ops/result.h"

namespace rekernel {

/// Puts the rows of the gallery of cheats (tests/adversarial). A cheat whose plan cannot be read,
/// since it breaks the rules there, belongs to the problem that its text names, if it names one.
Result<Ok> put_cheat_rows(const std::filesystem::path& root, const std::string& license,
                          RowStream& rows);

/// Puts the rows of mutants and honest kernels (tests/mutants, tests/honest), with what became of
/// each on the devices where it was judged in its present form.
Result<Ok> put_mutant_rows(const std::filesystem::path& root, const std::string& license,
                           RowStream& rows);

/// Puts the rows of recorded profiles (results/*/replay/*.ncu.json).
Result<Ok> put_profile_rows(const std::filesystem::path& root, const std::string& license,
                            RowStream& rows);

}  // namespace rekernel
