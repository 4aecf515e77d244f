#!/usr/bin/env bash
# release.sh VERSION: what `make release` promises, on this machine's system. The second build is from a clone in another
# folder with an empty build cache; FAST=1 leaves the second build out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
version=$1 tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
fail() { echo "release: $*" >&2; exit 1; }

program=dist/bin/$(go env GOOS)/$(go env GOARCH)/plumbline
[[ $("$program" --version) == "plumbline $version "* ]] || fail "$("$program" --version), want $version"
! file "$program" | grep -E 'dynamically linked|not stripped' || fail "$program is dynamically linked or not stripped"
(cd dist && sha256sum --quiet -c checksums.txt) || fail "checksums.txt does not hold"
for archive in dist/*.tar.gz; do
	list=$(tar -tzf "$archive")
	for file in plumbline LICENSE man/plumbline.1 completions/plumbline.bash prometheus/rules.yml; do
		grep -q "/$file\$" <<<"$list" || fail "$archive is without $file"
	done
done
for bom in dist/*.cdx.json; do
	grep -q '"pkg:golang/github.com/segmentio/kafka-go@' "$bom" || fail "$bom does not list kafka-go"
done
if command -v man >/dev/null; then MANWIDTH=80 man -l dist/man/plumbline.1 2>/dev/null | grep -q 'plumbline run' || fail "man cannot show plumbline.1"; fi

# go install …@version, from a module proxy in a folder; all else comes from what was downloaded before.
git clone -q . "$tmp/elsewhere"
.cache/bin/release modzip "$tmp/elsewhere" "$version" "$tmp/proxy"
GOPROXY=file://$tmp/proxy,file://$(go env GOMODCACHE)/cache/download GONOSUMDB='*' GOFLAGS=-trimpath \
	GOMODCACHE=$tmp/mod GOBIN=$tmp/bin CGO_ENABLED=0 go install -ldflags '-s -w' "github.com/plumbline/plumbline/cmd/plumbline@$version"
[[ $("$tmp/bin/plumbline" --version) == "plumbline $version "* ]] || fail "go install made $("$tmp/bin/plumbline" --version)"
echo "go install: $("$tmp/bin/plumbline" --version)"

if [[ -z ${FAST:-} ]]; then
	[[ -z $(git status --porcelain -- '*.go' go.mod go.sum) ]] || fail "the working tree has changes: the clone would differ"
	flags=(-tags static -trimpath -ldflags "-s -w -buildid= -X github.com/plumbline/plumbline/internal/buildinfo.version=$version")
	GOCACHE=$tmp/cache CGO_ENABLED=0 GOFLAGS='' go -C "$tmp/elsewhere" build "${flags[@]}" -o "$tmp/plumbline" ./cmd/plumbline
	cmp "$program" "$tmp/plumbline" || fail "two builds differ"
	echo "reproducible: $(sha256sum <"$program" | cut -c1-16)"
fi
