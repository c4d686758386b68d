#include "harness/dataset/near_duplicates.h"

#include <algorithm>
#include <limits>

#include "harness/base/source_tokens.h"

namespace rekernel {

namespace {

constexpr std::size_t shingle_tokens = 5;

/// The finaliser of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014).
constexpr std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

/// FNV-1a: the same on every platform, unlike std::hash.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mixed(hash);
}

/// Odd factors, one for each hash function, which multiplies and shifts (M. Dietzfelbinger et al.,
/// 1997).
constexpr std::array<std::uint64_t, std::tuple_size_v<MinHash>> factors = [] {
  std::array<std::uint64_t, std::tuple_size_v<MinHash>> made{};
  std::uint64_t state = 0;
  for (std::uint64_t& factor : made) factor = mixed(state += 0x9e3779b97f4a7c15u) | 1u;
  return made;
}();

}  // namespace

MinHash min_hash(std::string_view source) {
  const std::string tokens = cpp_tokens(source);
  MinHash sketch;
  sketch.fill(std::numeric_limits<std::uint32_t>::max());
  std::array<std::uint64_t, shingle_tokens> last{};
  std::string_view rest = tokens;
  for (std::size_t count = 1; !rest.empty(); ++count) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    last[count % shingle_tokens] = hash_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // What is shorter than a shingle is one.
    if (count < shingle_tokens && !rest.empty()) continue;
    std::uint64_t shingle = 0;
    for (std::size_t i = 1; i <= shingle_tokens; ++i) {
      shingle = mixed(shingle + last[(count + i) % shingle_tokens]);
    }
    for (std::size_t i = 0; i < sketch.size(); ++i) {
      sketch[i] = std::min(sketch[i], static_cast<std::uint32_t>((factors[i] * shingle) >> 32));
    }
  }
  return sketch;
}

double similarity(const MinHash& a, const MinHash& b) {
  std::size_t equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i] ? 1 : 0;
  return static_cast<double>(equal) / static_cast<double>(a.size());
}

std::optional<NearDuplicate> NearDuplicates::add(const std::string& id, const MinHash& sketch) {
  std::array<std::uint64_t, bands> keys;
  for (std::size_t band = 0; band < bands; ++band) {
    std::uint64_t key = band;
    for (std::size_t i = 0; i < rows_of_a_band; ++i) {
      key = mixed(key * 31 + sketch[band * rows_of_a_band + i]);
    }
    keys[band] = key;
  }
  std::optional<NearDuplicate> nearest;
  std::vector<std::uint32_t> compared;
  for (const std::uint64_t key : keys) {
    const auto found = by_band_.find(key);
    if (found == by_band_.end()) continue;
    for (const std::uint32_t index : found->second) {
      if (std::find(compared.begin(), compared.end(), index) != compared.end()) continue;
      compared.push_back(index);
    }
  }
  std::sort(compared.begin(), compared.end());
  for (const std::uint32_t index : compared) {
    const double likeness = similarity(firsts_[index].sketch, sketch);
    if (likeness >= threshold && (!nearest || likeness > nearest->similarity)) {
      nearest = {firsts_[index].id, likeness};
    }
  }
  if (nearest) return nearest;
  const auto index = static_cast<std::uint32_t>(firsts_.size());
  firsts_.push_back({id, sketch});
  for (const std::uint64_t key : keys) by_band_[key].push_back(index);
  return std::nullopt;
}

}  // namespace rekernel
