// What is unknown is one line on standard error, with what may have been meant, and status 2.

#include <gtest/gtest.h>

#include "program.h"

namespace rekernel {
namespace {

struct Mistake {
  const char* arguments;
  std::string message;
};

void expect_messages(const std::vector<Mistake>& mistakes) {
  for (const auto& [arguments, message] : mistakes) {
    const auto outcome = testing::run_program(arguments, REKERNEL_SOURCE_DIR);
    EXPECT_EQ(outcome.exit_status, 2) << arguments;
    EXPECT_EQ(outcome.output, "rekernel: " + message + "\n") << arguments;
  }
}

TEST(Mistakes, InCommands) {
  expect_messages({
      {"evalute x", "unknown command 'evalute' (did you mean 'evaluate'?); see rekernel help"},
      {"problem verifi",
       "unknown command 'problem verifi' (did you mean 'problem verify'?); see rekernel help "
       "problem"},
      {"help benhc", "unknown command 'benhc' (did you mean 'bench'?); see rekernel help"},
      {"eval x", "unknown command 'eval' (did you mean 'evaluate'?); see rekernel help"},
      {"frobnicate", "unknown command 'frobnicate'; see rekernel help"},
  });
}

TEST(Mistakes, InOptions) {
  expect_messages({
      {"bench --recrod",
       "bench: unknown option '--recrod' (did you mean '--record'?); see rekernel help bench"},
      {"bench --kernl", "bench: unknown option '--kernl'; see rekernel help bench"},
      {"problem check --jsn x",
       "problem check: unknown option '--jsn' (did you mean '--json'?); see rekernel help problem "
       "check"},
      {"evaluate --s 3 x",
       "evaluate: '--s' may be --samples or --seed or --shared-gpu; see rekernel help evaluate"},
  });
}

TEST(Mistakes, InValues) {
  expect_messages({
      {"bench --samples",
       "bench: the required argument for option '--samples' is missing; see rekernel help bench"},
      {"bench --samples 9", "bench: --samples: expected 10 to 10000; see rekernel help bench"},
      {"bench --samples 10x", "bench: --samples: expected 10 to 10000; see rekernel help bench"},
      {"bench --pytorch onn",
       "bench: --pytorch onn (did you mean 'on'?): expected auto, on, eager or off; see rekernel "
       "help "
       "bench"},
      {"completion bahs",
       "completion: SHELL bahs (did you mean 'bash'?): expected bash, zsh or fish; see rekernel "
       "help completion"},
      {"evaluate softmax/cluster_with_prefetch --reference cudnn_softmx",
       "--reference cudnn_softmx (did you mean 'cudnn_softmax'?): expected one of headline, all, "
       "none, cudnn_softmax"},
  });
}

TEST(Mistakes, InArguments) {
  expect_messages({
      {"evaluate",
       "evaluate: expected KERNEL, or --from-dataset DIR --row ID; see rekernel help evaluate"},
      {"doctor now", "doctor: expected options alone; see rekernel help doctor"},
      {"blinding softmax conv2d",
       "blinding: too many arguments: expected PROBLEM and options; see rekernel help blinding"},
      {"evaluate softmax/cluster_with_prefech",
       "unknown kernel 'softmax/cluster_with_prefech' (did you mean "
       "'softmax/cluster_with_prefetch'?): expected PROBLEM/NAME of a folder in generated/, or a "
       "folder"},
      {"evaluate softmax/cluster",
       "unknown kernel 'softmax/cluster' (did you mean 'softmax/cluster_with_prefetch'?): expected "
       "PROBLEM/NAME of a folder in generated/, or a folder"},
      {"bench sofmax/cluster_with_prefetch",
       "unknown kernel 'sofmax/cluster_with_prefetch' (did you mean "
       "'softmax/cluster_with_prefetch'?): expected PROBLEM/NAME of a folder in generated/"},
      {"blinding sofmax",
       "unknown problem 'sofmax' (did you mean 'softmax'?): `rekernel list` names them all"},
      {"problem check ops/problems/kernelbench1/rmsnrm.json",
       "ops/problems/kernelbench1/rmsnrm.json: no such file (did you mean "
       "'ops/problems/kernelbench1/rmsnorm.json'?)"},
      {"replay conv2d-13-round",
       REKERNEL_SOURCE_DIR "/trajectories/conv2d-13-round.jsonl: no such search (did you mean "
                           "'conv2d-13-rounds'?)"},
  });
}

}  // namespace
}  // namespace rekernel
