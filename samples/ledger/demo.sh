#!/bin/sh
# Runs the ledger on its input and checks the books against a computation of its own.
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
replies=$work/replies
echo "5000 transfers, some of them broken, to a payment gateway that crashes on those:"
echo
"$bin" run "$dir" --input "$dir/input.ndjson" >"$replies"
echo
echo "The final balances, computed from the input alone, and compared with what the accounts hold:"
(cd "$dir" && go run ./check "$dir/input.ndjson" "$replies")
