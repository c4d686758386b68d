#!/usr/bin/env bash
# comment.sh FOLDER: posts FOLDER/comment.md on the pull request FOLDER/number, if FOLDER/commit is still its
# head, in place of an earlier comment of the same kind. From the environment: GH_TOKEN, REPOSITORY, and the run's
# EVENT and WORKFLOW_PATH.
#
# Whose text it is, the event and the path say: for pull_request_target a workflow's file is the main branch's own. A
# name says nothing, since a pull request can bring a workflow of any name, and a verify.yml of its own that runs for
# pull_request. The files are data all the same, and are checked.
set -euo pipefail

most_bytes=60000

refuse() {
  printf 'nothing is posted: %s\n' "$*" >&2
  exit 1
}

[[ $EVENT == pull_request_target ]] || refuse "a run for $EVENT, whose workflow can be the pull request's own"
# Each kind has its own comment: what needs no GPU never takes the place of the GPU's verdict.
case ${WORKFLOW_PATH%%@*} in
  .github/workflows/verify.yml) marker='<!-- rekernel-verify -->' ;;
  .github/workflows/gpu.yml) marker='<!-- rekernel-gpu -->' ;;
  *) refuse "a run of $WORKFLOW_PATH, which says nothing here" ;;
esac

folder=$1
if [[ ! -e $folder/comment.md ]]; then
  echo 'the run left no comment'
  exit 0
fi
for file in "$folder/comment.md" "$folder/number" "$folder/commit"; do
  [[ -f $file && ! -L $file ]] || refuse "$(basename "$file") is no regular file"
done
number=$(head -c 20 "$folder/number")
[[ $number =~ ^[1-9][0-9]{0,9}$ ]] || refuse 'the number of the pull request is none'
commit=$(head -c 60 "$folder/commit")
[[ $commit =~ ^[0-9a-f]{40}$ ]] || refuse 'the commit is none'
[[ $(stat -c %s "$folder/comment.md") -le $most_bytes ]] || refuse "the text has more than $most_bytes bytes"
[[ $(grep -c -m 1 "^Commit .*$commit" "$folder/comment.md") -eq 1 ]] ||
  refuse "the text does not say that it is of commit $commit"

head=$(gh api "repos/$REPOSITORY/pulls/$number" --jq .head.sha) || refuse "there is no pull request $number"
if [[ $head != "$commit" ]]; then
  echo "nothing is posted: $commit is no longer the head of pull request $number"
  exit 0
fi

# Nobody is called by a text of somebody else's: a space without width ends what would be a name.
text=$(mktemp)
trap 'rm -f "$text"' EXIT
{
  printf '%s\n' "$marker"
  sed 's/@/@\xe2\x80\x8b/g' "$folder/comment.md"
} >"$text"

earlier=$(gh api --paginate "repos/$REPOSITORY/issues/$number/comments" --jq \
  ".[] | select(.user.login == \"github-actions[bot]\" and (.body | startswith(\"$marker\"))) | .id" | tail -n 1)
if [[ -n $earlier ]]; then
  gh api --silent --method PATCH "repos/$REPOSITORY/issues/comments/$earlier" --field "body=@$text"
else
  gh api --silent --method POST "repos/$REPOSITORY/issues/$number/comments" --field "body=@$text"
fi
