#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "replay/model/model.h"
#include "replay/search/read_reply.h"

namespace rekernel {

/// Counts requests in a row whose replies cannot be used, for ideas in this round and those before
/// it, and for kernels from the round's first on, and says when a search should ask no more.
class UnusableReplies {
 public:
  /// So many models take turns: each may first fail.
  explicit UnusableReplies(std::size_t models) : models_(models) {}

  /// Takes the reply that counts for request `index` of these, the last of so many `replies` to it.
  /// Requests are taken in their order. True where it is plain that nothing usable will come.
  bool are_enough(ReplyKind kind, const std::vector<ModelRequest>& requests, std::size_t index,
                  std::size_t replies, const ReadReply& reply);
  /// What was asked, how many replies came and what was wrong with the last; starts to count from
  /// zero.
  std::string take_note(ReplyKind kind, int round);

 private:
  struct Row {
    std::size_t asked = 0;  ///< requests of the wave that the last one is of
    std::size_t requests = 0;
    std::size_t replies = 0;  ///< to these requests
    std::string last;         ///< "to r1.ideas of model one: the reply is empty"
  };

  std::size_t models_;
  std::map<ReplyKind, Row> rows_;
};

}  // namespace rekernel
