#!/usr/bin/env bash
# comment.sh FOLDER: posts FOLDER/comment.md on the pull request FOLDER/number, in place of an earlier one.
# Both files come out of a run that may have been a fork's: they are data, and are checked. From the
# environment: GH_TOKEN, REPOSITORY, and the run's EVENT and HEAD_SHA.
set -euo pipefail

most_bytes=60000
marker='<!-- rekernel-verify -->'

refuse() {
  printf 'nothing is posted: %s\n' "$*" >&2
  exit 1
}

folder=$1
if [[ ! -e $folder/comment.md ]]; then
  echo 'the run left no comment'
  exit 0
fi
for file in "$folder/comment.md" "$folder/number"; do
  [[ -f $file && ! -L $file ]] || refuse "$(basename "$file") is no regular file"
done
number=$(head -c 20 "$folder/number")
[[ $number =~ ^[1-9][0-9]{0,9}$ ]] || refuse 'the number of the pull request is none'
[[ $(stat -c %s "$folder/comment.md") -le $most_bytes ]] || refuse "the text has more than $most_bytes bytes"
[[ $(head -n 1 "$folder/comment.md") == "$marker" ]] || refuse "the text does not begin with $marker"

head=$(gh api "repos/$REPOSITORY/pulls/$number" --jq .head.sha) || refuse "there is no pull request $number"
# A run for pull_request can write any number. One for pull_request_target is the main branch's own.
[[ $EVENT == pull_request_target || $head == "$HEAD_SHA" ]] ||
  refuse "the run is not of the present commit of pull request $number"

# Nobody is called by a text of somebody else's: a space without width ends what would be a name.
text=$(mktemp)
trap 'rm -f "$text"' EXIT
sed 's/@/@\xe2\x80\x8b/g' "$folder/comment.md" >"$text"

earlier=$(gh api --paginate "repos/$REPOSITORY/issues/$number/comments" --jq \
  ".[] | select(.user.login == \"github-actions[bot]\" and (.body | startswith(\"$marker\"))) | .id" | tail -n 1)
if [[ -n $earlier ]]; then
  gh api --silent --method PATCH "repos/$REPOSITORY/issues/comments/$earlier" --field "body=@$text"
else
  gh api --silent --method POST "repos/$REPOSITORY/issues/$number/comments" --field "body=@$text"
fi
