# Set-up shared by ./run, ./test and the report; sourced, never run. Everything that is missing is
# installed: system packages by apt, CUDA headers and libraries (and, where the distribution has none,
# Boost) from pinned wheels into .deps, and what makes the report's pages as well, once they are made.
# What the machine already has is used as it is.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=$root/.deps
lists=$root/harness/setup

note() { printf 'set-up: %s\n' "$*"; }
fail() {
  printf 'set-up: error: %s\n' "$*" >&2
  exit 2
}

# --- What kind of machine is this? ---------------------------------------------------------------

# "debian:12", "ubuntu:24.04"; "unknown:" on a system without os-release.
distribution() {
  (
    ID=unknown VERSION_ID=
    # shellcheck disable=SC1091
    [[ -r /etc/os-release ]] && source /etc/os-release
    printf '%s:%s\n' "$ID" "$VERSION_ID"
  )
}

# The NVIDIA driver's version where there is a GPU, else nothing.
driver_version() {
  local version
  version=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) ||
    version=
  if [[ ! $version =~ ^[0-9]+\. && -e /dev/nvidia0 && -r /proc/driver/nvidia/version ]]; then
    version=$(grep -oE -m 1 '[0-9]{3,}\.[0-9.]+' /proc/driver/nvidia/version | head -n 1) || version=
  fi
  if [[ $version =~ ^[0-9]+\. ]]; then printf '%s\n' "$version"; fi
}

# The newest CUDA major version that this machine can run; without a GPU, the one that we pin first.
# CUDA 13 needs driver 580; every later 12.x runs on a driver for 12.0.
supported_cuda_major() {
  local version=$1
  if [[ -n $version && ${version%%.*} -lt 580 ]]; then echo 12; else echo 13; fi
}

# --- System packages -----------------------------------------------------------------------------

# The packages that `$1` (run or test) needs, in the distribution's names.
system_packages() {
  local purpose=$1 system
  system=$(distribution)
  local packages=(cmake ninja-build libbenchmark-dev libssl-dev libcurl4-openssl-dev libsqlite3-dev)
  case $system in
    debian:12) packages+=(g++ libboost-json1.81-dev libboost-program-options1.81-dev) ;;
    ubuntu:22.04) packages+=(g++-12) ;;  # its Boost predates Boost.JSON: see set_up
    *) packages+=(g++ libboost-json-dev libboost-program-options-dev) ;;
  esac
  if [[ $purpose == test ]]; then
    packages+=(libgtest-dev)
    case $system in  # one version everywhere, since layouts and diagnostics differ between versions
      debian:12 | ubuntu:22.04 | ubuntu:24.04) packages+=(clang-format-14 clang-tidy-14) ;;
    esac
  fi
  printf '%s\n' "${packages[@]}"
}

# Tools count as installed wherever they come from; libraries only as packages.
is_installed() {
  local package=$1 status
  case $package in
    cmake | g++ | g++-12 | clang-format-14 | clang-tidy-14)
      command -v "$package" >/dev/null && return 0 ;;
    ninja-build) command -v ninja >/dev/null && return 0 ;;
    bubblewrap) command -v bwrap >/dev/null && return 0 ;;
    python3-pip) pip_python >/dev/null && return 0 ;;
    chromium-headless-shell) command -v chromium-headless-shell chromium >/dev/null && return 0 ;;
  esac
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) || return 1
  [[ $status == 'install ok installed' ]]
}

install_packages() {
  local package missing=() as_root=() log=$deps/log/apt.log
  for package in "$@"; do
    is_installed "$package" || missing+=("$package")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  command -v apt-get >/dev/null ||
    fail "missing ${missing[*]} (Debian's names), and there is no apt-get to install them with"
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      fail "missing ${missing[*]}; neither root nor sudo here: as root, apt-get install ${missing[*]}"
    as_root=(sudo)
    # A password can be asked for only where somebody can type it.
    [[ -t 0 ]] || as_root+=(-n)
    as_root+=(env)
  else
    as_root=(env)
  fi
  as_root+=(DEBIAN_FRONTEND=noninteractive)

  note "installing by apt: ${missing[*]}"
  mkdir -p "$deps/log"
  {
    "${as_root[@]}" apt-get update -qq -o DPkg::Lock::Timeout=300 &&
      "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
        -o DPkg::Lock::Timeout=300 "${missing[@]}"
  } >"$log" 2>&1 </dev/null ||
    fail "apt-get could not install ${missing[*]}: $(last_complaint "$log") (log: $log)"
}

# Installs package $1 where that is easily done, else says what is lost ($2). Tried once; nobody is asked
# for a password for it.
install_optional() {
  local package=$1 tried=$deps/log/$1.tried
  if is_installed "$package" || [[ -e $tried ]]; then return; fi
  mkdir -p "$deps/log"
  touch "$tried"
  (install_packages "$package") >/dev/null 2>&1 </dev/null || note "no $package: $2"
}

