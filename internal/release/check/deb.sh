#!/usr/bin/env bash
# deb.sh DEB: installs the package into a root of its own, upgrades it there, removes and purges it: what it must keep and
# what it must take away. dpkg is real; the units are judged by systemd-analyze, and
# systemd.sh starts one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
deb=$1 tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "deb: $*" >&2; exit 1; }
root=$tmp/root
mkdir -p "$root"/{usr/bin,var/lib/dpkg/{info,updates},etc,tmp}
touch "$root"/var/lib/dpkg/{status,available}
d() { dpkg --root="$root" --force-not-root --force-script-chrootless --log="$tmp/dpkg.log" "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; fail "dpkg $1"; }; }

d -i "$deb"
[[ $("$root/usr/bin/plumbline" --version) == "plumbline ${VERSION:-v} "* || -z ${VERSION:-} ]] || fail "another version was installed"
"$root/usr/bin/plumbline" config check "$root/etc/plumbline/plumbline.yaml" >/dev/null || fail "its configuration is not valid"
mkdir -p "$root/var/lib/plumbline/state" && echo state >"$root/var/lib/plumbline/state/checkpoint-1"
echo "group: mine" >>"$root/etc/plumbline/plumbline.yaml"

# An upgrade: the same files under a higher version.
dpkg-deb -R "$deb" "$tmp/next" && sed -i 's/^Version: .*/Version: 999.0.0/' "$tmp/next/DEBIAN/control" && sed -i '/plumbline.yaml/!b' "$tmp/next/DEBIAN/conffiles"
echo "# of the next version" >>"$tmp/next/etc/plumbline/plumbline.yaml"
dpkg-deb --root-owner-group -Znone -b "$tmp/next" "$tmp/next.deb" >/dev/null
d --force-confdef --force-confold -i "$tmp/next.deb"
grep -q 'group: mine' "$root/etc/plumbline/plumbline.yaml" || fail "the upgrade replaced the configuration"
[[ $(cat "$root/var/lib/plumbline/state/checkpoint-1") == state ]] || fail "the upgrade took the state"
d -r plumbline
[[ -e $root/var/lib/plumbline/state/checkpoint-1 && -e $root/etc/plumbline/plumbline.yaml ]] || fail "a removal took state or configuration"
[[ ! -e $root/usr/bin/plumbline ]] || fail "a removal left the program"
d -P plumbline
[[ ! -e $root/etc/plumbline/plumbline.yaml ]] || fail "a purge left the configuration"

for unit in deploy/systemd/*.service; do
	score=$(systemd-analyze security --offline=true "$unit" | sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
	awk -v s="$score" 'BEGIN {exit !(s != "" && s <= 2.0)}' || fail "$unit: exposure ${score:-unknown}, the most is 2.0"
	echo "deb: $(basename "$unit"): exposure $score"
done
mkdir -p "$tmp/units" && cp deploy/systemd/*.service "$tmp/units" && sed -i 's#/usr/bin/plumbline[a-z-]*#/bin/true#; /^Documentation/d' "$tmp/units"/*.service
systemd-analyze verify "$tmp/units"/*.service 2>"$tmp/verify" || { cat "$tmp/verify" >&2; fail "systemd-analyze verify"; }
[[ ! -s $tmp/verify ]] || { cat "$tmp/verify" >&2; fail "systemd-analyze verify says something"; }
echo "deb: installed, upgraded, removed, purged: state and configuration stay until the purge"
