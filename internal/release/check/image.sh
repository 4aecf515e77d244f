#!/usr/bin/env bash
# image.sh VERSION: builds deploy/docker/Dockerfile by buildah, without a daemon and without a network, writes it to
# dist/image as an OCI layout, checks what is in it, and runs the demo in its root, read-only, as its user.
# Debian: apt-get install --no-install-recommends buildah umoci bubblewrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
version=$1 tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "image: $*" >&2; exit 1; }
for tool in buildah umoci bwrap; do command -v $tool >/dev/null || fail "no $tool: apt-get install --no-install-recommends buildah umoci bubblewrap"; done

export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot XDG_RUNTIME_DIR=$tmp
b() { buildah --root "$tmp/storage" --runroot "$tmp/run" "$@"; }
b bud -q --network none --format docker --build-context certificates=/etc/ssl/certs \
	--build-arg VERSION="$version" --build-arg PROGRAM="dist/bin/linux/$(go env GOARCH)/plumbline" \
	--timestamp "$(git log -1 --format=%ct)" -t plumbline -f deploy/docker/Dockerfile . >/dev/null
rm -rf dist/image
b push -q --format oci plumbline "oci:dist/image:$version"
b push -q plumbline "docker-archive:$tmp/image.tar:plumbline:$version"

# The healthcheck is in Docker's format only; all else is the same in both.
umoci unpack --rootless --image "dist/image:$version" "$tmp/unpacked" >/dev/null 2>&1
root=$tmp/unpacked/rootfs
b inspect --type image plumbline >"$tmp/config.json"
grep -q '"User": "65532:65532"' "$tmp/config.json" || fail "the user is not 65532"
grep -q '/usr/bin/plumbline' <(grep -A8 -i '"healthcheck"' "$tmp/config.json") || fail "there is no healthcheck"
size=$(du -sm "$root" | cut -f1)
((size <= 60)) || fail "$size MB, the most is 60"
[[ $(find "$root" -type f -perm /111 | sed "s#$root##") == /usr/bin/plumbline ]] || fail "there are other programs: $(find "$root" -type f -perm /111)"
[[ -s $root/etc/ssl/certs/ca-certificates.crt ]] || fail "there are no authorities"
setuid=$(find "$root" -perm /6000)
[[ -z $setuid ]] || fail "setuid: $setuid"

# As a container runs: root read-only, /tmp and the state writable, another user, no capability.
mkdir "$tmp/state" && mkdir -p "$root/proc" "$root/dev" # as a runtime makes them
inside() {
	bwrap --unshare-all --share-net --cap-drop ALL --uid 65532 --gid 65532 --die-with-parent --ro-bind "$root" / \
		--proc /proc --dev /dev --tmpfs /tmp --bind "$tmp/state" /var/lib/plumbline --chdir /var/lib/plumbline \
		--clearenv --setenv PLUMBLINE_LISTEN 127.0.0.1:"${PORT:-22480}" "$@"
}
inside /usr/bin/plumbline config check /etc/plumbline/plumbline.yaml >/dev/null
inside /usr/bin/plumbline demo --for 20s --listen 127.0.0.1:"${PORT:-22480}" --json >"$tmp/demo.json" 2>"$tmp/demo.log" &
demo=$!
for ((i = 0; i < 100; i++)); do
	inside /usr/bin/plumbline health --live --url http://127.0.0.1:"${PORT:-22480}" >/dev/null 2>&1 && break
	sleep 0.3
done
((i < 100)) || { cat "$tmp/demo.log"; fail "the healthcheck never succeeds"; }
wait $demo || { tail -5 "$tmp/demo.log"; fail "the demo failed in the image's root"; }
grep -q '"loop_closed": true' "$tmp/demo.json" || echo "image: the demo ran, its loop did not close on this busy machine"
echo "image: $size MB, user 65532, one program, healthcheck answered after $((i * 3 / 10)) s, demo ran on a read-only root"
