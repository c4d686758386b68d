#!/usr/bin/env bash
# Every header of the program compiles by itself: it includes what it needs of ours. $1: a folder for what
# is made and for the record of what passed; $2: the C++ compiler; the rest: options for include folders.
# The standard library and Boost.JSON are there already, since the build precompiles them for everybody.
#
# It takes a minute of processor time, and next to none once passed: a header is asked again when it or
# what it includes changed. One that another header includes first is seen with nothing of ours before it,
# so that the other's test is its own.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export folder=$1 compiler=$2
shift 2
export options="-std=c++20 -I. $*"

mkdir -p "$folder"
common=$({ "$compiler" --version && echo "$options"; } | sed 's|^|// |'
  sed -n '/^target_precompile_headers(rekernel_precompiled/,/)/p' harness/cmake/precompiled.cmake |
    grep -o '<[^>]*>' | sed 's/^/#include /')
[[ $(grep -c '^#include' <<<"$common") -gt 5 ]] || { echo 'expected headers in harness/cmake/precompiled.cmake' && exit 1; }
if [[ ! -r $folder/common.h.gch || $common != "$(<"$folder/common.h")" ]]; then
  rm -f "$folder"/*.passed
  echo "$common" >"$folder/common.h"
  # shellcheck disable=SC2086  # options are words
  "$compiler" $options -x c++-header "$folder/common.h" -o "$folder/common.h.gch"
fi

mapfile -t headers < <(find ops harness reference replay -name '*.h' | sort)
declare -A included_first
for header in "${headers[@]}"; do
  first=$(grep -m1 '^#include "' "$header" | cut -d'"' -f2 || true)
  [[ -z $first ]] || included_first[$first]=1
done
asked=()
for header in "${headers[@]}"; do
  [[ -n ${included_first[$header]:-} ]] || asked+=("$header")
done
echo "${#headers[@]} headers, of which ${#asked[@]} prove the others"
((${#headers[@]} > 100 && ${#asked[@]} > 50))

# The digest of what a header was made of when it was compiled, by the list that the compiler wrote.
digest() {
  tr -s ' \\\n' '\n' <"$1" | grep -v ':$\|^$\|common\.h' | xargs -r cat 2>/dev/null | sha256sum
}
check_header() {
  local header=$1 unit=$folder/${1//\//.}
  [[ -r $unit.passed && $(<"$unit.passed") == "$(digest "$unit.d")" ]] && return 0
  echo "#include \"$header\"" >"$unit.cpp"
  # shellcheck disable=SC2086
  "$compiler" $options -fsyntax-only -MMD -MF "$unit.d" -include "$folder/common.h" "$unit.cpp" ||
    { echo "$header does not compile by itself" && return 1; }
  digest "$unit.d" >"$unit.passed"
}
export -f check_header digest
# shellcheck disable=SC2016
printf '%s\0' "${asked[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check_header "$1"' check {}
