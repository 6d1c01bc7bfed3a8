#!/bin/sh
# Runs flaky on its input and checks from outside that every order was accepted and every delay as its curve says.
set -e
bin=$1
dir=$(dirname "$0")
run=$(mktemp -d)
trap 'rm -rf "$run"' EXIT
echo "Eight clients of one service that lets each of them down ten times, and later twice more; every"
echo "failure costs a client a crash, and its supervisor waits in its own way before the restart:"
echo
if ! "$bin" run "$dir" --input "$dir/input.ndjson" --json >"$run/replies" 2>"$run/events"; then
  cat "$run/events"
  exit 1
fi
go run "$dir"/check/*.go "$dir/input.ndjson" "$run/replies" "$run/events"
