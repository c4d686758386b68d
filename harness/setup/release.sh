#!/usr/bin/env bash
# release.sh FOLDER: builds the program for other machines into FOLDER, on Debian 12: the program, the recorder
# that `capture` looks for beside it, the Python package as a wheel, a second wheel with both programs and the problems
# in it, and their checksums. Only the C library stays outside of the programs, so that they run on Debian 12 and on
# whatever is newer; CUDA's libraries are opened where they are.
set -euo pipefail
# shellcheck source=harness/setup/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
[[ $# -eq 1 ]] || fail 'usage: release.sh FOLDER'

set_up run
"$root/harness/setup/static-libraries.sh"
log=$deps/log/release.log
{ cmake -S "$root" -B "$root/build/release" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF \
  -DREKERNEL_STATIC=ON && cmake --build "$root/build/release" --target rekernel; } >"$log" 2>&1 ||
  { tail -n 20 "$log" >&2 && fail "the build failed (above; log: $log)"; }

program=$root/build/release/rekernel
version=$("$program" --version | sed -n 1p)
mkdir -p "$1"
name=rekernel-${version#rekernel }-linux-x86_64
recorder=librekernel_recorder.so
[[ -e $root/build/release/$recorder ]] || fail 'the recorder was not built: CUPTI has no headers here (cupti.h)'
strip -o "$1/$name" "$program"
strip --strip-unneeded -o "$1/$recorder" "$root/build/release/$recorder"
for file in "$name" "$recorder"; do
  outside=$(ldd "$1/$file" | awk '{print $1}' | grep -vE '^(linux-vdso|libc|libm|libdl|libpthread|librt)\.so|^/lib64/ld-linux') || true
  [[ -z $outside ]] || fail "$file needs $outside"
done

# The client of `rekernel serve`, from a copy: setuptools leaves folders where it builds.
install_packages python3 python3-pip
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
cp -r "$root/harness/python" "$package/python"
python=$(pip_python) || fail 'no python3 with pip (tried python3 and /usr/bin/python3)'
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$1" "$package/python" >>"$log" 2>&1 ||
  fail "the Python package does not build: $(last_complaint "$log") (log: $log)"
wheel=rekernel-${version#rekernel }-py3-none-any.whl
[[ -e $1/$wheel ]] || fail "expected the wheel $wheel: harness/python/pyproject.toml and CMakeLists.txt differ in version"
whole=$("$python" "$lists/platform_wheel.py" "$1/$wheel" "$1/$name" "$1/$recorder" "$root" "$1")
whole=${whole##*/}
(cd "$1" && sha256sum "$name" "$recorder" "$wheel" "$whole" >SHA256SUMS)
note "made $1/$name, $1/$recorder, $1/$wheel and $1/$whole"
