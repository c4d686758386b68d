#!/usr/bin/env bash
# What ./test builds and runs, and in which order. Its set-up and ctest are stand-ins that write down how
# they were called; nothing is installed, built or tested here.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
mkdir -p "$sandbox/harness/setup" "$sandbox/bin"
cp "$project/test" "$sandbox/"
cat >"$sandbox/harness/setup/setup.sh" <<'STAND_IN'
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
note() { :; }
set_up() { driver=$GPU_DRIVER; }
build() { echo "build $*" >>"$CALLS"; }
STAND_IN
# shellcheck disable=SC2016
printf '#!/bin/bash\necho "ctest $*" >>"$CALLS"\nexit "${CTEST_STATUS:-0}"\n' >"$sandbox/bin/ctest"
chmod +x "$sandbox/bin/ctest"
export CALLS=$sandbox/calls
normal="ctest --test-dir $sandbox/build/ci --output-on-failure --parallel $(($(nproc) + 2))"
sanitized="ctest --preset asan --parallel $(($(nproc) + 2))"

# expect DRIVER STATUS CALLS ARGUMENTS...: ./test ARGUMENTS ends with the status after these calls.
expect() {
  local driver=$1 expected_status=$2 expected_calls=$3 status=0
  shift 3
  rm -f "$CALLS"
  GPU_DRIVER=$driver PATH="$sandbox/bin:$PATH" "$sandbox/test" "$@" || status=$?
  if [[ $status -ne $expected_status || $(<"$CALLS") != "$expected_calls" ]]; then
    printf 'test %s: expected status %s and\n%s\ngot status %s and\n%s\n' "$*" "$expected_status" \
      "$expected_calls" "$status" "$(<"$CALLS")"
    exit 1
  fi
}

expect '' 0 "build ci
$normal --label-exclude ^gpu\$
build asan
$sanitized"
expect 580.1 0 "build ci
$normal
build asan
$sanitized"
expect 580.1 0 "build ci
$normal -R softmax" -R softmax
# A failure is not hidden by what comes after it.
CTEST_STATUS=8 expect 580.1 8 "build ci
$normal"
