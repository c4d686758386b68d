#!/usr/bin/env bash
# make.sh COMMAND ARGUMENT…: writes and reads data sets for the program, which starts it. What that takes is fetched
# when it is not there yet: the pinned wheel of PyArrow for this Python, into .deps/dataset-<version>.
set -euo pipefail
# shellcheck source=harness/setup/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../setup/setup.sh"

command -v python3 >/dev/null || fail "no python3, which writes data sets"
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wheel_python=$version alone provide_list wheels-dataset.txt "dataset-$version" >&2
cd "$root/harness"  # python3 -m looks for modules here first, not where the user happens to be
export PYTHONPATH=$deps/dataset-$version PYTHONPYCACHEPREFIX=$deps/pycache
exec python3 -s -m dataset_parquet "$@"
