#!/bin/sh
# Runs the chat, has a few people talk in it while a room crashes, and checks what each of them has seen.
# The command is the argument, or else it is built. Any folder is fine to run this in.
set -e
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
server=
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
(cd "$dir/../.." && go build -o "$work/check" ./samples/chat/check)
port=$("$work/check" port)
"$bin" run "$dir" --env "LISTEN=127.0.0.1:$port" >"$work/log" 2>&1 &
server=$!
"$work/check" "http://127.0.0.1:$port" || { cat "$work/log"; exit 1; }
