#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/capture/recording.h"
#include "ops/program.h"

namespace rekernel {

/// A tensor map in the bytes of a parameter.
struct FoundMap {
  std::int64_t at = 0;
  const RecordedTensorMap* map = nullptr;
};

/// Where a parameter holds tensor maps that the program encoded: bytes equal to those that the
/// driver made, at a multiple of 64. The last one that was encoded to these bytes counts.
std::vector<FoundMap> find_maps(const RecordedParameter& parameter,
                                const std::vector<RecordedTensorMap>& encoded);

/// Whether both describe the same copies, wherever they begin.
bool same_description(const RecordedTensorMap& one, const RecordedTensorMap& other);

/// The map as a plan says it, of `buffer` from `offset_bytes` on, which has `bytes` in all. Nothing
/// where a plan has no words for it (interleaved layouts, types that only tensor maps have, an
/// extent past the buffer): its bytes then stay bytes, with an address in the first word.
std::optional<TensorMapArgument> planned_map(const RecordedTensorMap& map,
                                             const std::string& buffer, std::int64_t offset_bytes,
                                             std::int64_t bytes);

}  // namespace rekernel
