#!/usr/bin/env bash
# Everything that needs a real GPU, with an end of its own for each: parity on all losses, compute-sanitizer, and epochs at
# least twice as fast as PyTorch's. PLUMBLINE_DOCS=1 writes the timings to bench/results/train-gpu.md.
#
#   trainer/backend/cuda/gpu_check.sh [tests|sanitizer|speed]…      (all of them without an argument)
#
# Uses no network where there are Go with its modules, or a test binary made elsewhere (CGO_ENABLED=0 go test -c -o cuda.test
# ./trainer/backend/cuda) named by CUDA_TEST; CUDA's compute-sanitizer; and TORCH (python3), a Python with PyTorch for
# CUDA. What is missing is named at the end. ROWS, FEATURES, CLASSES and BATCH are the size of an epoch, TFLOPS and GBS the
# peaks of the device (an H200's).
#
# Exit code 0: all passed; 1: something failed; 3: something could not be run.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

ROWS=${ROWS:-1000000} FEATURES=${FEATURES:-2048} CLASSES=${CLASSES:-1000} BATCH=${BATCH:-1024}
TFLOPS=${TFLOPS:-67} GBS=${GBS:-4800} TORCH=${TORCH:-python3}
least=2 # times as fast as PyTorch
failed=() missing=()
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
have() { command -v "$1" >/dev/null; }
# run NAME COMMAND… keeps what the command prints, notes a failure and goes on.
run() {
	local name=$1
	shift
	step "$name"
	"$@" 2>&1 | tee "$work/last" || failed+=("$name")
}

# cuBLAS where only Python's packages have it.
find_cublas() {
	if [[ -n ${PLUMBLINE_LIBCUBLAS:-} ]] || ldconfig -p | grep -q libcublas.so; then return; fi
	local found
	found=$("$TORCH" -c 'import glob, nvidia
for at in nvidia.__path__:
    for name in glob.glob(at + "/*/lib/libcublas.so.1?"): print(name)' 2>/dev/null | head -1)
	if [[ -n $found ]]; then export PLUMBLINE_LIBCUBLAS=$found; else missing+=("cuBLAS: own kernels multiply"); fi
}

# Parity of losses, shapes, precisions and all cases of the conformance package. Tests that need the stand-in skip.
tests() {
	if "$CUDA_TEST" -test.v -test.run 'TestConformance/found' | grep -q -- '--- SKIP'; then
		missing+=("tests: no device")
		return
	fi
	run "tests on the device" "$CUDA_TEST" -test.count=1
}

sanitizer() {
	if ! have compute-sanitizer; then
		missing+=("sanitizer: no compute-sanitizer")
		return
	fi
	local tool
	for tool in memcheck racecheck initcheck synccheck; do
		run "compute-sanitizer $tool" compute-sanitizer --tool "$tool" --error-exitcode 9 \
			"$CUDA_TEST" -test.run 'TestKernels|TestLosses|TestTies|TestShapes|TestStreamCDF'
	done
}

# compare OURS THEIRS adds a row, and notes a failure below the bar.
compare() {
	local ours theirs
	ours=$(awk -v name="BenchmarkEpoch/$1" '{ sub(/-[0-9]+$/, "", $1) } $1 == name { for (i = 2; i < NF; i++) if ($(i + 1) == "ms/epoch") print $i }' "$work/ours")
	theirs=$(awk -v name="$2" '$1 == name { print $2 }' "$work/torch")
	if [[ -z $ours || -z $theirs ]]; then
		failed+=("speed: no time of $1 or of $2")
		return
	fi
	awk -v a="$1" -v b="${2//_/ }" -v ours="$ours" -v theirs="$theirs" -v least=$least 'BEGIN {
		printf "| %s | %.1f | %s | %.1f | %.2f |\n", a, ours, b, theirs, theirs / ours; exit theirs < least * ours }' >>"$work/table" ||
		failed+=("speed: $1 is not $least times as fast as PyTorch $2")
}

speed() {
	local loss
	for loss in au ce; do
		run "epochs of $ROWS × $FEATURES, K = $CLASSES, batch $BATCH, $loss" "$CUDA_TEST" -test.run '^$' -test.bench Epoch \
			-test.benchtime 3x -rows "$ROWS" -features "$FEATURES" -classes "$CLASSES" -batch "$BATCH" -loss "$loss" \
			-tflops "$TFLOPS" -gbs "$GBS"
	done
	mv "$work/last" "$work/ours"
	if ! "$TORCH" -c 'import torch' 2>/dev/null; then
		missing+=("speed: no PyTorch")
		return
	fi
	run "PyTorch, the same size" "$TORCH" torch_epoch.py "$ROWS" "$FEATURES" "$CLASSES" "$BATCH"
	mv "$work/last" "$work/torch"
	printf '| plumbline | ms an epoch | PyTorch | ms an epoch | times as fast |\n|---|--:|---|--:|--:|\n' >"$work/table"
	compare fp32 eager_fp32
	compare bf16 eager_bf16
	compare found compiled_fp32 # the default precision
	step "epochs of $ROWS rows, $FEATURES features, $CLASSES classes, mini-batches of $BATCH"
	cat "$work/table"
	if [[ -n ${PLUMBLINE_DOCS:-} ]]; then
		{
			printf '# Training on a GPU\nCommand: `trainer/backend/cuda/gpu_check.sh`, %s: epochs of %s rows, %s features, ' \
				"$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -1)" "$ROWS" "$FEATURES"
			printf '%s classes, mini-batches of %s, cross-entropy. `found` is the default.\n\n' "$CLASSES" "$BATCH"
			cat "$work/table"
		} >../../../bench/results/train-gpu.md
	fi
}

if [[ $# == 0 ]]; then set -- tests sanitizer speed; fi
for part in "$@"; do
	case $part in
	tests | sanitizer | speed) ;;
	*) echo "part $part, allowed tests, sanitizer, speed" >&2 && exit 2 ;;
	esac
done
if [[ -z ${CUDA_TEST:-} ]]; then
	CUDA_TEST=$work/cuda.test
	CGO_ENABLED=0 go test -c -o "$CUDA_TEST" . || exit 1
fi
if have nvidia-smi; then nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv; fi
find_cublas
for part in "$@"; do "$part"; done
step "done"
for what in "${failed[@]}"; do echo "failed: $what"; done
for what in "${missing[@]}"; do echo "not run: $what"; done
if ((${#failed[@]})); then exit 1; fi
if ((${#missing[@]})); then exit 3; fi
echo "all passed"
