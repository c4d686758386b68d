#pragma once

#include <boost/json/fwd.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "harness/base/json.h"
#include "ops/result.h"

namespace rekernel {

/// The newest trajectory format that this program writes and reads.
inline constexpr int trajectory_schema = 1;

/// Compact JSON with the members in the order in which they were put in. The one serialisation of
/// events: the same value gives the same bytes whatever the library's version. Events hold strings,
/// integers, booleans and null; a floating-point number is a defect (std::logic_error), since not
/// all of them survive being read back.
std::string canonical_json(const boost::json::value& value);
/// The same for an object, without one of its members.
std::string canonical_json(const boost::json::object& object, std::string_view without = "");

/// What stands in for the chain value before the first event.
std::string chain_start();
/// SHA-256 over the previous event's chain value and this event's canonical text.
std::string next_chain(const std::string& previous, const std::string& canonical_event);
/// The line of an event: its members, then "chain", then a newline.
std::string event_line(const std::string& canonical_event, const std::string& chain);

/// Puts any bytes into an event: as `key` where they are UTF-8 without NUL, else as `key`_base64.
void put_text(boost::json::object& event, const std::string& key, std::string_view bytes);
/// The bytes that put_text stored; fails the reader if there are none.
std::string take_text(JsonReader& event, const std::string& key);

/// "response r1.i2.b1", for messages.
std::string event_title(const boost::json::object& event);
/// Whether its title is made of this kind and this id, or of the kind alone.
bool is_event(const boost::json::object& event, std::string_view kind, std::string_view id = "");

/// At most `max_bytes` of the text, cut between characters, with "…" where something is missing.
std::string shortened(std::string_view text, std::size_t max_bytes);
/// The same with bytes that are not UTF-8, and control characters other than line feed and tab,
/// replaced by "?".
std::string printable(std::string_view bytes, std::size_t max_bytes);

/// A documented estimate for replies that come without counts: a token is four bytes, rounded up.
std::int64_t estimated_tokens(std::size_t bytes);

}  // namespace rekernel
