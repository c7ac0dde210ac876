#!/bin/sh
# Stands in for `docker compose`: the service is the server of this folder, /data its folder data.
set -e
. ./compose.env    # HERE, SERVICE and how to start it
shift    # compose
[ "$1" != -f ] || shift 2
verb=$1
shift
service() { [ "${1%%:*}" = "$SERVICE" ] || { echo "no service $1" >&2; exit 1; }; }
here() { printf '%s\n' "$1" | sed "s#^$SERVICE:##; s#^/\(data\|monday\)#$HERE/\1#"; }
case $verb in
  stop)
    service "$1"
    kill "$(cat server.pid)"
    # A process that ended but that nobody has waited for is Z.
    while grep -qs '^State:[[:space:]]*[A-Ya-y]' "/proc/$(cat server.pid)/status"; do sleep 0.1; done ;;
  start)
    service "$1"
    # The terminal of these commands may close before the server has a session of its own.
    trap '' HUP
    setsid carteiro serve >compose.out 2>&1 </dev/null & echo $! >server.pid ;;
  cp) cp "$(here "$1")" "$(here "$2")" ;;
  exec | run)
    while :; do
      case $1 in
        -T | --rm | --no-deps) shift ;;
        -v) test -r "${2%%:*}"; shift 2 ;;
        *) break ;;
      esac
    done
    service "$1"
    shift
    # `run` has the entry point of the image before its words.
    [ "$verb" = exec ] || set -- carteiro "$@"
    for word; do
      set -- "$@" "$(here "$word")"
      shift
    done
    "$@" ;;
  *) echo "unknown: $verb" >&2; exit 1 ;;
esac
