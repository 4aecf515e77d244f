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

# Each shell that is here completes by its file as a user's would. PowerShell is in no registry.
path=$(realpath "$(dirname "$program")"):$PATH
got=$(PATH=$path bash -c '
	compopt() { :; }
	_init_completion() { cur=tra prev=plumbline words=(plumbline tra) cword=1; } # of the package bash-completion
	source dist/completions/plumbline.bash
	COMP_WORDS=(plumbline tra) COMP_CWORD=1 COMP_LINE="plumbline tra" COMP_POINT=13 COMP_TYPE=9
	__start_plumbline && echo "${COMPREPLY[*]}"')
[[ $got == *trainer* ]] || fail "bash completes tra by '$got'"
if command -v fish >/dev/null; then
	got=$(PATH=$path fish -N -c 'source dist/completions/plumbline.fish; complete -C "plumbline tra"')
	[[ $got == *'Train the heads'* ]] || fail "fish completes tra by '$got'"
fi
if command -v zsh >/dev/null; then
	mkdir "$tmp/zsh" && cp dist/completions/plumbline.zsh "$tmp/zsh/_plumbline"
	got=$(PATH=$path python3 internal/release/check/zsh.py "$tmp/zsh" 'plumbline tra')
	[[ $got == *'Train the heads'* ]] || fail "zsh completes tra by '$got'"
fi

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
