#!/usr/bin/env bash
# clang-tidy has nothing to say about the program's sources (the tests' are not asked). $1: a folder for
# the compile commands and for the record of what passed; $2: the C++ compiler of the build. A source
# that passed is asked again when it, a header or the settings changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export folder=$1

if ! command -v clang-tidy-14 >/dev/null; then
  echo 'skipped: clang-tidy-14 is not installed'
  exit 77
fi

# Clang cannot read what GCC precompiled. Parsing headers is most of the time, so sources are asked in
# the groups in which they are compiled.
cmake -S . -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER="$2" -DBUILD_TESTING=OFF \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >"$folder.log" || { cat "$folder.log" && exit 1; }
cmake --build "$folder" --target rekernel_harness_digest >"$folder.log" || { cat "$folder.log" && exit 1; }
mkdir -p "$folder/passed"
mapfile -t units < <(sed -n 's/^ *"file": "\(.*\)",\?$/\1/p' "$folder/compile_commands.json" |
  grep -v '\.cxx_pch\|/CMakeFiles/.*pch\.' | sort -u)
((${#units[@]} > 10)) || { echo "expected sources in $folder/compile_commands.json" && exit 1; }

# shellcheck disable=SC2155  # a failure here only means asking again
export shared=$({
  cat .clang-tidy "$folder/compile_commands.json"
  find ops harness reference replay -name '*.h' -print0 | sort -z | xargs -0 cat
} | sha256sum)

check_unit() {
  local unit=$1 key record
  # Of a group, its members.
  key=$({ echo "$shared" && cat "$unit" && sed -n 's/^#include "\(\/.*\)"$/\1/p' "$unit" |
    xargs -r cat; } | sha256sum)
  record=$folder/passed/${unit//\//.}
  [[ -r $record && $(<"$record") == "$key" ]] && return 0
  # The commands are GCC's, with options that clang may not know. With modules, which C++20 has and nobody
  # uses here, it would read every header twice.
  clang-tidy-14 --quiet -p "$folder" --extra-arg=-Wno-unknown-warning-option \
    --extra-arg=-Wno-unused-command-line-argument \
    --extra-arg=-Xclang --extra-arg=-fno-cxx-modules "$unit" \
    2> >(grep -v 'warnings generated' >&2) &&
    echo "$key" >"$record"
}
export -f check_unit

# shellcheck disable=SC2016
printf '%s\0' "${units[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check_unit "$1"' check {}
