#!/usr/bin/env bash
# try-release.sh FOLDER ROOT: whether a release runs in ROOT, a system as debootstrap makes it, where nothing
# was installed. Needs root or sudo.
set -euo pipefail
release=$1 root=$2
as_root=()
[[ $(id -u) -eq 0 ]] || as_root=(sudo)

(cd "$release" && sha256sum --check --quiet SHA256SUMS)
"${as_root[@]}" install -D -m 755 "$release"/rekernel-*-linux-x86_64 "$root/usr/local/bin/rekernel"
"${as_root[@]}" install -m 644 "$release/librekernel_recorder.so" "$root/usr/local/bin/"
"${as_root[@]}" mkdir -p "$root/project/results"
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for folder in generated trajectories; do
  "${as_root[@]}" cp -r "$project/$folder" "$root/project/"
done
"${as_root[@]}" cp -r "$project/results/." "$root/project/results/"

# expect TEXT ARGUMENTS...: the program runs there, and its output has the text.
expect() {
  local text=$1 output
  shift
  output=$("${as_root[@]}" chroot "$root" /bin/sh -c 'cd /project && exec rekernel "$@"' rekernel "$@" 2>&1) ||
    { printf '%s\nrekernel %s failed\n' "$output" "$*" && exit 1; }
  [[ $output == *"$text"* ]] || { printf '%s\nrekernel %s: no "%s"\n' "$output" "$*" "$text" && exit 1; }
}
expect 'rekernel ' --version
expect 'cluster_with_prefetch' list
expect 'byte for byte' replay softmax
expect '| problem | kernel |' report --markdown
expect '--to cpp|pytorch' export --help
# Where no compiler is, the status is 1.
found=$("${as_root[@]}" chroot "$root" /usr/local/bin/rekernel doctor --json) || true
[[ $found == *'"/usr/local/bin/librekernel_recorder.so"'* ]] ||
  { printf '%s\nrekernel doctor finds no recorder\n' "$found" && exit 1; }
echo "runs in $root"
