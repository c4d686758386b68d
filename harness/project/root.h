#pragma once

#include <filesystem>

#include "ops/result.h"

namespace rekernel {

/// The project that is read: the one that the working directory is in, the nearest folder at or
/// above it that holds `generated/` and `results/`; else the folder that the program was built
/// from, which is then said once on standard error.
std::filesystem::path project_root();
/// The project that the working directory is in; empty where it is in none.
std::filesystem::path project_around();
/// The project that is written to: only the one that the working directory is in. A program that
/// was copied would otherwise change a project that its user does not think of.
Result<std::filesystem::path> own_project();

}  // namespace rekernel
