#!/usr/bin/env bash
# .github/comment.sh with a stand-in for gh that writes down what it is asked: what it posts, and what it
# refuses to.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
mkdir -p "$sandbox/bin" "$sandbox/verdict"
commit=$(printf '1%.0s' {1..40})
cat >"$sandbox/bin/gh" <<STAND_IN
#!/bin/bash
case \$* in
  *--method*) echo "\$*" >>"\$CALLS"; all=\$*; cp "\${all##*=@}" "\$CALLS.body" ;;
  *pulls/7*) echo $commit ;;
  *pulls/*) echo 'HTTP 404' >&2; exit 1 ;;
  *comments*) while read -r id login marker; do
      # What --jq selects, as far as the script asks for it.
      [[ \$* == *'"github-actions[bot]"'* && \$login == 'github-actions[bot]' && \$* == *"\$marker"* ]] && echo "\$id"
    done <"\$COMMENTS" || true ;;
esac
STAND_IN
chmod +x "$sandbox/bin/gh"
export CALLS=$sandbox/calls COMMENTS=$sandbox/comments REPOSITORY=us/rekernel
export EVENT=pull_request_target WORKFLOW_PATH=.github/workflows/verify.yml
export PATH="$sandbox/bin:$PATH"

# comments LINES: what is there already, as "id login marker".
comments() { printf '%s' "$1" >"$COMMENTS"; }

# verdict NUMBER TEXT [COMMIT]: what a run left.
verdict() {
  rm -rf "$sandbox/verdict" "$CALLS"*
  mkdir "$sandbox/verdict"
  printf '%s\n' "$1" >"$sandbox/verdict/number"
  printf '%s\n' "$2" >"$sandbox/verdict/comment.md"
  printf '%s\n' "${3-$commit}" >"$sandbox/verdict/commit"
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

# expect_nothing_posted: after an end with status 0.
expect_nothing_posted() { [[ ! -e $CALLS ]] || { echo "something was posted: $(<"$CALLS")" && exit 1; }; }

good="## rekernel verify

Commit \`\` $commit \`\`, onto \`\` 2222 \`\`.

passed, says @somebody"
comments ''
verdict 7 "$good"
expect 0 'api --silent --method POST repos/us/rekernel/issues/7/comments'
[[ $(head -n 1 "$CALLS.body") == '<!-- rekernel-verify -->' ]] || { echo 'no marker' && exit 1; }
grep -q 'says @.*somebody' "$CALLS.body"
if grep -q '@somebody' "$CALLS.body"; then echo 'somebody is called' && exit 1; fi

# Of its own kind, the last comment of the bot is replaced, and nobody else's.
comments '41 github-actions[bot] <!-- rekernel-verify -->
42 github-actions[bot] <!-- rekernel-verify -->
43 somebody <!-- rekernel-verify -->
'
verdict 7 "$good"
expect 0 'api --silent --method PATCH repos/us/rekernel/issues/comments/42'

# The GPU's comment stays where it is, and is replaced by the GPU's alone.
comments '51 github-actions[bot] <!-- rekernel-gpu -->
'
verdict 7 "$good"
expect 0 '--method POST'
verdict 7 "$good"
WORKFLOW_PATH=.github/workflows/gpu.yml@main expect 0 '--method PATCH repos/us/rekernel/issues/comments/51'
[[ $(head -n 1 "$CALLS.body") == '<!-- rekernel-gpu -->' ]] || { echo 'no marker' && exit 1; }
comments ''

# A pull request's own verify.yml runs for pull_request; a workflow of the same name has another path.
verdict 7 "$good"
EVENT=pull_request expect 1 "a run for pull_request, whose workflow can be the pull request's own"
EVENT=push expect 1 'a run for push'
for path in .github/workflows/verify2.yml .github/workflows/checks.yml other/.github/workflows/verify.yml ''; do
  WORKFLOW_PATH=$path expect 1 'which says nothing here'
done

# A commit that is no longer the head, or none, or not the one that the text is of.
verdict 7 "${good//$commit/${commit//1/3}}" "${commit//1/3}"
expect 0 "nothing is posted: ${commit//1/3} is no longer the head of pull request 7"
expect_nothing_posted
verdict 7 "$good" 1111
expect 1 'the commit is none'
verdict 7 "$good" "$commit; id"
expect 1 'the commit is none'
verdict 7 'passed' "$commit"
expect 1 "the text does not say that it is of commit $commit"
verdict 7 "$good"
rm "$sandbox/verdict/commit"
expect 1 'commit is no regular file'

for number in '' 07 '7; id' '7/../8' 99999999999; do
  verdict "$number" "$good"
  expect 1 'the number of the pull request is none'
done
verdict 8 "$good"
expect 1 'there is no pull request 8'
verdict 7 "$good$(head -c 60000 /dev/zero | tr '\0' x)"
expect 1 'more than 60000 bytes'
verdict 7 "$good"
ln -sf /etc/passwd "$sandbox/verdict/comment.md"
expect 1 'comment.md is no regular file'
rm "$sandbox/verdict/comment.md"
expect 0 'the run left no comment'
