#!/bin/sh
# Runs the chat, has a few people talk in it while rooms crash and end and the process is stopped and killed, and checks
# what each of them has heard. The command is the argument, or else it is built. Any folder is fine to run this in; the
# state of the run is kept in a fresh one.
set -e
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
(cd "$dir/../.." && go build -o "$work/check" ./samples/chat/check)
"$work/check" "$bin" "$dir"
