#!/usr/bin/env bash
# What ./run does and in which order, and how it ends. Its set-up and the program are stand-ins that write
# down how they were called; nothing is installed or built here.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
mkdir -p "$sandbox/harness/setup" "$sandbox/build" "$sandbox/bin"
cp "$project/run" "$sandbox/"
{
  # shellcheck disable=SC2016
  echo 'set_up() { :; }; build() { echo "build $*" >>"$CALLS"; }; note() { echo "note: $*"; }'
  echo "root=\$(cd \"\$(dirname \"\${BASH_SOURCE[0]}\")/../..\" && pwd)"
  sed -n '/^offer_to_open()/,/^}/p' "$project/harness/setup/setup.sh"
} >"$sandbox/harness/setup/setup.sh"
cat >"$sandbox/build/rekernel" <<'STAND_IN'
#!/bin/bash
echo "rekernel ${*//$SANDBOX/}" >>"$CALLS"
case $1 in
  reproduce) exit "${REPRODUCE_STATUS:-0}" ;;
  report) echo "${REPORT-/there/index.html}"; exit "${REPORT_STATUS:-0}" ;;
esac
STAND_IN
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "xdg-open $*" >>"$CALLS"\n' >"$sandbox/bin/xdg-open"
chmod +x "$sandbox/build/rekernel" "$sandbox/bin/xdg-open"
export CALLS=$sandbox/calls SANDBOX=$sandbox

# expect STATUS CALLS OUTPUT ARGUMENTS...: ./run ARGUMENTS ends with the status after these calls.
expect() {
  local expected_status=$1 expected_calls=$2 expected_output=$3 status=0 output
  shift 3
  rm -f "$CALLS"
  output=$(PATH="$sandbox/bin:$PATH" "$sandbox/run" "$@" 2>&1 </dev/null) || status=$?
  if [[ $status -ne $expected_status || $(<"$CALLS") != "$expected_calls" ||
    $output != "$expected_output" ]]; then
    printf 'run %s: expected status %s, calls\n%s\nand output\n%s\ngot status %s, calls\n%s\nand output\n%s\n' \
      "$*" "$expected_status" "$expected_calls" "$expected_output" "$status" "$(<"$CALLS")" "$output"
    exit 1
  fi
}

named=$'\nThe report: /there/index.html'
all='build release rekernel
rekernel reproduce
rekernel report --html /build/report'
expect 0 "$all" "$named"
# A verdict that failed is the status, with a report all the same.
REPRODUCE_STATUS=1 expect 1 "$all" "$named"
# A report with something left out is one; that none can be made is no failure.
REPORT_STATUS=2 expect 0 "$all" "$named"
REPORT='' REPORT_STATUS=2 expect 0 "$all" 'note: no report could be made (above); the table does not need it'
# For programs, and where there is nothing to show, no report is made.
expect 0 'build release rekernel
rekernel reproduce --json' '' --json
REPRODUCE_STATUS=2 expect 2 'build release rekernel
rekernel reproduce --wrong' '' --wrong

# On a desktop, on a terminal, whoever says yes gets a browser.
command -v script >/dev/null || { echo 'script(1) is not installed: its part is left out' && exit 0; }
for answer in y n; do
  rm -f "$CALLS"
  printf '%s\n' "$answer" | DISPLAY=:0 PATH="$sandbox/bin:$PATH" script -qec "$sandbox/run" /dev/null >/dev/null
  opened=$(grep -c '^xdg-open /there/index.html$' "$CALLS") || true
  [[ $opened -eq $([[ $answer == y ]] && echo 1 || echo 0) ]] || { echo "answer $answer: opened $opened times" && exit 1; }
done
