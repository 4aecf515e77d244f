#!/usr/bin/env bash
# newmachine.sh ARCHIVE: what somebody does on a new machine, from the release's archive to the first number on the page,
# with the time of each step: unpack, a configuration, topics, start without systemd, rows, number. The root has nothing
# but what the archive has, /tmp and a home. Kafka is there before, on KAFKA_PORT, and its start is not counted.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
archive=$(realpath "$1") tmp=$(mktemp -d)
export KAFKA_PORT=${KAFKA_PORT:-22092} KAFKA_BROKERS=1 KAFKA_DIR=$tmp/kafka KAFKA_HEAP=384m
page=127.0.0.1:$((KAFKA_PORT + 50))
pids=()
cleanup() {
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	deploy/kafka/kafka.sh stop 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
deploy/kafka/kafka.sh start >/dev/null
mkdir -p "$tmp/root/home"
cp deploy/compose/stream/calibrated.csv "$tmp/root/home/rows.csv"
began=$(date +%s%N)
step() { printf 'new machine: %5.1f s: %s\n' "$(((($(date +%s%N) - began)) / 100000000))e-1" "$*"; }

tar -C "$tmp/root/home" --strip-components=1 -xzf "$archive"
step "unpacked: tar -xzf $(basename "$archive")"
inside() {
	bwrap --unshare-all --share-net --cap-drop ALL --uid 1000 --gid 1000 --die-with-parent --bind "$tmp/root" / --proc /proc \
		--dev /dev --tmpfs /tmp --chdir /home --clearenv --setenv HOME /home /home/plumbline "$@"
}
inside config init --brokers 127.0.0.1:"$KAFKA_PORT" --labels inline >/dev/null
sed -i "s/127.0.0.1:8080/$page/; s/^kafka:/kafka:\n  replication: 1/" "$tmp/root/home/plumbline.yaml"
step "configured: plumbline config init"
inside topics create -c plumbline.yaml >/dev/null
step "topics: plumbline topics create -c plumbline.yaml"
inside run -c plumbline.yaml >"$tmp/run.log" 2>&1 &
pids+=($!)
for ((i = 0; i < 300; i++)); do inside health --url "http://$page" >/dev/null 2>&1 && break; sleep 0.2; done
((i < 300)) || { tail "$tmp/run.log"; echo "new machine: never ready"; exit 1; }
step "ready: plumbline run -c plumbline.yaml"
inside produce -c plumbline.yaml rows.csv --model first --limit 2000 --event-rate 100 >/dev/null 2>&1
step "rows: plumbline produce rows.csv --model first"
number() { curl -s "http://$page/api/v1/snapshots?model=first&limit=1" | grep -o '"ece": *{[^}]*}\|"ece": *[0-9.e-]*' | head -1; }
for ((i = 0; i < 300; i++)); do
	ece=$(number || true)
	[[ -z $ece ]] || break
	sleep 0.2
done
[[ -n ${ece:-} ]] || { tail "$tmp/run.log"; curl -s "http://$page/api/v1/snapshots?model=first&limit=1" | head -c 800; echo "new machine: no number"; exit 1; }
step "first number on http://$page: $ece"
