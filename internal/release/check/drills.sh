#!/usr/bin/env bash
# drills.sh: runs deploy/drills on a broker and a process of its own; the state is on a file system of 64 MB in a namespace of
# its own. KAFKA_PORT is the broker's port.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
if [[ -z ${DRILLS_INSIDE:-} ]]; then exec unshare --mount env DRILLS_INSIDE=1 "$0"; fi
root=$PWD tmp=$(mktemp -d)
export KAFKA_PORT=${KAFKA_PORT:-22092} KAFKA_BROKERS=1 KAFKA_DIR=$tmp/kafka KAFKA_HEAP=384m
program=$root/dist/bin/linux/$(go env GOARCH)/plumbline
cleanup() {
	[[ -z ${feed:-} ]] || kill "$feed" 2>/dev/null || true
	"$tmp/stop" 2>/dev/null || true
	deploy/kafka/kafka.sh stop 2>/dev/null || true
	umount "$tmp/disk" 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
mkdir "$tmp/disk" && mount -t tmpfs -o size=64m none "$tmp/disk" && mkdir "$tmp/disk/state"
cat >"$tmp/plumbline.yaml" <<-EOT
	kafka: {brokers: ["127.0.0.1:$KAFKA_PORT"], partitions: 1}
	topics: {labels: ""}
	checkpoints: {dir: $tmp/disk/state, interval: 1s}
	join: {dir: $tmp/work}
	http: {listen: "127.0.0.1:$((KAFKA_PORT + 50))"}
EOT
printf '#!/bin/sh\nsetsid %s run -c %s --log-level warn >>%s 2>&1 & echo $! >%s\n' "$program" "$tmp/plumbline.yaml" "$tmp/log" "$tmp/pid" >"$tmp/start"
printf '#!/bin/sh\n[ -s %s ] || exit 0\nkill $(cat %s)\nwhile kill -0 $(cat %s) 2>/dev/null; do sleep 0.1; done\n' "$tmp/pid" "$tmp/pid" "$tmp/pid" >"$tmp/stop"
chmod +x "$tmp/start" "$tmp/stop"
mkdir "$tmp/work"
deploy/kafka/kafka.sh start >/dev/null
"$program" topics create -c "$tmp/plumbline.yaml" >/dev/null
"$tmp/start"
# Rows come in small sendings, so that a broker that is away ends one of them only.
(for ((i = 0; i < 2000; i++)); do
	"$program" produce -c "$tmp/plumbline.yaml" deploy/compose/stream/calibrated.csv --limit 200 --id-prefix "drill$i-" --model drill --end=false \
		--rate 200 --event-rate 200 >/dev/null 2>&1 || true
done) &
feed=$!
export URL=http://127.0.0.1:$((KAFKA_PORT + 50)) WAIT=${WAIT:-120}
run() {
	echo "drill $1"
	env "${@:2}" deploy/drills/"$1".sh || { tail -n 20 "$tmp/log"; exit 1; }
}
run broker-loss STOP="$root/deploy/kafka/kafka.sh kill" START="$root/deploy/kafka/kafka.sh start >/dev/null" SECONDS_AWAY=5
run disk-full DIR="$tmp/disk/state"
run lost-volume STOP="$tmp/stop" START="$tmp/start" DIR="$tmp/disk/state" CONFIG="$tmp/plumbline.yaml" BACKUP="$tmp/backup.tar.gz" PLUMBLINE="$program"
