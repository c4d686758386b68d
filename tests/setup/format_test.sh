#!/usr/bin/env bash
# Every C++ source is laid out as .clang-format says. Layouts differ between versions of clang-format,
# so version 14 is asked, or nobody.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if ! command -v clang-format-14 >/dev/null; then
  echo 'skipped: clang-format-14 is not installed'
  exit 77
fi
find ops harness reference replay tests \( -name '*.cpp' -o -name '*.h' \) -print0 |
  xargs -0 clang-format-14 --dry-run --Werror