# The last line of a log that reads like an error, else its last line. Without a connection, pip ends
# with not having found the package; what broke the connection stands before that.
last_complaint() {
  local line cause
  line=$(grep -E '^(E:|ERROR:|error:|sudo:)' "$1" | tail -n 1) || line=
  cause=$(sed -nE "s/^.*after connection broken by '(.*)': .*$/\1/p" "$1" | tail -n 1 |
    sed -E "s/^.*(certificate verify failed: [^('\"]*[^(' \"]).*$/\1 (PIP_CERT can name a file of certificates)/
            s/^.*(Failed to establish a new connection: [^'\"]*)['\"].*$/\1/")
  if [[ -n $cause && $line == *'No matching distribution'* ]]; then line=$cause; fi
  [[ -n $line ]] || line=$(tail -n 1 "$1")
  printf '%s\n' "${line:-no output}"
}

# --- Pinned wheels -------------------------------------------------------------------------------

# A Python that has pip.
pip_python() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -m pip --version >/dev/null 2>&1 && printf '%s\n' "$python" && return 0
  done
  return 1
}

# Makes folder $1 hold exactly the pinned wheels that follow (lines of a wheel list), all of them or
# none. They are downloaded for a fixed Python, whichever fetches them: of most, only headers and shared
# libraries are used, and those that are imported work with every Python. `wheel_python` names another one, for
# those that do not.
provide_wheels() {
  local folder=$1 wanted names python wheel log=$deps/log/pip.log
  shift
  if [[ $# -eq 0 ]]; then
    rm -rf "$folder"
    return
  fi
  wanted=$(printf '%s\n' "$@")
  names=${*%% --hash=*}
  [[ -r $folder/requirements.txt && $(<"$folder/requirements.txt") == "$wanted" ]] && return 0

  [[ $(uname -m) == x86_64 ]] ||
    fail "missing $names, and the pinned wheels are for x86_64 only, not $(uname -m)"
  install_packages ca-certificates python3 python3-pip
  python=$(pip_python) || fail "no python3 with pip (tried python3 and /usr/bin/python3)"
  note "fetching from the Python package index: $names"

  local scratch=$deps/scratch
  rm -rf "$scratch"
  mkdir -p "$scratch/tree" "$deps/log"
  printf '%s\n' "$wanted" >"$scratch/tree/requirements.txt"
  "$python" -m pip download --require-hashes --no-deps --no-cache-dir --only-binary=:all: \
    --progress-bar off --implementation cp --python-version "${wheel_python:-3.12}" \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
    --platform manylinux_2_25_x86_64 --platform manylinux2014_x86_64 --platform manylinux2010_x86_64 \
    --requirement "$scratch/tree/requirements.txt" --dest "$scratch/wheels" >"$log" 2>&1 </dev/null ||
    fail "pip could not fetch $names: $(last_complaint "$log") (log: $log)"
  for wheel in "$scratch"/wheels/*.whl; do
    "$python" -m zipfile -e "$wheel" "$scratch/tree" >>"$log" 2>&1 ||
      fail "cannot unpack $(basename "$wheel") into $deps: $(last_complaint "$log") (log: $log)"
    rm "$wheel"
  done
  gather_cuda12_headers "$scratch/tree/nvidia"
  rm -rf "$folder"
  mv "$scratch/tree" "$folder"
  rm -rf "$scratch"
}

# CUDA 12's wheels spread over one include folder each what a toolkit, and CUDA 13's wheels, hold in
# one, and the headers include each other across them. Libraries stay: they find each other there.
gather_cuda12_headers() {
  local part
  for part in "$1"/cuda_*/include; do
    [[ -d $part ]] || continue
    mkdir -p "$1/cu12/include"
    cp -al "$part/." "$1/cu12/include/"
  done
}

# --- CUDA ----------------------------------------------------------------------------------------

# CUDA_VERSION of a toolkit folder ("13000"), or nothing.
toolkit_version() {
  grep -oE -m 1 '^#define CUDA_VERSION [0-9]+' "$1/include/cuda.h" 2>/dev/null | grep -oE '[0-9]+$' || true
}

# Does the toolkit in folder $1 hold NVRTC and all headers that kernels include, for CUDA major $2?
has_toolkit() {
  local folder=$1 major=$2 version header
  version=$(toolkit_version "$folder")
  [[ -n $version && $((version / 1000)) -eq $major && $version -ge 12040 ]] || return 1
  for header in nvrtc.h cuda_fp16.h mma.h crt/mma.h cooperative_groups.h; do
    [[ -e $folder/include/$header ]] || return 1
  done
  [[ -e $folder/include/cuda/barrier || -e $folder/include/cccl/cuda/barrier ]] || return 1
  [[ -e $folder/lib64/libnvrtc.so.$major || -e $folder/lib/libnvrtc.so.$major ]]
}

# Is header $2 in the toolkit folder $1 or in the system's, with shared library $3 beside it?
has_library() {
  local folder=$1 header=$2 library=$3 place
  for place in "$folder/include" /usr/include /usr/include/x86_64-linux-gnu; do
    if [[ -e $place/$header ]]; then
      [[ -e $folder/lib64/$library || -e $folder/lib/$library ]] && return 0
      ldconfig -p 2>/dev/null | grep -q "^[[:space:]]*$library " && return 0
    fi
  done
  return 1
}

# Are CUPTI's headers there? Toolkits keep it in a folder of its own.
has_cupti() {
  [[ -e $1/extras/CUPTI/include/cupti.h ]] || has_library "$1" cupti.h "libcupti.so.$2"
}

# Lines of wheel list $1 whose package name is $2 (an extended regular expression).
wheel_lines() { grep -E "^($2)==" "$lists/$1"; }

# Prints the lines of the wheel list for what this machine's CUDA installation lacks. A toolkit that
# the driver cannot run counts as missing, and so does everything that goes with it.
missing_cuda_wheels() {
  local major=$1 toolkit=${CUDA_HOME:-/usr/local/cuda} list
  if ! has_toolkit "$toolkit" "$major" && [[ $major -eq 13 ]] && has_toolkit "$toolkit" 12; then
    major=12
  fi
  list=wheels-cu$major.txt
  if ! has_toolkit "$toolkit" "$major"; then
    grep -E '^[a-z]' "$lists/$list"
    return
  fi
  has_library "$toolkit" cublas_v2.h "libcublas.so.$major" || wheel_lines "$list" 'nvidia-cublas.*'
  has_library "$toolkit" cudnn.h libcudnn.so.9 || wheel_lines "$list" 'nvidia-cudnn.*'
  has_library "$toolkit" nvJitLink.h "libnvJitLink.so.$major" ||
    wheel_lines "$list" 'nvidia-nvjitlink.*'
  has_cupti "$toolkit" "$major" || wheel_lines "$list" 'nvidia-cuda-cupti.*'
}

# --- The steps of ./run and ./test ---------------------------------------------------------------

# Runs the command while no other does this: two set-ups at once wait for each other.
alone() {
  local lock
  mkdir -p "$deps" || fail "cannot write to $root"
  exec {lock}>"$deps/lock"
  flock "$lock"
  "$@"
  exec {lock}>&-
}

# The wheels of list $1, in the folder $2 below .deps.
provide_list() {
  local wheels
  mapfile -t wheels < <(grep -E '^[a-z]' "$lists/$1")
  provide_wheels "$deps/$2" "${wheels[@]}"
}

# Installs what `$1` (run or test) needs and sets `driver` (empty without a GPU).
set_up() { alone set_up_alone "$1"; }

set_up_alone() {
  local purpose=$1 packages wheels
  driver=$(driver_version)
  mapfile -t packages < <(system_packages "$purpose")
  install_packages "${packages[@]}"
  install_optional bubblewrap 'candidates run under limits, without a sandbox'
  mapfile -t wheels < <(missing_cuda_wheels "$(supported_cuda_major "$driver")")
  provide_wheels "$deps/python" "${wheels[@]}"
  wheels=()
  if [[ $(distribution) == ubuntu:22.04 ]]; then  # GCC 11 and a Boost without Boost.JSON
    mapfile -t wheels < <(wheel_lines wheels-boost.txt cmeel-boost)
    export CXX=${CXX:-g++-12}
  fi
  provide_wheels "$deps/boost" "${wheels[@]}"
  if [[ $purpose == test ]]; then
    install_optional chromium-headless-shell 'the report is not tested in a browser'
    local package
    for package in munge slurmctld slurmd slurm-client; do
      install_optional "$package" 'searches are not tested on a Slurm cluster'
    done
  fi
}

# Asks whether page $1 shall be opened, where there is a desktop and somebody to ask.
offer_to_open() {
  local answer
  [[ -t 0 && -t 1 && -n ${DISPLAY:-}${WAYLAND_DISPLAY:-} ]] || return 0
  command -v xdg-open >/dev/null || return 0
  read -r -p 'Open it in the browser? [y/N] ' answer || return 0
  [[ $answer != [yY]* ]] || xdg-open "$1" >/dev/null 2>&1 || note "xdg-open could not open it"
}

# Configures preset $1 and builds the targets that follow, or everything.
build() {
  local preset=$1 log=$deps/log/configure-$1.log
  shift
  mkdir -p "$deps/log"
  (cd "$root" && cmake --preset "$preset") >"$log" 2>&1 ||
    { cat "$log" >&2 && fail "CMake could not configure the preset $preset (above; log: $log)"; }
  (cd "$root" && cmake --build --preset "$preset" ${1:+--target "$@"}) ||
    fail "the build failed (above)"
}
