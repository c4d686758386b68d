#pragma once

#include "replay/search/surroundings.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// The search: a function of the header, the replies and the evaluations. Events go to the
/// trajectory in one order whatever arrives first. In a round: the request for ideas and its reply;
/// all requests for kernels, all their replies, all evaluations, each in the order of ideas and
/// branches; the selection. Before a reply stand those to the same request that were of no use and
/// were asked for again, the event `unusable` each. Where the trajectory holds events already, they
/// are taken from there and checked.
///
/// Killed at any byte, the same call goes on and ends with the same file. A reply or an evaluation
/// has arrived once its line, in the trajectory or in the journal, is whole; what has arrived is
/// never asked for again. What was under way, or just being written, is asked for once more, since
/// nobody can know how far it came; with replies from files not even that, since the files remain.
///
/// Where models are asked in another way than before, the event `endpoints` says so. It stands
/// before a reply and changes nothing of the search.
///
/// The token budget, the deadline and a person's wish to stop are looked at before every request
/// for ideas and before the requests for kernels; a stop is recorded as an event with its reason.
/// A continuation behind it makes the search go on as if it had not stopped.
///
/// A round in which three replies or more to the request for ideas, or to those for kernels, were
/// of no use, and none was of any, is not evaluated: a stop ends the search there, with a note.
/// Where several models take turns, each may first fail to give ideas. Of a long round, twelve such
/// replies from its first on are enough. A run that is resumed behind this stop has the round anew,
/// from its ideas on: the same requests stand in the trajectory once more. It ends no search whose
/// replies are taken as they are, or cost nothing, and none that is recorded otherwise.
SearchEnd run_search(const Header& header, SearchSurroundings surroundings);

}  // namespace rekernel
