#!/bin/sh
# Sends webhooks to the sample while it, its destination and the whole host fail, and checks that what was acknowledged arrives.
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
(cd "$dir" && go run ./check "$bin" "$dir")
