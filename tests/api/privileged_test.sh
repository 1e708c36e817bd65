#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A program with more rights than who started it runs nothing of that user's, and trusts no folder of his.
# $1: the program (privileged.cpp); $2: prefix of folders.
set -eu
[ "$(id -u)" = 0 ] || { echo "skipped: needs root"; exit 77; }
user=$((60000 + $$ % 5000))
dir=$(mktemp -d "$2XXXXXX")
trap 'rm -rf "$dir" "/tmp/offpath-$user"' EXIT
chmod 1777 "$dir"
cp "$1" "$dir/plain"
cp "$1" "$dir/setuid"
chmod 755 "$dir/plain"
chmod 4755 "$dir/setuid"
printf '#!/bin/sh\nid -u >"%s/ran"\n' "$dir" >"$dir/service"
chmod 755 "$dir/service"
cd "$dir"

as_user() { setpriv --reuid "$user" --regid "$user" --clear-groups env -i OFFPATH_SERVICE_SHARE=1 "$@"; }
fail() { echo "$*"; exit 1; }

# By those who have no more rights it is run; else this would prove nothing.
for variable in OFFPATH_SERVICE_PATH OFFPATH_SERVICE_WRAPPER; do
  as_user "$variable=$dir/service" ./plain attach
  [ "$(cat ran)" = "$user" ] || fail "$variable was not run by plain"
  rm ran
  said=$(as_user "$variable=$dir/service" ./setuid attach)
  [ ! -e ran ] || fail "$variable was run by $(cat ran)"
  case $said in
    "euid 0: "*"more rights"*) ;;
    "euid $user: "*) echo "skipped: setuid has no effect here"; exit 77 ;;
    *) fail "said: $said" ;;
  esac
done

# One who poses as the service in his own folder is not found.
mkfifo end
as_user ./plain pose <end >posed &
poser=$!
exec 9>end
while ! grep -q posing posed; do kill -0 "$poser" || fail "could not pose"; sleep 0.01; done
as_user ./plain attach
as_user ./setuid attach
exec 9>&-
wait "$poser"
[ "$(grep -c caught posed)" = 3 ] || fail "not the three attempts of the plain program: $(cat posed)"
