#include "harness/records/definitions.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/records/made_mutants.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

namespace fs = std::filesystem;

const fs::path committed = fs::path(REKERNEL_SOURCE_DIR) / "results/h200";

TEST(Definitions, WhatIsRecordedAgreesWithPyTorch) {
  const Result<DefinitionsRecord> record = load_definitions(committed / "definitions.json");
  ASSERT_TRUE(record.ok()) << record.error().message;
  EXPECT_EQ(record->device_name, "NVIDIA H200");
  EXPECT_GT(record->rows.size(), 100u);
  for (const DefinitionRow& row : record->rows) EXPECT_TRUE(row.agrees()) << row.problem;
}

TEST(Definitions, ARowMeasuredAgainReplacesTheOldOne) {
  const TemporaryFolder root;
  DefinitionsRecord record = *load_definitions(committed / "definitions.json");
  const Result<fs::path> path = record_definitions(root.path(), record);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(read_file(*path).value(), read_file(committed / "definitions.json").value());

  DefinitionRow changed = record.rows[3];
  changed.truth_ns = 42;
  DefinitionRow gone = record.rows[0];
  gone.problem = "of_no_file";
  DefinitionsRecord measured = record;
  measured.rows = {gone, changed};
  ASSERT_TRUE(record_definitions(root.path(), measured).ok());
  const DefinitionsRecord merged = *load_definitions(*path);
  ASSERT_EQ(merged.rows.size(), record.rows.size());
  EXPECT_EQ(merged.rows[3].problem, changed.problem);
  EXPECT_EQ(merged.rows[3].truth_ns, 42);
  EXPECT_EQ(merged.rows[4].truth_ns, record.rows[4].truth_ns);
}

TEST(MadeMutants, WhatIsRecordedStaysAsItIs) {
  const TemporaryFolder root;
  fs::create_directories(root.path() / "results/h200");
  const fs::path copy = root.path() / "results/h200/made_mutants.json";
  fs::copy_file(committed / "made_mutants.json", copy);
  MadeMutantsRecord nothing_new;
  nothing_new.device_name = "NVIDIA H200";
  nothing_new.sm = "9.0";
  const auto toolchain = read_json_file(copy)->as_object().at("toolchain");
  for (const auto& [name, version] : toolchain.as_object()) {
    nothing_new.toolchain[std::string(name)] = std::string(version.as_string());
  }
  const Result<fs::path> path = record_made_mutants(root.path(), nothing_new);
  ASSERT_TRUE(path.ok()) << path.error().message;
  EXPECT_EQ(*path, copy);
  EXPECT_EQ(read_file(copy).value(), read_file(committed / "made_mutants.json").value());
}

}  // namespace
}  // namespace rekernel
