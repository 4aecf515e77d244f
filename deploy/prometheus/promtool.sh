#!/usr/bin/env bash
# Runs promtool: the one in PATH, or that of Debian's package, unpacked below .cache without installing anything. Where there is
# neither, says so and ends with 77, as test runners do for "skipped".
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

tool=$(command -v promtool || true)
if [[ -z $tool ]]; then
	tool=$root/.cache/promtool/usr/bin/promtool
	if [[ ! -x $tool ]] && command -v apt-get >/dev/null && command -v dpkg >/dev/null; then
		tmp=$(mktemp -d)
		trap 'rm -rf "$tmp"' EXIT
		get() { (cd "$tmp" && apt-get download -qq prometheus >/dev/null 2>"$tmp/err"); }
		if get || { [[ $(id -u) == 0 ]] && apt-get update -qq >/dev/null 2>&1 && get; }; then
			mkdir -p "$root/.cache/promtool"
			dpkg -x "$tmp"/prometheus_*.deb "$root/.cache/promtool"
		else
			cat "$tmp/err" >&2
		fi
	fi
fi
if [[ ! -x $tool ]]; then
	echo "SKIP: no promtool in PATH, and Debian's package prometheus cannot be had" >&2
	exit 77
fi
"$tool" "$@"
