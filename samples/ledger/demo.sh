#!/bin/sh
# Runs the ledger on its input and checks the books against a computation of its own.
set -e
bin=$1
dir=$(dirname "$0")
replies=$(mktemp)
trap 'rm -f "$replies"' EXIT
echo "5000 transfers, some of them broken, to a payment gateway that crashes on those:"
echo
"$bin" run "$dir" --input "$dir/input.ndjson" >"$replies"
echo
echo "The final balances, computed from the input alone, and compared with what the accounts hold:"
go run "$dir/check" "$dir/input.ndjson" "$replies"
