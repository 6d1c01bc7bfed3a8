#!/bin/sh
# Runs the server, a script of redis-cli, and redis-benchmark while shards crash. The command is the argument, or else it is built.
set -e
for tool in redis-cli redis-benchmark; do
	command -v $tool >/dev/null || { echo "skipped: there is no $tool (Debian: apt-get install redis-tools)"; exit 0; }
done
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
"$bin" test "$dir"
port=${PORT:-7379}
"$bin" run "$dir" --env "LISTEN=127.0.0.1:$port" --allow "listen=127.0.0.1:$port" >"$work/log" 2>&1 &
pid=$!
tries=0
until [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ]; do
	tries=$((tries + 1))
	if [ $tries -gt 120 ] || ! kill -0 $pid 2>/dev/null; then cat "$work/log"; exit 1; fi
	sleep 1
done
check() { # what is expected, then the command
	want=$1
	shift
	got=$(redis-cli -p "$port" "$@")
	[ "$got" = "$want" ] || { echo "$*: $got, want $want"; exit 1; }
}
check OK SET a 1
check 2 INCR a
check 1 EXPIRE a 100
check 100 TTL a
check OK SET b x EX 100 NX
check "" SET b y NX
check 2 EXISTS a b c
check 2 DEL a b c
check "" GET a
check hello ECHO hello
check OK SET kept here
check "ERR the shard has failed: nothing was done" DEBUG SEGFAULT kept
check here GET kept
echo "The script of redis-cli has passed."
redis-benchmark -p "$port" -t set,get,incr -n 60000 -c 50 -P 16 -r 1000 -q >"$work/benchmark" 2>&1 &
bench=$!
crashes=0
while kill -0 $bench 2>/dev/null; do
	[ "$(redis-cli -p "$port" DEBUG SEGFAULT "key:1")" = "ERR the shard has failed: nothing was done" ] || { echo "no crash"; exit 1; }
	crashes=$((crashes + 1))
done
[ $crashes -gt 0 ] || { echo "no shard has crashed under redis-benchmark"; exit 1; }
wait $bench || { cat "$work/benchmark"; exit 1; }
check here GET kept
echo "redis-benchmark has finished while shards crashed $crashes times: no connection and no key was lost."
