#!/bin/sh
# Runs the ledger on its input and checks the books against a computation of its own.
# With --cluster it spreads accounts over three nodes, kills one every ten seconds for FOR (2m), and audits the books.
# With --unplug it kills a ledger with a store 50 times while money moves and its code is exchanged, and audits the books after each start.
# The command is the argument, or else it is built. Any folder is fine to run this in.
set -e
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unplug= cluster=
case "${1:-}" in
--unplug) unplug=1; shift ;;
--cluster) cluster=1; shift ;;
esac
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
if [ -n "$unplug" ]; then
	(cd "$dir" && go build -o "$work/unplug" ./unplug)
	"$bin" build "$dir/durable.yaml" --output "$work"
	"$work/unplug" "$bin" "$dir/durable.yaml" "$work/state" "${TIMES:-50}" "$work/ledger.wasm"
	exit
fi
if [ -n "$cluster" ]; then
	(cd "$dir" && go build -o "$work/cluster" ./cluster)
	"$bin" build "$dir/cluster.yaml"
	"$work/cluster" "$bin" "$dir/cluster.yaml" "$work" "${FOR:-2m}" "${EVERY:-10s}"
	exit
fi
replies=$work/replies
echo "5000 transfers, some of them broken, to a payment gateway that crashes on those:"
echo
"$bin" run "$dir" --input "$dir/input.ndjson" >"$replies"
echo
echo "The final balances, computed from the input alone, and compared with what the accounts hold:"
(cd "$dir" && go run ./check "$dir/input.ndjson" "$replies")
