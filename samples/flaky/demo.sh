#!/bin/sh
# Runs flaky on its input and checks from outside that every order was accepted and every delay as its curve says.
# The command is the argument, or else it is built. Any folder is fine to run this in.
set -e
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
echo "Eight clients of one service that lets each of them down ten times, and later twice more; every"
echo "failure costs a client a crash, and its supervisor waits in its own way before the restart:"
echo
if ! "$bin" run "$dir" --input "$dir/input.ndjson" --json >"$work/replies" 2>"$work/events"; then
  cat "$work/events"
  exit 1
fi
(cd "$dir" && go run ./check "$dir/input.ndjson" "$work/replies" "$work/events")
