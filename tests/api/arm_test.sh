#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A test of the C API whose services are on Arm DPUs, on an emulated processor (aarch64.sh). Usage: arm_test.sh PROGRAM [OPTIONS]
here=$(dirname "$(realpath "$0")")
built=$(realpath "$here/../..")/build/aarch64
if [ ! -x "$built/bin/offpath-executor" ] || ! command -v qemu-aarch64 >/dev/null; then
    echo "skipped: there is no aarch64 build. Run: make aarch64"
    exit 77
fi
export OFFPATH_TEST_DPU=1 OFFPATH_TASK_FOLDERS="$built/lib"
export OFFPATH_DPU="exec:$here/dpu.sh $here/aarch64.sh"
exec "$@"
