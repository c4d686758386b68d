#!/usr/bin/env bash
# The folders of harness/ are rooms in an order, and so are those of replay/: a file includes from its own
# room and from those before it. reference/ stands in that order too, and replay/ does not include from it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

rooms=(ops base problems process gpu candidate compile capture export device evaluation jobs records plan audit
  reference replay/trajectory replay/model replay/evaluator replay/search replay/playback replay/report
  terminal measuring problem_import project dataset claims report explain profile pull_request service cli)
declare -A order
for i in "${!rooms[@]}"; do order[${rooms[i]}]=$i; done

# The room of a path, as a word of `rooms`, or the folder that lies above them all.
room_of() {
  local path=$1
  case $path in
    ops/*) echo ops ;;
    harness/*/*) path=${path#harness/}; echo "${path%%/*}" ;;
    replay/*/*) echo "${path%/*}" ;;
    *) echo "${path%%/*}" ;;
  esac
}

complaints=0
checked=0
while IFS=: read -r file _ include; do
  target=${include#*\"}
  target=${target%\"*}
  [[ $target == */* ]] || continue  # made by the build, or the text of a kernel
  from=$(room_of "$file") to=$(room_of "$target")
  checked=$((checked + 1))
  if [[ $from-$to != replay/*-reference && -n ${order[$to]:-} ]]; then
    # What is no room (the build's own programs) may look everywhere.
    [[ -z ${order[$from]:-} || ${order[$to]} -le ${order[$from]} ]] && continue
  fi
  echo "$file includes $target: $from may not look into $to"
  complaints=$((complaints + 1))
done < <(grep -rnE '^#include "' --include='*.h' --include='*.cpp' ops harness reference replay)
echo "$checked includes, $complaints against the order"
[[ $checked -gt 300 && $complaints -eq 0 ]]
