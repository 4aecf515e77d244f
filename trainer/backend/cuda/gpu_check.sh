#!/usr/bin/env bash
# Everything that needs a real GPU: tests and conformance, compute-sanitizer, timings beside their bounds and PyTorch.
#
#   trainer/backend/cuda/gpu_check.sh [tests|sanitizer|bench|torch]…      (all of them without an argument)
#
# Needs Go, or a test binary made elsewhere (CGO_ENABLED=0 go test -c -o cuda.test ./trainer/backend/cuda) named by
# CUDA_TEST. ROWS, FEATURES, CLASSES, BATCH, TFLOPS and GBS set the timings' size and the device's peaks (H200 here).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

ROWS=${ROWS:-1000000} FEATURES=${FEATURES:-2048} CLASSES=${CLASSES:-1000} BATCH=${BATCH:-1024}
TFLOPS=${TFLOPS:-67} GBS=${GBS:-4800}

step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
have() { command -v "$1" >/dev/null; }

if [[ -z ${CUDA_TEST:-} ]]; then
	CUDA_TEST=$(mktemp -d)/cuda.test
	CGO_ENABLED=0 go test -c -o "$CUDA_TEST" .
fi

# cuBLAS where only Python's packages have it.
if [[ -z ${PLUMBLINE_LIBCUBLAS:-} ]] && ! ldconfig -p | grep -q libcublas.so; then
	found=$(python3 -c 'import glob, nvidia
for at in nvidia.__path__:
    for name in glob.glob(at + "/*/lib/libcublas.so.1?"): print(name)' 2>/dev/null | head -1 || true)
	if [[ -n $found ]]; then export PLUMBLINE_LIBCUBLAS=$found; fi
fi

tests() {
	step "tests on the device"
	"$CUDA_TEST" -test.v -test.count=1 2>&1 | grep -vE '^=== RUN'
	if have ptxas; then
		step "registers and spills"
		ptxas -v --gpu-name "sm_$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)" \
			-o /dev/null kernels/kernels.ptx 2>&1 | grep -E 'Compiling entry|registers|spill'
	fi
}

sanitizer() {
	if ! have compute-sanitizer; then
		step "no compute-sanitizer: not run"
		return
	fi
	for tool in memcheck racecheck initcheck synccheck; do
		step "compute-sanitizer $tool"
		compute-sanitizer --tool "$tool" --error-exitcode 9 "$CUDA_TEST" -test.run 'TestLosses|TestShapes|TestStreamCDF' -test.v |
			grep -vE '^=== RUN' | tail -20
	done
}

bench() {
	local loss
	for loss in ce au; do
		step "epochs of $ROWS x $FEATURES, K = $CLASSES, batch $BATCH, $loss"
		"$CUDA_TEST" -test.run '^$' -test.bench Epoch -test.benchtime 3x -test.v -rows "$ROWS" -features "$FEATURES" -classes "$CLASSES" \
			-batch "$BATCH" -loss "$loss" -tflops "$TFLOPS" -gbs "$GBS"
	done
}

torch() {
	if ! python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
		step "no PyTorch that sees a device: not run"
		return
	fi
	step "PyTorch, the same size"
	python3 torch_epoch.py "$ROWS" "$FEATURES" "$CLASSES" "$BATCH"
}

if have nvidia-smi; then nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv; fi
if [[ $# == 0 ]]; then set -- tests sanitizer bench torch; fi
for part in "$@"; do
	case $part in
	tests | sanitizer | bench | torch) "$part" ;;
	*) echo "part $part, allowed tests, sanitizer, bench, torch" >&2 && exit 2 ;;
	esac
done
step "done"
