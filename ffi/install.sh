#!/usr/bin/env bash
# Builds the C library and installs it with its headers, pkg-config file and CMake package.
#
#   ffi/install.sh [PREFIX]     PREFIX is /usr/local; DESTDIR is put in front of it, as make does
#
# LIBDIR (lib) is the folder of libraries below the prefix, PROFILE (release) the profile of cargo
# to build with. Needs a C compiler and cargo.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=${1:-/usr/local}
libdir=${LIBDIR:-lib}
profile=${PROFILE:-release}
target=${CARGO_TARGET_DIR:-target}
abi=$(sed -n 's/^#define SILT_ABI_VERSION //p' include/siltstone.h)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
case $prefix in /*) ;; *) echo "$prefix is no absolute path" >&2; exit 2 ;; esac

# rustc says which libraries of the system a static library needs, also when nothing is to be built.
if ! told=$(cargo rustc --quiet --profile "$profile" --package siltstone-ffi --lib \
  --crate-type staticlib -- --print native-static-libs 2>&1); then
  echo "$told" >&2
  exit 1
fi
native=$(sed -n 's/^note: native-static-libs: //p' <<< "$told" | tail -1)
[ -n "$native" ] || { echo "rustc named no libraries of the system: $told" >&2; exit 1; }
# Each compiler links its own unwinder, and knows which one a static program takes.
hosts=$(sed 's/-lgcc_s *//' <<< "$native")
folder=$profile
[ "$profile" != dev ] || folder=debug
archive=$target/$folder/libsiltstone.a

to=${DESTDIR:-}$prefix
install -d "$to/include" "$to/$libdir/pkgconfig" "$to/$libdir/cmake/Siltstone"
install -m 644 include/siltstone.h include/siltstone.hpp "$to/include"
install -m 644 "$archive" "$to/$libdir/libsiltstone.a"

# The shared library is linked from the static one, so that its symbols carry a version: rustc gives
# a script of its own to the linker, and there can be one only.
# shellcheck disable=SC2086
cc -shared -o "$to/$libdir/libsiltstone.so.$abi" -Wl,-soname,"libsiltstone.so.$abi" \
  -Wl,--version-script,ffi/siltstone.map -Wl,--gc-sections -Wl,-z,defs -Wl,--as-needed \
  -Wl,--whole-archive "$archive" -Wl,--no-whole-archive $native
chmod 755 "$to/$libdir/libsiltstone.so.$abi"
ln -sf "libsiltstone.so.$abi" "$to/$libdir/libsiltstone.so"

# From the folder of the CMake package to the prefix, which may be moved with all that is in it.
up=../..$(sed 's|[^/]\+|/..|g; s|//|/|g' <<< "/$libdir")

literal() { sed 's/[\\|&]/\\&/g' <<< "$1"; }
fill() { # TEMPLATE FILE
  sed -e "s|@PREFIX@|$(literal "$prefix")|g" -e "s|@LIBDIR@|$(literal "$libdir")|g" \
    -e "s|@UP@|$up|g" -e "s|@VERSION@|$version|g" -e "s|@ABI@|$abi|g" \
    -e "s|@NATIVE_LIBS@|$hosts|g" -e "s|@NATIVE_LIBS_CMAKE@|${hosts// /;}|g" "$1" > "$2"
}
fill ffi/siltstone.pc.in "$to/$libdir/pkgconfig/siltstone.pc"
fill ffi/SiltstoneConfig.cmake.in "$to/$libdir/cmake/Siltstone/SiltstoneConfig.cmake"
fill ffi/SiltstoneConfigVersion.cmake.in "$to/$libdir/cmake/Siltstone/SiltstoneConfigVersion.cmake"
echo "installed libsiltstone $version (libsiltstone.so.$abi) below $to"
