#include "harness/explain/listing.h"

#include <gtest/gtest.h>

namespace rekernel {
namespace {

TEST(Listing, PutsTheSourcesLinesIntoThePtx) {
  EXPECT_EQ(with_source_lines(".file 1 \"/usr/include/mma.h\"\n"
                              ".file\t2 \"kernel.cu\"\n"
                              "\t.loc\t2 2 5\n"
                              "\tret;\n"
                              "\t.loc\t1 1 1\n"
                              "\t.loc\t2 9 1\n",
                              "first\n  second\n"),
            ".file 1 \"/usr/include/mma.h\"\n"
            ".file\t2 \"kernel.cu\"\n"
            "// kernel.cu:2:   second\n"
            "\tret;\n"
            "\t.loc\t1 1 1\n"
            "\t.loc\t2 9 1\n");
}

TEST(Listing, IsMadeOfCudaCode) {
  Candidate candidate;
  candidate.problem = "softmax";
  candidate.program.language = Language::ptx;
  const Result<Listing> listing = make_listing(candidate, "sm_80");
  ASSERT_FALSE(listing.ok());
  EXPECT_NE(listing.error().message.find("expected kernel.cu"), std::string::npos);
}

}  // namespace
}  // namespace rekernel
