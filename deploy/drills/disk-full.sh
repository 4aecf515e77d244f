#!/usr/bin/env bash
# disk-full.sh: the file system of the state fills up, then has room again. Rows must be coming in.
#   DIR=/var/lib/plumbline/state URL=… disk-full.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need DIR "checkpoints.dir, on a file system that may be full for minutes"
expect "the process is ready" ready
filler=$(mktemp "$DIR/drill-XXXXXX")
trap 'rm -f "$filler"' EXIT
say "filling $(df -h --output=avail "$DIR" | tail -1 | tr -d ' ') below $DIR"
dd if=/dev/zero of="$filler" bs=1M 2>/dev/null || true
dd if=/dev/zero bs=1 count=4096 2>/dev/null >>"$filler" || true
failing() { (($(metric task_failing) == 1)); }
expect "a task fails, and says so" failing
expect "the process still answers" alive
before=$(rows)
rm -f "$filler"
say "there is room again"
expect "the process is ready again" ready
expect "rows come in again" more_rows "$before"
expect "every row is accounted for, no task fails" all_accounted
