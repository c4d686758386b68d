#!/usr/bin/env bash
# make.sh FOLDER <DATA: the pages of `rekernel report --html`, which starts it, in an empty folder. What the
# generator needs is fetched when it is not there yet: pinned wheels, into .deps/report.
set -euo pipefail
# shellcheck source=harness/setup/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../setup/setup.sh"

alone provide_list wheels-report.txt report >&2
command -v python3 >/dev/null || fail "no python3, which makes the pages"
cd "$root/harness"  # python3 -m looks for modules here first, not where the user happens to be
export PYTHONPATH=$deps/report PYTHONPYCACHEPREFIX=$deps/pycache
exec python3 -s -m report_html "$@"
