#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# After the api tests: no service, no socket, no folder of theirs is left. $1: prefix of their runtime folders.
prefix=$1
status=0
for folder in "$prefix"*; do
  [ -e "$folder" ] || continue
  echo "left behind: $folder"
  find "$folder"
  status=1
done
for process in /proc/[0-9]*; do
  [ "${process#/proc/}" = "$$" ] && continue
  words=$(tr '\0' ' ' 2>/dev/null <"$process/cmdline") || continue
  case $words in
    *offpathd*"$prefix"*)
      echo "still runs: $words"
      status=1
      ;;
  esac
done
exit $status
