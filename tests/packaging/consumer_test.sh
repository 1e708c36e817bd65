#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# $1 cmake, $2 build tree, $3 C compiler. Installs into a temporary prefix, moves it, builds one C program through
# find_package and once more through pkg-config, and lets both attach to the installed service.
set -eu
cmake=$1 build=$2 compiler=$3
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d /tmp/offpath-consumer-XXXXXX)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/prefix"  # nothing may depend on where it was installed
prefix=$work/prefix

for file in bin/offpath bin/offpathd include/offpath/offpath.h share/man/man1/offpath-run.1 share/bash-completion/completions/offpath \
  share/zsh/site-functions/_offpath; do
  [ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
[ -x "$prefix/libexec/offpath/python/offpath/lab/agent" ] || { echo "mpirun could not call the lab's agent"; exit 1; }
found=$(find "$prefix" -type f -perm -100 -exec sh -c 'objdump -p "$@" 2>/dev/null' - {} + | grep -E "(RPATH|RUNPATH).*$build" || true)
[ -z "$found" ] || { echo "a program looks for libraries in the build tree: $found"; exit 1; }

grep -rq "^ExecStart=$work/first/bin/offpathd --listen .* --munge" "$prefix"/lib*/ --include=offpathd.service || {
  echo "no unit of systemd"
  exit 1
}

export OFFPATH_RUNTIME_DIR="$work/run" OFFPATH_SERVICE_SHARE=1 OFFPATH_UCX_TLS=tcp,self OFFPATH_UCX_NET_DEVICES=lo
unset OFFPATH_SERVICE_PATH LD_LIBRARY_PATH || true

"$cmake" -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$compiler" >"$work/configure.log"
"$cmake" --build "$work/build" >"$work/build.log"
echo "find_package: $("$work/build/consumer")"

libdir=$(dirname "$(find "$prefix" -name liboffpath.so)")
export PKG_CONFIG_PATH="$libdir/pkgconfig"
# shellcheck disable=SC2046  # several words are meant
"$compiler" -Wall -Wextra -Werror -std=c11 "$here/consumer/consumer.c" -o "$work/plain" $(pkg-config --cflags --libs offpath)
echo "pkg-config: version $(pkg-config --modversion offpath), $(LD_LIBRARY_PATH="$libdir" "$work/plain")"

# Only the C API may be visible.
others=$(nm -D --defined-only "$libdir/liboffpath.so" | awk '$2 != "A" {print $3}' | grep -v '^offpath_' || true)
[ -z "$others" ] || { echo "liboffpath.so shows more than its C API: $others"; exit 1; }

# The command line: moved too, with what it needs to run and nothing for tests.
version=$("$prefix/bin/offpath" --version)
[ "$("$prefix/bin/offpath" info --json | grep -c "\"prefix\": \"$prefix\"")" = 1 ] || { echo "offpath is not at home in $prefix"; exit 1; }
for package in pytest hypothesis ruff; do
  [ ! -e "$prefix/libexec/offpath/packages/$package" ] || { echo "installed, but only tests need it: $package"; exit 1; }
done
echo "command line: $version"

# What others have there stays.
touch "$prefix/bin/other"
"$here/../../tools/uninstall" "$prefix"
left=$(cd "$prefix" && find . -not -type d; find . -iname '*offpath*')
[ "$left" = ./bin/other ] || { echo "uninstalling left: $left"; exit 1; }
