#!/bin/sh
# Compares this server with Debian's redis-server: redis-benchmark asks one after the other, so that what else the machine does slows
# both alike. Prints the ratio of each command in each run. The command is the argument, or else it is built.
#
#	[RUNS=3] [ROUNDS=8] [N=100000] [P=16] [C=50] [KEYS=100000] samples/redis/compare.sh [wasmactors]
set -e
for tool in redis-server redis-cli redis-benchmark; do
	command -v $tool >/dev/null || { echo "there is no $tool (Debian: apt-get install redis)"; exit 1; }
done
dir=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
pids=
trap 'for p in $pids; do kill "$p" 2>/dev/null || true; done; wait; rm -rf "$work"' EXIT
case "${1:-}" in
"") bin=$work/wasmactors; (cd "$dir/../.." && go build -o "$bin" ./cmd/wasmactors) ;;
/*) bin=$1 ;;
*) bin=$(pwd)/$1 ;;
esac
ours=${PORT:-7381}
real=$((ours + 1))
"$bin" run "$dir" --env "LISTEN=127.0.0.1:$ours" --allow "listen=127.0.0.1:$ours" >"$work/log" 2>&1 &
pids=$!
redis-server --port "$real" --bind 127.0.0.1 --save "" --appendonly no --dir "$work" >"$work/real" 2>&1 &
pids="$pids $!"
for port in $ours $real; do
	tries=0
	until [ "$(redis-cli -p "$port" ping 2>/dev/null)" = PONG ]; do
		tries=$((tries + 1))
		[ $tries -le 120 ] && for p in $pids; do kill -0 "$p" || tries=1000; done
		[ $tries -le 120 ] || { cat "$work/log" "$work/real"; exit 1; }
		sleep 1
	done
done
ask() { redis-benchmark -p "$1" -t "$2" -n "$3" -c "${C:-50}" -P "${P:-16}" ${KEYS:+-r "$KEYS"} --csv 2>/dev/null | awk -F'"' '$2 != "test" { print $4 }'; }
n=${N:-100000}
for port in $ours $real; do ask "$port" set,get "$n" >/dev/null; done # so that all is warm
run=0
while [ $run -lt "${RUNS:-3}" ]; do
	run=$((run + 1))
	for what in get set; do
		round=0
		: >"$work/rates"
		while [ $round -lt "${ROUNDS:-8}" ]; do
			round=$((round + 1))
			echo "$(ask "$ours" $what "$n") $(ask "$real" $what "$n")" >>"$work/rates"
		done
		# Of each server the time for one request, on average.
		awk -v run=$run -v what=$what '{ a += 1 / $1; b += 1 / $2 } END { printf "run %d: %s %.0f/s, redis-server %.0f/s: %.2fx\n", run, what, NR / a, NR / b, b / a }' "$work/rates"
	done
done
