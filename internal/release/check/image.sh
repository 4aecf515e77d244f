#!/usr/bin/env bash
# image.sh VERSION: builds deploy/docker/Dockerfile by buildah, without a daemon and without a network, writes it to
# dist/image as an OCI layout, checks what is in it, and runs the demo in its root, read-only, as its user. On amd64 the
# same for Dockerfile.gpu, dist/image-gpu; its program trains without a driver, and with the stand-in of `make cuda-fake`
# where there is one.
# Debian: apt-get install --no-install-recommends buildah umoci bubblewrap.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
version=$1 tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "image: $*" >&2; exit 1; }
for tool in buildah umoci bwrap; do command -v $tool >/dev/null || fail "no $tool: apt-get install --no-install-recommends buildah umoci bubblewrap"; done

export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot XDG_RUNTIME_DIR=$tmp
b() { buildah --root "$tmp/storage" --runroot "$tmp/run" "$@"; }
arch=$(go env GOARCH)
# build NAME FILE PROGRAM TO ARGS…: the image, and its root unpacked to $tmp/NAME.
build() {
	local name=$1 file=$2 program=$3 to=$4
	shift 4
	b bud -q --network none --format docker --build-context certificates=/etc/ssl/certs --build-arg VERSION="$version" \
		--build-arg PROGRAM="dist/bin/linux/$arch/$program" --timestamp "$(git log -1 --format=%ct)" "$@" \
		-t "$name" -f "$file" . >/dev/null
	rm -rf "$to"
	b push -q --format oci "$name" "oci:$to:$version"
	umoci unpack --rootless --image "$to:$version" "$tmp/$name" >/dev/null 2>&1
	# The healthcheck is in Docker's format only; all else is the same in both.
	b inspect --type image "$name" >"$tmp/$name.json"
	grep -q '"User": "65532:65532"' "$tmp/$name.json" || fail "$name: the user is not 65532"
	grep -q '/usr/bin/plumbline' <(grep -A8 -i '"healthcheck"' "$tmp/$name.json") || fail "$name: there is no healthcheck"
}
# content NAME PROGRAMS: its size, that it has these programs and no others, the authorities, nothing setuid.
content() {
	local root=$tmp/$1/rootfs
	size=$(du -sm "$root" | cut -f1)
	((size <= 60)) || fail "$1: $size MB, the most is 60"
	programs=$(find "$root" -type f -perm /111 | sed "s#$root##" | sort | tr '\n' ' ')
	[[ $programs == "$2 " ]] || fail "$1: programs are $programs, want $2"
	[[ -s $root/etc/ssl/certs/ca-certificates.crt ]] || fail "$1: there are no authorities"
	setuid=$(find "$root" -perm /6000)
	[[ -z $setuid ]] || fail "$1: setuid: $setuid"
}
build plumbline deploy/docker/Dockerfile plumbline dist/image
content plumbline /usr/bin/plumbline
root=$tmp/plumbline/rootfs

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
[[ $arch == amd64 ]] || exit 0

# Alike, for trainers: glibc's loader beside the program.
mkdir "$tmp/glibc"
for file in /usr/lib/x86_64-linux-gnu/{libc.so.6,libm.so.6,libdl.so.2,libpthread.so.0,librt.so.1,libgcc_s.so.1,libstdc++.so.6} \
	/lib64/ld-linux-x86-64.so.2; do
	cp -L "$file" "$tmp/glibc/"
done
build plumbline-gpu deploy/docker/Dockerfile.gpu plumbline-gpu dist/image-gpu --build-context glibc="$tmp/glibc"
content plumbline-gpu "/lib64/ld-linux-x86-64.so.2 /usr/bin/plumbline"
grep -q 'NVIDIA_DRIVER_CAPABILITIES=compute,utility' "$tmp/plumbline-gpu.json" || fail "plumbline-gpu: the runtime would mount no CUDA"
root=$tmp/plumbline-gpu/rootfs
mkdir -p "$root/proc" "$root/dev"
train() {
	inside --ro-bind examples/data /tmp/data --setenv LD_LIBRARY_PATH /usr/lib/x86_64-linux-gnu:/usr/lib64:/usr/lib /usr/bin/plumbline \
		train /tmp/data/features.parquet --head /tmp/data/head.safetensors -o "$1" --backend cuda --recipe ce >"$tmp/train.log" 2>&1 || true
	grep -q "$2" "$tmp/train.log" && grep -q "written to $1" "$tmp/train.log" || { cat "$tmp/train.log"; fail "plumbline-gpu: train, want $2"; }
}
train /tmp/none "no driver: libcuda.so.1"
with="no driver here"
# The stand-in of `make cuda-fake`, where the runtime mounts the driver.
if [[ -s .cache/libfakecuda.so ]]; then
	cp .cache/libfakecuda.so "$root/usr/lib/x86_64-linux-gnu/libcuda.so.1"
	train /tmp/new "training on a device"
	with="trained on a stand-in for the driver"
fi
echo "image-gpu: $size MB, user 65532, glibc's loader and the program, $with"
