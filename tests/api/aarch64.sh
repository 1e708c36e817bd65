#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# offpathd for Arm (`make aarch64`), on an emulated processor, and with it what runs user code. Takes its options.
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
emulated="qemu-aarch64 -L $root/.aarch64/sysroot $root/build/aarch64/bin"
export OFFPATH_SERVICE_PATH="$here/aarch64.sh"
exec $emulated/offpathd --executor "$emulated/offpath-executor" "$@"
