#!/bin/sh
# Serves a few web sites on this machine, lets the crawler read them, and checks from the sites' side that it was polite.
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
