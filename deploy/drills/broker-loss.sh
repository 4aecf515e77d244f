#!/usr/bin/env bash
# broker-loss.sh: the brokers go away and come back. Rows must be coming in.
#   STOP='systemctl stop kafka' START='systemctl start kafka' SECONDS_AWAY=30 URL=… broker-loss.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need STOP "a command that stops the brokers"
need START "a command that starts them"
expect "the process is ready" ready
say "stopping the brokers"
bash -c "$STOP"
sleep "${SECONDS_AWAY:-30}"
expect "the process still answers" alive
before=$(rows)
say "starting the brokers"
bash -c "$START"
expect "the process is ready again" ready
expect "rows come in again" more_rows "$before"
expect "every row is accounted for, no task fails" all_accounted
