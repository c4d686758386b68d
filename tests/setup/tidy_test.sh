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

# Clang cannot read what GCC precompiled.
cmake -S . -B "$folder" -G Ninja -DCMAKE_CXX_COMPILER="$2" -DBUILD_TESTING=OFF \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >"$folder.log" || { cat "$folder.log" && exit 1; }

# Parsing headers is most of the time. The command line's files include the most and share no internal
# names: they are parsed as one, under the name of the last, whose compile command clang-tidy then takes.
command_line=(harness/cli/*.cpp)
whole=$folder/whole/${command_line[-1]}
mkdir -p "$folder/passed" "$(dirname "$whole")"
printf "#include \"$PWD/%s\"\n" "${command_line[@]}" >"$whole"
mapfile -t sources < <(find ops harness reference replay -name '*.cpp' -not -path 'harness/cli/*' | sort)

# shellcheck disable=SC2155  # a failure here only means asking again
export shared=$({
  cat .clang-tidy "$folder/compile_commands.json"
  find ops harness reference replay -name '*.h' -print0 | sort -z | xargs -0 cat
} | sha256sum)

check_source() {
  local source=$1 key record
  # Of the command line, the files.
  key=$({ echo "$shared" && cat "$source" && sed -n 's/^#include "\(\/.*\)"$/\1/p' "$source" |
    xargs -r cat; } | sha256sum)
  record=$folder/passed/$(basename "$(dirname "$source")").$(basename "$source")
  [[ -r $record && $(<"$record") == "$key" ]] && return 0
  # The commands are GCC's, with options that clang may not know.
  clang-tidy-14 --quiet -p "$folder" --extra-arg=-Wno-unknown-warning-option "$source" \
    2> >(grep -v 'warnings generated' >&2) &&
    echo "$key" >"$record"
}
export -f check_source

# shellcheck disable=SC2016
printf '%s\0' "$whole" "${sources[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check_source "$1"' check {}
