#include "replay/search/reply.h"

#include "harness/base/json.h"
#include "property.h"
#include "replay/trajectory/settings.h"
#include "targets.h"
#include "tests/replay/fakes.h"

namespace rekernel::fuzz {
namespace {

/// An idea goes into prompts and events.
void check_idea(const Idea& idea) {
  require(idea.title.size() <= 120 + 3, "a title is short", idea.title);
  require(idea.text.size() <= max_idea_bytes, "an idea has its limit");
  require(is_utf8(idea.title) && is_utf8(idea.text), "an idea is UTF-8", idea.title);
  require((idea.title + idea.text).find('\0') == std::string::npos, "an idea has no NUL");
}

void check_ideas(std::string_view reply) {
  const Result<std::vector<Idea>> ideas = parse_ideas(reply);
  if (!ideas) return require_error(ideas.error(), "the reply ");
  require(!ideas->empty(), "a list of ideas has one");
  for (const Idea& idea : *ideas) check_idea(idea);
}

void check_kernel(std::string_view reply) {
  const CandidateFrame frame{"softmax", "fuzz", "r1.i2.b3", "Load more at once.", "sm_90a"};
  const Result<Candidate> candidate = testing::candidate_from_text(reply, frame);
  const Result<KernelReply> form = parse_kernel_reply(reply);
  require(!candidate || form, "a candidate has the form of one");
  if (!form) require_error(form.error(), "the reply");
  if (!candidate) {
    const bool of_reply = candidate.error().message.starts_with("the reply");
    return require_error(candidate.error(), of_reply ? "the reply" : "r1.i2.b3/kernel.");
  }
  require(candidate->problem == "softmax" && candidate->name == "r1_i2_b3" &&
              candidate->origin.trajectory == "trajectories/fuzz.jsonl" &&
              candidate->origin.candidate == frame.id && candidate->origin.note.empty(),
          "the search says where a candidate came from");
  const std::string text = candidate_json(*candidate);
  const Result<Candidate> again =
      parse_candidate(text, candidate->program.source, "r1.i2.b3/kernel.json");
  require(again.ok(), "what is written is accepted", again.ok() ? "" : again.error().message);
  require(candidate_json(*again) == text, "a plan is written the same again", text);
}

}  // namespace

void fuzz_reply(std::string_view bytes) {
  check_ideas(bytes);
  check_kernel(bytes);
}

}  // namespace rekernel::fuzz
