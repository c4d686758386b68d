#include <algorithm>
#include <array>
#include <numeric>

#include "harness/base/text.h"
#include "harness/base/utf8.h"
#include "harness/profile/profile.h"

namespace rekernel {

namespace {

/// How much of a profile a text shows.
struct Form {
  std::size_t launches;
  std::size_t stalls;
  std::size_t hottest;
};
constexpr std::array forms = {Form{8, 5, 5}, Form{4, 4, 4}, Form{3, 3, 3},
                              Form{2, 3, 2}, Form{1, 3, 2}, Form{1, 2, 0}};

constexpr std::size_t longest_instruction = 60;
constexpr std::size_t longest_source = 80;

std::string percent(double value) { return printed("%.0f%%", value); }

/// "1.07 GB", as vendors count.
std::string bytes_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 1e9) return printed("%.3g GB", value / 1e9);
  if (value >= 1e6) return printed("%.3g MB", value / 1e6);
  if (value >= 1e3) return printed("%.3g KB", value / 1e3);
  return std::to_string(bytes) + " bytes";
}

std::string microseconds_text(std::int64_t nanoseconds) {
  return printed("%.1f us", static_cast<double>(nanoseconds) / 1e3);
}

class Parts {
 public:
  void add(const std::string& part) {
    if (!part.empty()) text_ += (text_.empty() ? "" : ", ") + part;
  }
  void share(const char* name, const std::optional<double>& share) {
    if (share) add(std::string(name) + " " + percent(*share));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string traffic_text(const Profile& profile) {
  const std::optional<std::int64_t> bytes = profile.dram_bytes();
  if (!bytes) return "";
  std::string text = bytes_text(*bytes) + " read and written in DRAM";
  if (profile.least_bytes > 0) {
    text +=
        ", " +
        printed("%.2f", static_cast<double>(*bytes) / static_cast<double>(profile.least_bytes)) +
        " times the least (" + bytes_text(profile.least_bytes) + ")";
  }
  return text;
}

std::string summary_line(const Profile& profile) {
  Parts parts;
  parts.share("DRAM", profile.together(&LaunchProfile::dram_share));
  parts.share("matrix unit", profile.together(&LaunchProfile::matrix_share));
  parts.share("issue slots", profile.together(&LaunchProfile::issue_share));
  Parts line;
  const std::size_t count = profile.launches.size();
  line.add(count == 1 ? "1 launch" : std::to_string(count) + " launches");
  line.add(microseconds_text(profile.duration_ns()));
  if (!parts.text().empty()) line.add("of the peak: " + parts.text());
  line.add(traffic_text(profile));
  return line.text() + ".\n";
}

std::string resources_line(const LaunchProfile& launch) {
  Parts parts;
  parts.add("grid " + launch.grid);
  parts.add("block " + launch.block);
  if (launch.waves) parts.add(printed("%.2f", *launch.waves) + " waves");
  if (launch.registers) parts.add(std::to_string(*launch.registers) + " registers a thread");
  if (launch.shared_bytes) parts.add(bytes_text(*launch.shared_bytes) + " shared a block");
  if (launch.local_accesses) {
    parts.add(*launch.local_accesses == 0
                  ? "no spills"
                  : std::to_string(*launch.local_accesses) + " local accesses (spills, arrays)");
  }
  if (launch.occupancy && launch.possible_occupancy) {
    parts.add("occupancy " + percent(*launch.occupancy) + " of " +
              percent(*launch.possible_occupancy) + " possible");
  }
  return "  " + parts.text() + "\n";
}

std::string units_line(const LaunchProfile& launch) {
  Parts parts;
  parts.share("DRAM", launch.dram_share);
  parts.share("L2", launch.l2_share);
  parts.share("L1 and shared", launch.l1_share);
  parts.share("SM", launch.sm_share);
  parts.share("matrix unit", launch.matrix_share);
  parts.share("issue slots", launch.issue_share);
  if (launch.l2_read_bytes && launch.l2_written_bytes) {
    parts.add("through L2 " + bytes_text(*launch.l2_read_bytes) + " read and " +
              bytes_text(*launch.l2_written_bytes) + " written");
  }
  if (launch.sectors_per_load && *launch.sectors_per_load > 0) {
    parts.add(printed("%.1f", *launch.sectors_per_load) + " sectors a load");
  }
  if (launch.sectors_per_store && *launch.sectors_per_store > 0) {
    parts.add(printed("%.1f", *launch.sectors_per_store) + " a store");
  }
  if (launch.bank_conflicts && *launch.bank_conflicts > 0) {
    parts.add(std::to_string(*launch.bank_conflicts) + " bank conflicts");
  }
  return parts.text().empty() ? "" : "  of the peak: " + parts.text() + "\n";
}

std::string stalls_line(const LaunchProfile& launch, std::size_t most) {
  Parts parts;
  for (std::size_t i = 0; i < std::min(most, launch.stalls.size()); ++i) {
    parts.add(percent(launch.stalls[i].second) + " " + launch.stalls[i].first);
  }
  return parts.text().empty() ? "" : "  stalls: " + parts.text() + "\n";
}

std::string hot_line(const HotInstruction& hot) {
  std::string text =
      "  " + percent(100 * hot.share) + " at " + one_line(hot.text, longest_instruction);
  if (!hot.stall.empty()) text += " (" + hot.stall + ")";
  if (hot.line > 0) {
    text += ", line " + std::to_string(hot.line) + ": " + one_line(hot.source, longest_source);
  }
  return text + "\n";
}

/// The longest launches, in the order of the plan.
std::vector<std::size_t> shown_launches(const Profile& profile, std::size_t most) {
  std::vector<std::size_t> order(profile.launches.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return profile.launches[a].duration_ns > profile.launches[b].duration_ns;
  });
  order.resize(std::min(order.size(), most));
  std::sort(order.begin(), order.end());
  return order;
}

std::string text_in(const Form& form, const Profile& profile) {
  std::string text = summary_line(profile);
  const auto all = static_cast<double>(std::max<std::int64_t>(profile.duration_ns(), 1));
  const std::vector<std::size_t> shown = shown_launches(profile, form.launches);
  for (const std::size_t i : shown) {
    const LaunchProfile& launch = profile.launches[i];
    text += "- launch " + std::to_string(i + 1) + ", " + one_line(launch.kernel, 64) + ": " +
            microseconds_text(launch.duration_ns) + ", " +
            percent(100 * static_cast<double>(launch.duration_ns) / all) + " of the time\n";
    text += resources_line(launch) + units_line(launch) + stalls_line(launch, form.stalls);
    for (std::size_t h = 0; h < std::min(form.hottest, launch.hottest.size()); ++h) {
      text += hot_line(launch.hottest[h]);
    }
  }
  if (shown.size() < profile.launches.size()) {
    text += "- " + std::to_string(profile.launches.size() - shown.size()) +
            " shorter launches left out\n";
  }
  return text;
}

}  // namespace

std::string profile_text(const Profile& profile, std::size_t most_bytes) {
  std::string text;
  for (const Form& form : forms) {
    text = text_in(form, profile);
    if (text.size() <= most_bytes) return text;
  }
  // Names of strangers can be long.
  return visible_lines(text, most_bytes);
}

}  // namespace rekernel
