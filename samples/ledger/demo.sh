#!/bin/sh
# Runs the ledger on its input and checks the books against a computation of its own.
# With --unplug it kills a ledger with a store 50 times while money moves, and audits the books after each start.
# The command is the argument, or else it is built. Any folder is fine to run this in.
set -e
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unplug=
if [ "${1:-}" = --unplug ]; then
	unplug=1
	shift
fi
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
if [ -n "$unplug" ]; then
	(cd "$dir" && go build -o "$work/unplug" ./unplug)
	"$bin" build "$dir/durable.yaml"
	"$work/unplug" "$bin" "$dir/durable.yaml" "$work/state" "${TIMES:-50}"
	exit
fi
replies=$work/replies
echo "5000 transfers, some of them broken, to a payment gateway that crashes on those:"
echo
"$bin" run "$dir" --input "$dir/input.ndjson" >"$replies"
echo
echo "The final balances, computed from the input alone, and compared with what the accounts hold:"
(cd "$dir" && go run ./check "$dir/input.ndjson" "$replies")
