#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/model/model.h"
#include "replay/search/in_turn.h"
#include "replay/search/read_reply.h"
#include "replay/search/recording.h"
#include "replay/search/surroundings.h"
#include "replay/search/unusable_replies.h"
#include "replay/trajectory/settings.h"

namespace rekernel {

/// The tokens of all replies that are in the trajectory.
struct TokenCount {
  std::int64_t prompt = 0;
  std::int64_t completion = 0;

  std::int64_t sum() const { return prompt + completion; }
};

/// Gets replies and records them: those in the trajectory come first, then those that a killed run
/// had already got, then those that models are asked for. Replies that cannot be used are asked for
/// again, a few times.
class ReplyCollector {
 public:
  /// Called for each request, in their order, with the reply that counts. The reply is the
  /// receiver's.
  using Taken = std::function<void(std::size_t index, ReadReply& reply)>;

  /// All must outlive it.
  ReplyCollector(const Settings& settings, const SearchSurroundings& around,
                 SearchRecord& recording);

  /// Gets one reply for every request. Those that come too early wait in the journal.
  void collect(ReplyKind kind, const std::vector<ModelRequest>& requests, const Taken& taken);

  /// Replies to a round are wanted until a collect() gives up.
  void begin_round() { given_up_ = false; }
  bool has_given_up() const { return given_up_; }
  /// Why it gave up on replies of this kind.
  std::string take_note(ReplyKind kind, int round) { return unusable_.take_note(kind, round); }
  /// Whether the round still waits for replies, or for what comes of them.
  bool wants_replies() const { return recording_.going() && !given_up_; }

  const TokenCount& tokens() const { return tokens_; }

 private:
  /// A reply that could not be used.
  struct Refused {
    ModelReply reply;
    std::string reason;
  };
  /// What one request brought.
  struct Answer {
    std::vector<Refused> refused;
    std::shared_ptr<ReadReply> reply;
  };
  /// What is known of a request whose reply has not come.
  struct Asking {
    int recorded = 0;  ///< replies that could not be used and are in the trajectory
    std::vector<Refused> refused;
  };

  static Answer answer_of(std::vector<Refused> refused, ReadReply reply);
  std::optional<Answer> recorded_answer(ReplyKind kind, const ModelRequest& request,
                                        Asking& asking);
  std::optional<Answer> pending_answer(ReplyKind kind, const ModelRequest& request, Asking& asking);
  std::optional<ModelReply> reply_in(const boost::json::object& event, const ModelRequest& request);

  void ask(ReplyKind kind, const std::vector<ModelRequest>& requests,
           const std::vector<std::size_t>& missing, std::vector<Asking>& asking,
           InTurn<Answer>& turn);
  bool may_ask_again(const Asking& asking, std::int64_t spent) const;
  Reception ask_again(const ModelRequest& request, Asking& asking, Refused refused);
  void keep(const ModelRequest& request, boost::json::object event);

  void put_answer(const ModelRequest& request, int recorded, const Answer& answer);
  void put_reply(const ModelRequest& request, const ModelReply& reply,
                 const boost::json::object& event, const std::string& unusable);
  bool gives_up();

  const Settings& settings_;
  const SearchSurroundings& around_;
  SearchRecord& recording_;
  UnusableReplies unusable_;
  bool given_up_ = false;  ///< this round, for want of replies that can be used
  TokenCount tokens_;
};

}  // namespace rekernel
