#!/usr/bin/env bash
# Assembles the kernels for every architecture that the driver may meet, with the ptxas of NVIDIA's package on PyPI, and
# prints a table of registers, stack and spills. It fails where ptxas does, or where a kernel spills.
#
#   trainer/backend/cuda/ptxas.sh DIR     (DIR keeps the package)
set -euo pipefail
VERSION=12.9.86
ARCHITECTURES="sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_100 sm_103 sm_120 sm_121"
dir=$1 ptx=$(dirname "${BASH_SOURCE[0]}")/kernels/kernels.ptx
ptxas=$dir/ptxas-$VERSION/nvidia/cuda_nvcc/bin/ptxas

if [[ ! -x $ptxas ]]; then
	python3 -m pip download -q --no-deps --only-binary :all: --platform manylinux2014_x86_64 --dest "$dir" "nvidia-cuda-nvcc-cu12==$VERSION"
	python3 -m zipfile -e "$dir"/nvidia_cuda_nvcc_cu12-$VERSION-*.whl "$dir/ptxas-$VERSION"
	rm "$dir"/nvidia_cuda_nvcc_cu12-$VERSION-*.whl
	chmod +x "$ptxas"
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for arch in $ARCHITECTURES; do
	"$ptxas" -v --gpu-name "$arch" -o "$out/cubin" "$ptx" 2>"$out/$arch" || { cat "$out/$arch" >&2; exit 1; }
done
cd "$out"
awk -v version=$VERSION -v list="$ARCHITECTURES" '
	FNR == 1 { arch = FILENAME }
	/Compiling entry function/ { split($0, part, "\047"); kernel = part[2]; seen[kernel] = 1 }
	# Behind an entry come its own numbers, then those of the functions that it calls: only the first are its stack.
	/Function properties for/ { own = $NF == kernel }
	/bytes stack frame/ {
		match($0, /[0-9]+ bytes spill stores/); stores = substr($0, RSTART) + 0
		match($0, /[0-9]+ bytes spill loads/); loads = substr($0, RSTART) + 0
		spills[kernel] += stores + loads
		if (own && $1 + 0 > stack[kernel]) stack[kernel] = $1 + 0
	}
	/Used [0-9]+ registers/ { match($0, /Used [0-9]+/); used[kernel, arch] = substr($0, RSTART + 5, RLENGTH - 5) }
	END {
		n = split(list, archs, " ")
		printf "# The kernels, assembled\n\nRegisters a thread by architecture, the largest stack frame and all spills in bytes; ptxas %s, `make ptxas`.\n\n| Kernel |", version
		for (i = 1; i <= n; i++) printf " %s |", substr(archs[i], 4)
		printf " Stack | Spills |\n|---|"
		for (i = 1; i <= n + 2; i++) printf "--:|"
		print ""
		sort = "sort"
		for (k in seen) {
			line = "| " k " |"
			for (i = 1; i <= n; i++) line = line " " used[k, archs[i]] " |"
			print line " " stack[k] + 0 " | " spills[k] + 0 " |" | sort
			all += spills[k]
			missing += used[k, archs[n]] == ""
		}
		close(sort)
		if (all || missing) { print "spills of " all + 0 " bytes, " missing " kernels without a figure" > "/dev/stderr"; exit 1 }
	}' $ARCHITECTURES
