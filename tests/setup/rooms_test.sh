#!/usr/bin/env bash
# The folders of harness/ are rooms in an order: a file includes from its own room and from those before
# it. harness/ as a whole includes from ops/ alone, reference/ and replay/ from those two.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

rooms=(ops base problems process gpu candidate compile capture export device evaluation jobs records audit)
declare -A order
for i in "${!rooms[@]}"; do order[${rooms[i]}]=$i; done

# The room of a path, as a word of `rooms`, or the folder that lies above them all.
room_of() {
  local path=$1
  case $path in
    ops/*) echo ops ;;
    harness/*/*) path=${path#harness/}; echo "${path%%/*}" ;;
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
  if [[ -n ${order[$from]:-} ]]; then
    [[ -n ${order[$to]:-} && ${order[$to]} -le ${order[$from]} ]] && continue
  else
    case $from-$to in
      cli-* | reference-reference | replay-replay) continue ;;
      *) [[ -n ${order[$to]:-} ]] && continue ;;
    esac
  fi
  echo "$file includes $target: $from may not look into $to"
  complaints=$((complaints + 1))
done < <(grep -rnE '^#include "' --include='*.h' --include='*.cpp' ops harness reference replay)
echo "$checked includes, $complaints against the order"
[[ $checked -gt 300 && $complaints -eq 0 ]]
