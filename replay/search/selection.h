#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "replay/trajectory/settings.h"

namespace rekernel {

/// A correct candidate, as far as the choice of seeds looks at it.
struct Ranked {
  std::string id;    ///< "r4.i2.b1"
  std::string idea;  ///< "r4.i2"
  int round = 0;
  std::int64_t cost = 0;  ///< of its outcome
  std::string sha256;
};

/// Which kernels seed the next round, the fastest first.
struct Selection {
  std::vector<std::string> survivors;
  std::vector<std::string> bank;
};

/// The survivors are the fastest of `round` and of the previous survivors (settings.chain: of
/// `round` alone, if any of it is correct). The bank is the fastest of all others, one an idea.
/// Kernels with the same hash count once; equal times are ranked in the order of `correct`, the
/// order of discovery.
Selection select_seeds(const Settings& settings, std::span<const Ranked> correct, int round,
                       const std::vector<std::string>& previous_survivors);

/// Takes those away that no later select_seeds() can choose, whatever else is found, where these
/// survived last. How many stay depends on the settings alone.
void forget_beaten(const Settings& settings, const std::vector<std::string>& survivors,
                   std::vector<Ranked>& correct);

}  // namespace rekernel
