#!/usr/bin/env bash
# Makes what the specification's tests need of a folder of .wast files:
#
#   spectest.sh <folder of .wast files> <folder for the result>
#   WASMACTORS_SPECTEST=<folder for the result> go test -run TestSpecification -v ./internal/rewrite
#
# The files come from a checkout of https://github.com/WebAssembly/testsuite, or of wazero, which keeps those of
# WebAssembly 2.0 in internal/integration_test/spectest/v2/testdata. wast2json (wabt) converts them; files whose syntax it
# does not know are listed and left out. The test also takes a folder that has the converted files side by side, such as
# wazero's. Their licence is theirs: they are not part of this repository.
set -euo pipefail
[ $# = 2 ] || { sed -n 4,5p "$0" >&2; exit 2; }
command -v wast2json >/dev/null || { echo "wast2json is missing: install wabt" >&2; exit 1; }
from=$(realpath "$1")
mkdir -p "$2"
cd "$2"
left=()
for file in "$from"/*.wast; do
  name=$(basename "$file" .wast)
  mkdir -p "$name"
  if ! (wast2json "$file" -o "$name/$name.json") >/dev/null 2>&1; then
    rm -r "$name"
    left+=("$name")
  fi
done
echo "$(find . -name '*.json' | wc -l) files, ${#left[@]} left out: ${left[*]-}"
