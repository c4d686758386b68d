#include "replay/search/profile_collector.h"

#include <boost/json.hpp>
#include <utility>

namespace rekernel {

namespace json = boost::json;

void ProfileCollector::collect(const Settings& settings, int round) {
  if (!settings.profiles) return;
  for (const ShownCandidate& parent : memory_.without_profile(settings, round)) {
    if (!recording_.going()) return;
    collect(parent);
  }
}

void ProfileCollector::collect(const ShownCandidate& parent) {
  Result<ProfileRecord> profile = profile_of(parent);
  if (!recording_.going()) return;
  if (!profile) {
    return recording_.interrupt({Interruption::Kind::bad_file, profile.error().message});
  }
  const json::object event =
      profile_event(parent.id, candidate_sha256(*parent.candidate), *profile);
  recording_.put(event);
  if (!recording_.going()) return;
  // What was recorded counts, which may be shorter.
  profile = profile_from_event(event, parent.id);
  if (!profile) return recording_.interrupt({Interruption::Kind::failed, profile.error().message});
  if (around_.observer.profile) around_.observer.profile(parent.id, *profile);
  memory_.add_profile(parent.id, *profile);
}

Result<ProfileRecord> ProfileCollector::profile_of(const ShownCandidate& parent) {
  const json::object* recorded = recording_.next("profile", parent.id);
  if (recorded) {
    return profile_from_event(*recorded, recording_.where() + ": profile " + parent.id);
  }
  ProfileRecord profile;
  if (!recording_.going()) return profile;
  around_.observer.show("profiling " + parent.id);
  auto interruption = around_.evaluator.profile({parent.id, parent.candidate.get()}, profile);
  if (interruption) recording_.interrupt(std::move(*interruption));
  return profile;
}

}  // namespace rekernel
