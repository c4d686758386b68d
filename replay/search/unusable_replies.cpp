#include "replay/search/unusable_replies.h"

#include <algorithm>
#include <utility>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "replay/trajectory/event.h"

namespace rekernel {
namespace {

/// Unusable replies of a whole round that are enough to end the search.
constexpr std::size_t enough_in_a_round = 3;
/// The same of a round's first ones, so that a long round is not asked to its end.
constexpr std::size_t enough_at_first = 12;

/// What a model says that does not do what it is asked, in its words.
std::string beginning_of(const std::string& text) {
  constexpr std::size_t shown_bytes = 80;
  std::string words = text.substr(0, 4 * shown_bytes);
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words.empty() ? "" : ", which begins \"" + one_line(words, shown_bytes) + "\"";
}

}  // namespace

bool UnusableReplies::are_enough(ReplyKind kind, const std::vector<ModelRequest>& requests,
                                 std::size_t index, std::size_t replies, const ReadReply& reply) {
  Row& row = rows_[kind];
  if (kind == ReplyKind::kernel && index == 0) row = {};
  if (kind == ReplyKind::kernel && row.requests < index) return false;  // an earlier one was usable
  const std::string reason = reply.unusable();
  if (reason.empty()) {
    row = {};
    return false;
  }
  row.asked = requests.size();
  ++row.requests;
  row.replies += replies;
  row.last = "to " + requests[index].id + " of model " + requests[index].model +
             beginning_of(reply.reply.text) + ": " + reason;
  const bool at_end = index + 1 == requests.size();
  if (kind == ReplyKind::kernel && at_end) return row.replies >= enough_in_a_round;
  // Models whose turn comes later may do better.
  const bool all_models = row.requests >= models_;
  return all_models && row.replies >= (at_end ? enough_in_a_round : enough_at_first);
}

std::string UnusableReplies::take_note(ReplyKind kind, int round) {
  const Row row = std::exchange(rows_[kind], {});
  const std::string asked = kind == ReplyKind::ideas ? "ideas" : counted(row.asked, "kernel");
  const std::string which = row.asked > row.requests ? "the first " : "";
  return printable("round " + std::to_string(round) + ": asked for " + asked + ", none of " +
                       which + std::to_string(row.replies) + " replies was usable; the last, " +
                       row.last,
                   1000);
}

}  // namespace rekernel
