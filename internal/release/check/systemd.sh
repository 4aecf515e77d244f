#!/usr/bin/env bash
# systemd.sh DEB: the package under a real systemd, which boots in a container of systemd-nspawn on this machine's /usr: install,
# start, rows, a kill, an upgrade, a configuration that is refused, removal. Exit code 3: no such container can be had here.
# KAFKA_PORT is the broker's port.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
deb=$(realpath "$1") root=$PWD
if [[ -z ${SYSTEMD_INSIDE:-} ]]; then exec unshare --mount --propagation private env SYSTEMD_INSIDE=1 "$0" "$deb"; fi
tmp=$(mktemp -d)
export KAFKA_PORT=${KAFKA_PORT:-22092} KAFKA_BROKERS=1 KAFKA_DIR=$tmp/kafka KAFKA_HEAP=384m
cleanup() {
	cd "$root"
	deploy/kafka/kafka.sh stop >/dev/null 2>&1 || true
	umount -R "$tmp/disk" || true
	rm -rf "$tmp"
}
trap cleanup EXIT
mkdir "$tmp/disk" && mount -t tmpfs -o size=1g none "$tmp/disk"
cd "$tmp/disk"
mkdir -p up work os/{usr,etc,var/lib/dpkg/{info,updates},root,tmp,proc,sys,dev,run}
mount -t overlay overlay -o "lowerdir=/usr,upperdir=$PWD/up,workdir=$PWD/work" os/usr || exit 3
for d in bin sbin lib lib64; do ln -s "usr/$d" "os/$d"; done
cp -r /etc/{passwd,group,shadow,nsswitch.conf,ld.so.cache,ld.so.conf,ld.so.conf.d,pam.d,dbus-1,alternatives} os/etc/ 2>/dev/null || true
: >os/etc/machine-id
touch os/var/lib/dpkg/{status,available}
# Nothing else of this machine starts: only what a system has before its services, and the check.
mkdir -p os/etc/systemd/system
cat >os/etc/systemd/system/check.service <<-'EOT'
	[Unit]
	Wants=dbus.service
	After=dbus.service
	[Service]
	Type=oneshot
	ExecStart=/bin/bash /root/check.sh
	ExecStopPost=/bin/systemctl --force exit
	StandardOutput=file:/root/out
	StandardError=file:/root/err
EOT
cp "$deb" os/root/first.deb
dpkg-deb -R "$deb" next && sed -i 's/^Version: .*/Version: 999.0.0/' next/DEBIAN/control
dpkg-deb --root-owner-group -Znone -b next os/root/next.deb >/dev/null
rm -r next
cp "$root/internal/release/check/systemd-inside.sh" os/root/check.sh
cp "$root/deploy/compose/stream/calibrated.csv" os/root/rows.csv
echo "$KAFKA_PORT" >os/root/port
systemd-nspawn -q -D os --register=no --keep-unit /bin/true 2>/dev/null || exit 3
(cd "$root" && deploy/kafka/kafka.sh start >/dev/null)
timeout 240 systemd-nspawn -q -D os --register=no --keep-unit --link-journal=no -b systemd.unit=check.service systemd.show_status=no >"$tmp/console" 2>&1 || true
cat os/root/out
[[ -e os/root/done ]] || { tail -n 40 "$tmp/console" os/root/err; exit 1; }
