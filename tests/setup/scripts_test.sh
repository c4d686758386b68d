#!/usr/bin/env bash
# Every shell script parses, and is executable if it is a command. workflows.checks shows them to shellcheck.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

commands=(run test .ci/run .github/*.sh harness/report_html/make.sh harness/setup/{release,static-libraries}.sh
  tests/*/*_test.sh tests/*/*/*_test.sh tests/harness/jobs/slurm_cluster.sh)
for script in "${commands[@]}" harness/setup/setup.sh; do
  bash -n "$script"
done
for script in "${commands[@]}"; do
  [[ -x $script ]] || { echo "$script is not executable" && exit 1; }
done

# A pin without a hash, or named twice, would let something else be installed.
for list in harness/setup/wheels-*.txt; do
  if grep -vE '^#|^[a-z0-9-]+==[0-9a-z.]+ --hash=sha256:[0-9a-f]{64}( --hash=sha256:[0-9a-f]{64})*$' "$list"; then
    echo "$list: the lines above are not NAME==VERSION --hash=sha256:…" && exit 1
  fi
  repeated=$(sed -n 's/==.*//p' "$list" | sort | uniq -d)
  [[ -z $repeated ]] || { echo "$list: more than one line for $repeated" && exit 1; }
done
