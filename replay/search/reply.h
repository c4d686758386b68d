#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "harness/candidate/candidate.h"
#include "ops/result.h"

namespace rekernel {

struct Idea {
  std::string title;  ///< a few words, at most 120 bytes
  std::string text;   ///< at most max_idea_bytes
};

/// An idea that a person wrote: its first sentence becomes the title.
Idea idea_from_text(const std::string& text);

/// Reads a reply to a request for ideas: a fenced json block, or the whole reply, that holds a list
/// of {"title": …, "idea": …} or of strings; failing that, a numbered list ("1. …", "2) …"). The
/// error says what was found instead.
Result<std::vector<Idea>> parse_ideas(std::string_view reply);

/// What the search fills in of a candidate's plan, whatever the reply says.
struct CandidateFrame {
  std::string problem;
  std::string trajectory;  ///< name of the search
  std::string id;          ///< "r4.i2.b1"; the candidate's name is r4_i2_b1
  std::string idea;        ///< taken where the reply's plan has none
  std::string arch;        ///< taken where the reply's plan has none
};

/// What a reply to a request for a kernel holds, whatever is in its plan.
struct KernelReply {
  std::string source;
  boost::json::object plan;  ///< as the model wrote it
};

/// Reads a reply to a request for a kernel: exactly one fenced block marked cuda, cu, c++, cpp or
/// c, and exactly one marked json with the plan; other fenced blocks and prose are ignored. Where
/// the reply has another form, the model may do better if it is asked again.
Result<KernelReply> parse_kernel_reply(std::string_view reply);

/// The candidate that a reply describes. The error is what the failed candidate is recorded with.
Result<Candidate> candidate_from_reply(KernelReply reply, const CandidateFrame& frame);

}  // namespace rekernel
