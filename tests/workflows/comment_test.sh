#!/usr/bin/env bash
# .github/comment.sh with a stand-in for gh that writes down what it is asked: what it posts, and what it
# refuses to.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
mkdir -p "$sandbox/bin" "$sandbox/verdict"
cat >"$sandbox/bin/gh" <<'STAND_IN'
#!/bin/bash
case $* in
  *--method*) echo "$*" >>"$CALLS"; all=$*; cp "${all##*=@}" "$CALLS.body" ;;
  *pulls/7*) echo 1111 ;;
  *pulls/*) echo 'HTTP 404' >&2; exit 1 ;;
  *comments*) printf '%s' "$EARLIER" ;;
esac
STAND_IN
chmod +x "$sandbox/bin/gh"
export CALLS=$sandbox/calls EARLIER='' REPOSITORY=us/rekernel EVENT=pull_request HEAD_SHA=1111
export PATH="$sandbox/bin:$PATH"

# verdict NUMBER TEXT: what a run left.
verdict() {
  rm -rf "$sandbox/verdict" "$CALLS"*
  mkdir "$sandbox/verdict"
  printf '%s\n' "$1" >"$sandbox/verdict/number"
  printf '%s\n' "$2" >"$sandbox/verdict/comment.md"
}

# expect STATUS TEXT: the script ends so, and says or calls gh with the text.
expect() {
  local status=0 output
  output=$("$project/.github/comment.sh" "$sandbox/verdict" 2>&1) || status=$?
  [[ ! -e $CALLS ]] || output+=$(<"$CALLS")
  if [[ $status -ne $1 || $output != *"$2"* ]]; then
    printf 'expected status %s and "%s", got %s and:\n%s\n' "$1" "$2" "$status" "$output"
    exit 1
  fi
  [[ $status -eq 0 || ! -e $CALLS ]] || { echo "something was posted: $(<"$CALLS")" && exit 1; }
}

good='<!-- rekernel-verify -->
passed, says @somebody'
verdict 7 "$good"
expect 0 'api --silent --method POST repos/us/rekernel/issues/7/comments'
grep -q 'says @.*somebody' "$CALLS.body"
if grep -q '@somebody' "$CALLS.body"; then echo 'somebody is called' && exit 1; fi
EARLIER=$'41\n42\n'
verdict 7 "$good"
expect 0 'api --silent --method PATCH repos/us/rekernel/issues/comments/42'
HEAD_SHA=2222
verdict 7 "$good"
expect 1 'not of the present commit of pull request 7'
EVENT=pull_request_target expect 0 'PATCH'
HEAD_SHA=1111
for number in '' 07 '7; id' '7/../8' 99999999999; do
  verdict "$number" "$good"
  expect 1 'the number of the pull request is none'
done
verdict 8 "$good"
expect 1 'there is no pull request 8'
verdict 7 'no marker'
expect 1 'does not begin with <!-- rekernel-verify -->'
verdict 7 "$good$(head -c 60000 /dev/zero | tr '\0' x)"
expect 1 'more than 60000 bytes'
verdict 7 "$good"
ln -sf /etc/passwd "$sandbox/verdict/comment.md"
expect 1 'comment.md is no regular file'
rm "$sandbox/verdict/comment.md"
expect 0 'the run left no comment'
