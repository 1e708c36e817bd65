#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A DPU on this machine: `offpathd --for-agents`, with a service that has process ids of its own where this user may make such, so
# that it cannot reach the clients but by their agent. Usage: dpu.sh OFFPATHD; the job's token on standard input.
unshare --pid --fork true 2>/dev/null || exec "$1" --for-agents
line=$(mktemp -u -p "$OFFPATH_RUNTIME_DIR")
mkfifo "$line"
exec 3<&0
# The first process of a namespace must outlive the others.
setsid unshare --pid --fork sh -c '"$0" --for-agents >"$1"; while kill -0 -1 2>/dev/null; do sleep 0.05; done' \
  "$1" "$line" <&3 >/dev/null 2>&1 &
cat "$line"
rm "$line"
