#!/usr/bin/env bash
# Builds what REKERNEL_STATIC links and Debian has no usable static library of, into .deps/static: libcurl with
# HTTP and TLS alone, and Google Benchmark. The sources are Debian 12's own, which apt fetches and whose
# signatures it checks. For the release, on Debian 12; needs root or sudo for what apt lacks.
set -euo pipefail
# shellcheck source=harness/setup/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

sources=$deps/sources prefix=$deps/static log=$deps/log/static.log
apt_of_sources=(-o "Dir::Etc::sourcelist=$sources/list" -o Dir::Etc::sourceparts=-
  -o "Dir::State::Lists=$sources/lists" -o Dir::Cache::srcpkgcache= -o Dir::Cache::pkgcache=
  -o APT::Sandbox::User=root)

# Fetches and unpacks the source package $1, and prints the folder.
unpack() {
  (cd "$sources" && apt-get "${apt_of_sources[@]}" source -qq "$1") >>"$log" 2>&1 ||
    fail "apt-get could not fetch the source of $1: $(last_complaint "$log") (log: $log)"
  find "$sources" -mindepth 1 -maxdepth 1 -type d -name "$1-*"
}

# build_static FOLDER CMAKE_OPTIONS...: configures, builds and installs.
build_static() {
  local folder=$1
  shift
  { cmake -S "$folder" -B "$folder/build-static" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX="$prefix.new" \
    -DCMAKE_INSTALL_LIBDIR=lib "$@" && cmake --build "$folder/build-static" --target install; } >>"$log" 2>&1 ||
    fail "$(basename "$folder") does not build: $(last_complaint "$log") (log: $log)"
}

[[ ! -e $prefix/complete ]] || exit 0
[[ $(distribution) == debian:12 ]] || fail "static libraries are built on Debian 12, not $(distribution)"
install_packages cmake ninja-build g++ dpkg-dev libssl-dev
rm -rf "$sources" "$prefix" "$prefix.new"
mkdir -p "$sources/lists/partial" "$deps/log"
: >"$log"
key=signed-by=/usr/share/keyrings/debian-archive-keyring.gpg
cat >"$sources/list" <<LIST
deb-src [$key] http://deb.debian.org/debian bookworm main
deb-src [$key] http://deb.debian.org/debian-security bookworm-security main
LIST
apt-get "${apt_of_sources[@]}" update -qq >>"$log" 2>&1 ||
  fail "apt-get update failed: $(last_complaint "$log") (log: $log)"

benchmark=$(unpack benchmark)
# Debian takes the version from Git out, and leaves the name of what it came from.
build_static "$benchmark" -DGIT_VERSION=0.0.0 -DBENCHMARK_ENABLE_TESTING=OFF -DBENCHMARK_ENABLE_WERROR=OFF
curl=$(unpack curl)
# Where most systems keep the certificates that they trust; --ca-file names another place.
build_static "$curl" -DBUILD_CURL_EXE=OFF -DHTTP_ONLY=ON -DCURL_USE_OPENSSL=ON -DCURL_USE_LIBSSH2=OFF \
  -DCURL_USE_LIBPSL=OFF -DUSE_LIBIDN2=OFF -DUSE_NGHTTP2=OFF -DCURL_ZLIB=OFF -DCURL_BROTLI=OFF \
  -DCURL_ZSTD=OFF -DENABLE_MANUAL=OFF -DCURL_CA_BUNDLE=/etc/ssl/certs/ca-certificates.crt \
  -DCURL_CA_PATH=/etc/ssl/certs
touch "$prefix.new/complete"
mv "$prefix.new" "$prefix"
# A package's own configuration may name the folder that it was installed to.
{ grep -rlF "$prefix.new" "$prefix" --include='*.cmake' || true; } | xargs -r sed -i "s|$prefix.new|$prefix|g"
