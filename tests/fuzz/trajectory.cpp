#include "replay/trajectory/trajectory.h"

#include <boost/json.hpp>

#include "harness/base/json.h"
#include "property.h"
#include "replay/playback/replayer.h"
#include "replay/report/replay_report.h"
#include "replay/trajectory/event.h"
#include "targets.h"
#include "tests/replay/fakes.h"

namespace rekernel::fuzz {
namespace {

/// The same lines with the chain values that belong to them, so that a fuzzer gets past the
/// chain. A line that holds no event stays as it is.
std::string with_chain(std::string_view text) {
  std::string result;
  std::string chain = chain_start();
  for (const std::string& line : testing::lines_of(std::string(text))) {
    Result<boost::json::value> value = parse_json(line, "line");
    boost::json::object* event = value ? value->if_object() : nullptr;
    if (!event) {
      result += line;
      continue;
    }
    event->erase("chain");
    try {
      const std::string canonical = canonical_json(*event);
      chain = next_chain(chain, canonical);
      result += event->empty() ? line : event_line(canonical, chain);
    } catch (const std::logic_error&) {  // a real number: no event
      result += line;
    }
  }
  return result;
}

void check_header(const boost::json::object& event, const std::string& where) {
  const Result<Header> header = header_from_json(event, where);
  if (!header) return require_error(header.error(), where);
  const Result<Header> again = header_from_json(to_json(*header), where);
  require(again.ok(), "what is written is accepted", again.ok() ? "" : again.error().message);
  require(canonical_json(to_json(*again)) == canonical_json(to_json(*header)),
          "a header is written the same again");
}

void read_events(const std::filesystem::path& path) {
  Result<Trajectory> trajectory = Trajectory::open(path, Trajectory::Access::read);
  if (!trajectory) return require_error(trajectory.error(), path.string());
  while (true) {
    const Result<const boost::json::object*> event = trajectory->peek();
    if (!event) return require_error(event.error(), path.string() + ": line ");
    if (!*event) return;
    // A key that appears twice is found when the event is passed.
    const std::string line = canonical_json(**event);
    const Result<boost::json::value> again = parse_json(line, "line");
    require(again.ok() && again->get_object() == **event, "an event loses nothing", line);
    require_one_line(event_title(**event));
    if (trajectory->line() == 0) check_header(**event, path.string() + ": line 1");
    const Result<Ok> skipped = trajectory->skip();
    if (!skipped) return require_error(skipped.error(), path.string() + ": line ");
  }
}

void replay(const std::filesystem::path& path, const std::string& text) {
  const Replay replay = replay_exactly(path, KeepCandidates::yes);
  // What was reproduced can be shown, all of it or not.
  (void)replay_markdown(replay.search, nullptr);
  (void)pretty_json(replay_json(replay.search, nullptr));
  if (replay.interruption) {
    const std::string& message = replay.interruption->message;
    require(is_utf8(message), "a message is UTF-8", message);
    require_one_line(message.substr(0, message.find('\n')));
    require(message.starts_with(path.string()), "a message names the file", message);
    return;
  }
  require(testing::with_fresh_chain(text) == text, "what replays is written as it would be again");
}

}  // namespace

void fuzz_trajectory(std::string_view bytes) {
  static const TemporaryFolder folder;
  const std::filesystem::path path = folder / "t.jsonl";
  for (const std::string& text : {std::string(bytes), with_chain(bytes)}) {
    testing::write_text(path, text);
    read_events(path);
    replay(path, text);
  }
}

}  // namespace rekernel::fuzz
