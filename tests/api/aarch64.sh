#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# offpathd for Arm (`make aarch64`), on an emulated processor. Takes its options.
here=$(dirname "$(realpath "$0")")
root=$here/../..
export OFFPATH_SERVICE_PATH="$here/aarch64.sh"
exec qemu-aarch64 -L "$root/.aarch64/sysroot" "$root/build/aarch64/bin/offpathd" "$@"
