#!/usr/bin/env bash
# lost-volume.sh: the state is gone; the process must refuse to start from nothing; a backup brings it back. One process, or
# STOP and START for all of them.
#   STOP='systemctl stop plumbline' START='systemctl start plumbline' DIR=/var/lib/plumbline/state \
#   CONFIG=/etc/plumbline/plumbline.yaml BACKUP=/backup/drill.tar.gz URL=… lost-volume.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need STOP "a command that stops plumbline"
need START "a command that starts it"
need DIR "checkpoints.dir"
need CONFIG "the configuration file"
need BACKUP "a file for the backup"
plumbline=${PLUMBLINE:-plumbline}
expect "the process is ready" ready
before=$(rows)
bash -c "$STOP"
expect "it has stopped" silent
"$plumbline" backup -c "$CONFIG" -o "$BACKUP" --force
mv "$DIR" "$DIR.lost"
mkdir "$DIR"
say "the volume is lost; starting without it"
bash -c "$START"
refuses() { curl -s "$URL/-/ready" | grep -q 'state reset'; }
expect "it refuses to begin from nothing, and names the command" refuses
bash -c "$STOP"
expect "it has stopped" silent
rm -rf "$DIR"
"$plumbline" restore -c "$CONFIG" "$BACKUP"
chown -R --reference="$DIR.lost" "$DIR"
bash -c "$START"
expect "the process is ready again" ready
expect "the counts go on where they stood" more_rows "$((before - 1))"
expect "every row is accounted for, no task fails" all_accounted
rm -rf "$DIR.lost"
