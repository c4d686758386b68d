#!/usr/bin/env bash
# What set-up says when apt, sudo or pip fails: one line that names what is missing, exit status 2, and
# nothing half-installed. Stand-ins for the tools are first in PATH; nothing is installed here.
set -euo pipefail
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
sandbox=$(mktemp -d)
trap 'rm -rf "$sandbox"' EXIT
mkdir -p "$sandbox/harness" "$sandbox/bin"
cp -r "$project/harness/setup" "$sandbox/harness/"

# stand_in NAME BODY: a command that runs BODY.
stand_in() {
  printf '#!/bin/bash\n%s\n' "$2" >"$sandbox/bin/$1"
  chmod +x "$sandbox/bin/$1"
}

# expect_failure MESSAGE COMMAND: set-up's shell functions run COMMAND, which must fail with MESSAGE
# (an extended regular expression) as its only line on standard error.
expect_failure() {
  local status=0 output
  output=$(PATH="$sandbox/bin:$PATH" bash -c "set -euo pipefail
    source '$sandbox/harness/setup/setup.sh'
    $2" 2>&1 >/dev/null </dev/null) || status=$?
  if [[ $status -ne 2 || $(wc -l <<<"$output") -ne 1 || ! $output =~ $1 ]]; then
    printf 'expected status 2 and one line like: %s\ngot status %s and:\n%s\n' "$1" "$status" "$output"
    exit 1
  fi
}

stand_in dpkg-query 'exit 1'
stand_in id 'echo 0'
stand_in apt-get 'echo "E: Unable to locate package libnowhere-dev" >&2; exit 100'
expect_failure 'apt-get could not install libnowhere-dev: E: Unable to locate package libnowhere-dev' \
  'install_packages libnowhere-dev'

# What is optional is tried once, and its failure is no failure.
output=$(PATH="$sandbox/bin:$PATH" bash -c "
  set -euo pipefail
  source '$sandbox/harness/setup/setup.sh'
  install_optional libnowhere-dev 'nothing is lost'
  install_optional libnowhere-dev 'nothing is lost'")
[[ $output == 'set-up: no libnowhere-dev: nothing is lost' ]] || { echo "$output" && exit 1; }

stand_in id 'echo 1000'
stand_in sudo 'echo "sudo: a password is required" >&2; exit 1'
expect_failure 'could not install libnowhere-dev: sudo: a password is required' \
  'install_packages libnowhere-dev'

stand_in dpkg-query 'echo "install ok installed"'
stand_in uname 'echo x86_64'
stand_in python3 '[[ $* == *--version* ]] || { echo "ERROR: No matching distribution" >&2; exit 1; }'
fetch="mapfile -t wheels < <(wheel_lines wheels-cu13.txt nvidia-cudnn-cu13)
  provide_wheels \"\$deps/python\" \"\${wheels[@]}\""
expect_failure 'pip could not fetch nvidia-cudnn-cu13==[0-9.]+: ERROR: No matching' "$fetch"
[[ ! -e $sandbox/.deps/python ]]

# What pip 23 says when it gets no connection: the cause, not that there is no such package.
# broken_by CAUSE: a pip that cannot connect.
broken_by() {
  stand_in python3 "[[ \$* == *--version* ]] || { cat <<'LOG'
WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by '$1': /simple/nvidia-cudnn-cu13/
ERROR: Could not find a version that satisfies the requirement nvidia-cudnn-cu13 (from versions: none)
ERROR: No matching distribution found for nvidia-cudnn-cu13
LOG
exit 1; }"
}
broken_by "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate in certificate chain (_ssl.c:1006)'))"
expect_failure 'cudnn-cu13==[0-9.]+: certificate verify failed: self-signed certificate in certificate chain \(PIP_CERT' "$fetch"
broken_by "NewConnectionError('<HTTPSConnection object at 0x7f>: Failed to establish a new connection: [Errno -2] Name or service not known')"
expect_failure 'cudnn-cu13==[0-9.]+: Failed to establish a new connection: .Errno -2. Name or service not known \(log' "$fetch"
broken_by 'ProtocolError(Connection aborted)'
expect_failure 'cudnn-cu13==[0-9.]+: ProtocolError\(Connection aborted\) \(log' "$fetch"

stand_in uname 'echo aarch64'
expect_failure 'wheels are for x86_64 only, not aarch64' "$fetch"
