#include "harness/problem_import/problem_import.h"

#include <gtest/gtest.h>

#include <fstream>

#include "harness/base/json.h"
#include "tests/temporary.h"

namespace rekernel {
namespace {

TEST(ImportedId, IsAnIdentifierAfterTheFile) {
  EXPECT_EQ(id_after("level1/36_RMSNorm_.py"), "imported_rmsnorm");
  EXPECT_EQ(id_after("19_My ReLU.py"), "my_relu");
  EXPECT_EQ(id_after("11_4D_tensor.py"), "problem_4d_tensor");
  EXPECT_EQ(id_after("___.py"), "problem");
  for (const char* file : {"a-b.c.py", "7.py", "\xc3\xa4.py", "x.json"}) {
    EXPECT_TRUE(is_identifier(id_after(file))) << file << ": " << id_after(file);
  }
  EXPECT_LE(id_after(std::string(300, 'a') + ".py").size(), 64u);
}

TEST(Workloads, GiveAxesAndScalarsToTheirDefinition) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "workloads.jsonl";
  std::ofstream(path) << R"({"definition": "a", "workload": {"axes": {"n": 3}}}

{"definition": "b", "workload": {"axes": {"n": 5, "m": 7}, "inputs": {"x": {"type": "random"}, "s": {"type": "scalar", "value": 0.5}}}}
)";
  const auto of = [&](const std::string& name) {
    return workload_for(R"({"name": ")" + name + R"("})", "definition.json", path);
  };
  const auto found = of("b");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->axes, (std::map<std::string, std::int64_t>{{"m", 7}, {"n", 5}}));
  EXPECT_EQ(found->scalars, (std::map<std::string, double>{{"s", 0.5}}));
  EXPECT_EQ(of("c").error().message, path.string() + ": no workload for 'c'");
  std::ofstream(path) << R"({"definition": "a", "workload": {"axes": {"n": 0}}})";
  const auto bad = of("a");
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message.find(path.string() + ": line 1: "), 0u) << bad.error().message;
}

TEST(Workloads, NameFilesBelowTheirDataSet) {
  const TemporaryFolder folder;
  const auto root = std::filesystem::canonical(folder.path());
  for (const char* part : {"definitions/op", "workloads/op", "blob/op"}) {
    std::filesystem::create_directories(root / part);
  }
  const auto definition = root / "definitions/op/a.json", workloads = root / "workloads/op/a.jsonl";
  EXPECT_EQ(workloads_of(definition), "");
  EXPECT_EQ(workloads_of(root / "a.json"), "");
  std::ofstream(workloads)
      << R"({"definition": "a", "workload": {"axes": {}, "inputs": {"k": )"
      << R"({"type": "safetensors", "path": "blob/op/k.safetensors", "tensor_key": "kk"}}}})"
      << "\n";
  EXPECT_EQ(workloads_of(definition), workloads);
  const auto given = [&] { return workload_for(R"({"name": "a"})", definition, workloads); };
  ASSERT_FALSE(given());
  EXPECT_NE(given().error().message.find("no file blob/op/k.safetensors in "), std::string::npos);
  std::ofstream(root / "blob/op/k.safetensors") << "x";
  ASSERT_TRUE(given()) << given().error().message;
  EXPECT_EQ(given()->tensors.at("k").file, root / "blob/op/k.safetensors");
  EXPECT_EQ(given()->tensors.at("k").key, "kk");
}

TEST(Definitions, AreToldFromProblems) {
  EXPECT_TRUE(is_flashinfer_definition(R"({"reference": "", "axes": {}})"));
  EXPECT_FALSE(is_flashinfer_definition(R"({"axes": {}})"));
  EXPECT_FALSE(is_flashinfer_definition("import torch"));
}

}  // namespace
}  // namespace rekernel
