#!/bin/sh
# Builds bitcoind of Bitcoin Core into the directory $1, from package registries alone.
#
# The source is what the crates.io package libbitcoinkernel-sys vendors; cmake and ninja come from PyPI, the headers
# of Boost from Debian. Each is pinned and checked by its hash. Needed: a C++20 compiler, cargo, python3 with pip and,
# where Boost is not installed, apt-get and dpkg. Nothing outside $1 is written but caches of cargo and pip.
# BITCOIND_JOBS is how many compilers run at once.
set -eu

out=$1
work=$out/work
mkdir -p "$work"
cd "$work"

say() {
  printf '%s\n' "$*" >&2
}

# check FILE SHA256
check() {
  printf '%s  %s\n' "$2" "$1" | sha256sum --check --quiet - || {
    say "$1 is not the pinned file"
    exit 1
  }
}

say 'bitcoind: fetching'
# Asking for a package's description downloads the package, and nothing that it depends on.
cargo info --quiet --registry crates-io libbitcoinkernel-sys@0.4.1 >/dev/null
set -- "${CARGO_HOME:-$HOME/.cargo}"/registry/cache/*/libbitcoinkernel-sys-0.4.1.crate
check "$1" 345d18a1ce19a1becfcaaa066e3a60e9c7813ef5c23ea8c20704ca4ba1a46339
tar -xzf "$1"
source=$work/libbitcoinkernel-sys-0.4.1/bitcoin

cat >requirements.txt <<'END'
cmake==4.4.5 \
  --hash=sha256:85625a9b6d5e88ff99c7eb79123d85570844e77ac076366cf75c609cc0b1b579 \
  --hash=sha256:25fc8469e67857124ef10c002331c0ab416eb7b8d9e1d6e4c58e84e730013ece
ninja==1.13.2 \
  --hash=sha256:65a24341b5ac09fcadcc37082660be40a94174e51a937fabf6e2cae26225fa2c \
  --hash=sha256:d775a5e43e9088f507a6250d57fcf5678eb31268c545feb5064ffeee33735622
END
PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
  --target "$work/python" --requirement requirements.txt
# The wheels' own launchers import their package, which stands here alone.
export PYTHONPATH="$work/python"
PATH=$work/python/bin:$PATH

boost=/usr
if ! [ -e /usr/include/boost/version.hpp ]; then
  boost=$work/boost/usr
  # Lists of our own: the machine's may be old or missing, and are not ours to write.
  mkdir -p lists/partial archives/partial
  apt() {
    apt-get -qq -o APT::Sandbox::User=root -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/archives" "$@"
  }
  apt update
  apt download libboost1.74-dev=1.74.0+ds1-21
  set -- libboost1.74-dev_*.deb
  # Other machines' packages are checked by apt alone, against Debian's signed lists.
  case $1 in
    *_amd64.deb) check "$1" ba14fe04d7f138f874bd3ab3a20c4fd1e9f654e271449b8f3e48d20f942dbb93 ;;
  esac
  dpkg -x "$1" "$work/boost"
fi

# Ten sources are compiled as one, which takes a quarter of the time. Two are left alone: they and others give one name to
# two things.
cat >unity.cmake <<'END'
cmake_language(EVAL CODE "cmake_language(DEFER CALL set_source_files_properties
  \"${CMAKE_SOURCE_DIR}/src/node/chainstate.cpp\" \"${CMAKE_SOURCE_DIR}/src/index/coinstatsindex.cpp\"
  DIRECTORY src PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)")
END
say 'bitcoind: building, once (3 to 8 minutes)'
cmake -G Ninja -S "$source" -B "$work/build" \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_PREFIX_PATH="$boost" \
  -DENABLE_WALLET=OFF -DENABLE_IPC=OFF -DENABLE_EXTERNAL_SIGNER=OFF -DWITH_EMBEDDED_ASMAP=OFF -DWITH_CCACHE=OFF \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=10 -DCMAKE_PROJECT_BitcoinCore_INCLUDE="$work/unity.cmake" \
  -DBUILD_TESTS=OFF -DBUILD_TX=OFF -DBUILD_UTIL=OFF -DBUILD_BITCOIN_BIN=OFF -DBUILD_CLI=OFF -DINSTALL_MAN=OFF \
  >configured.txt
ninja -C "$work/build" -j "${BITCOIND_JOBS:-$(nproc)}" bitcoind >built.txt || {
  tail -n 40 built.txt >&2
  exit 1
}
strip -o "$out/bitcoind" "$work/build/bin/bitcoind"
cd "$out"
"$out/bitcoind" -version >/dev/null
rm -rf "$work"
