#pragma once

#include "replay/search/surroundings.h"
#include "replay/trajectory/header.h"

namespace rekernel {

/// The search: a function of the header, the replies and the evaluations. It writes events to the
/// trajectory in one order, whatever arrives first. A round has the request for ideas and its
/// reply; all requests for kernels, all their replies, all evaluations, each in the order of ideas
/// and branches; then the selection. Unusable replies to a request, which was then made again, come
/// before its usable one, each as an event `unusable`. If the trajectory holds events already, they
/// are taken from there and checked.
///
/// After a kill at any byte, the same call goes on and ends with the same file. A reply or an
/// evaluation has arrived once its line, in the trajectory or in the journal, is complete; what has
/// arrived is never asked for again. A request that was under way, or an answer just being written,
/// is asked for once more, since nobody can know how far it came; not so with replies from files,
/// which remain.
///
/// If models are asked in another way than before, the event `endpoints` says so. It comes before a
/// reply and changes nothing else in the search.
///
/// The token budget, the deadline and a person's wish to stop are checked before every request for
/// ideas and before the requests for kernels; a stop is recorded as an event with its reason. A
/// continuation after it makes the search go on as if it had not stopped.
///
/// A round with at least three replies to the request for ideas, or to those for kernels, all of
/// them unusable, is not evaluated: a stop ends the search there, with a note. If several models
/// take turns, each may first fail to give ideas. In a long round, the first twelve such replies
/// are enough. A run that is resumed after this stop repeats the round, from its ideas on: the same
/// requests are in the trajectory once more. This never ends a search whose replies are taken as
/// they are, or cost nothing, nor one that is recorded otherwise.
SearchEnd run_search(const Header& header, SearchSurroundings surroundings);

}  // namespace rekernel
