#!/usr/bin/env bash
# systemd-inside.sh: what systemd.sh runs as a service of the container.
set -uo pipefail
cd /root
config=/etc/plumbline/plumbline.yaml
page=127.0.0.1:$(($(cat port) + 50)) # not the usual port, which the machine may need
step() { echo "systemd: $SECONDS s: $*"; }
fail() { echo "systemd: $*"; journalctl -u plumbline --no-pager -n 30; exit 1; }
of() { systemctl show plumbline -p "$1" --value; }
ready() { for ((i = 0; i < 300; i++)); do plumbline health -c $config >/dev/null 2>&1 && return; sleep 0.2; done; fail "never ready $1"; }

dpkg --force-depends -i first.deb >dpkg.log 2>&1 || { cat dpkg.log; fail "dpkg -i"; }
[[ $(systemctl is-active plumbline) == inactive ]] || fail "a first installation started it"
sed -i "s/127.0.0.1:8080/$page/; s/^kafka:/kafka:\n  replication: 1/" $config
echo "PLUMBLINE_BROKERS=127.0.0.1:$(cat port)" >>/etc/default/plumbline
export PLUMBLINE_BROKERS=127.0.0.1:$(cat port)
plumbline topics create -c $config >/dev/null || fail "topics create"
systemctl enable --now plumbline 2>/dev/null || fail "enable --now"
ready "after the start"
pid=$(of MainPID)
user=$(stat -c %U /proc/"$pid")
[[ $user == plumbline ]] || fail "it runs as $user"
[[ $(awk '/CapEff|CapBnd/ {print $2}' /proc/"$pid"/status | sort -u) == 0000000000000000 ]] || fail "it has capabilities"
[[ -d /var/lib/private/plumbline && $(stat -c %a /var/lib/private/plumbline) == 700 ]] || fail "its state directory is $(stat -c '%a %n' /var/lib/private/plumbline)"
step "started as $user, without capabilities, exposure $(systemd-analyze security plumbline.service | sed -n 's/.*: \([0-9.]*\) .*/\1/p' | tail -1)"

plumbline produce -c $config rows.csv --model first --limit 2000 --event-rate 100 >/dev/null 2>&1 || fail "produce"
number() { curl -s "http://$page/api/v1/snapshots?model=first&limit=1" | grep -q '"ece"'; }
for ((i = 0; i < 300; i++)); do number && break; sleep 0.2; done
number || fail "no number of the rows"
step "rows taken, number on the page"

kill -9 "$pid"
for ((i = 0; i < 100; i++)); do [[ $(of NRestarts) == 1 && $(of MainPID) != "$pid" && $(of MainPID) != 0 ]] && break; sleep 0.2; done
ready "after kill -9"
[[ $(of NRestarts) == 1 ]] || fail "it was not started again after kill -9"
step "killed, and ready again"

pid=$(of MainPID)
upgraded=$(date +%s)
dpkg --force-depends -i next.deb >dpkg.log 2>&1 || { cat dpkg.log; fail "the upgrade"; }
[[ $(of MainPID) != "$pid" ]] || fail "the upgrade did not restart it"
ready "after the upgrade"
restored() { journalctl -u plumbline --since "@$upgraded" --no-pager -o cat | grep -q 'msg=restored task=model'; }
for ((i = 0; i < 150; i++)); do restored && break; sleep 0.2; done
restored || fail "it did not begin from its state after the upgrade"
number || fail "the number is gone after the upgrade"
step "upgraded, and ready from its state"

cp $config good.yaml && echo 'kafak: {}' >>$config
systemctl restart plumbline 2>/dev/null && fail "it started with a key that is none"
journalctl -u plumbline --no-pager -o cat | grep -q 'kafak.*kafka' || fail "the journal does not say what is wrong"
cp good.yaml $config
systemctl reset-failed plumbline; systemctl restart plumbline || fail "restart with the old configuration"
ready "with the old configuration"
step "refused a wrong key, with words in the journal"

began=$(date +%s%N)
systemctl stop plumbline || fail "stop"
[[ $(of Result) == success ]] || fail "stopped with $(of Result)"
step "stopped in $((($(date +%s%N) - began) / 1000000)) ms"
dpkg -r plumbline >dpkg.log 2>&1 || { cat dpkg.log; fail "dpkg -r"; }
[[ -d /var/lib/private/plumbline/state && ! -e /usr/bin/plumbline ]] || fail "a removal took the state or left the program"
step "removed, and the state stays"
touch done
