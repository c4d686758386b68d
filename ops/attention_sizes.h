#pragma once

#include <cstdint>

namespace rekernel {

struct AttentionSizes {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t length = 0;
  std::int64_t head_dim = 0;
};

/// Of the catalog's two.
inline constexpr AttentionSizes catalog_attention{
    .batch = 4, .heads = 16, .length = 4096, .head_dim = 128};

/// Device memory that the attention oracle may take; it decides how many heads go into
/// one launch.
inline constexpr std::int64_t attention_workspace_bytes = 1'200'000'000;

}  // namespace rekernel
