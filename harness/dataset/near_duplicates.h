#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rekernel {

/// A sketch of a source's set of five tokens in a row (comments and layout do not count): MinHash
/// (A. Z. Broder, "On the resemblance and containment of documents", 1997) with 128 hash functions.
using MinHash = std::array<std::uint32_t, 128>;
MinHash min_hash(std::string_view source);

/// The estimated Jaccard similarity of the two sets, 0 to 1; its standard error is at most 0.045.
double similarity(const MinHash& a, const MinHash& b);

struct NearDuplicate {
  std::string of;  ///< the row that came first
  double similarity = 0;
};

/// Finds which sources are much like an earlier one. It keeps one sketch for each kind of source,
/// not for each source: 700 bytes or so, found by bands of four hashes.
class NearDuplicates {
 public:
  /// From this similarity on. Kernels of one search that differ in a tile size or a loop's order
  /// are above it, a new idea is below.
  static constexpr double threshold = 0.8;

  /// Nothing where the source is the first of its kind; it is then what later ones are compared
  /// with.
  std::optional<NearDuplicate> add(const std::string& id, const MinHash& sketch);

 private:
  static constexpr std::size_t rows_of_a_band = 4;
  static constexpr std::size_t bands = std::tuple_size_v<MinHash> / rows_of_a_band;

  struct First {
    std::string id;
    MinHash sketch;
  };
  std::vector<First> firsts_;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_band_;
};

}  // namespace rekernel
