package cuda

import (
	"fmt"
	"path/filepath"
)

// ownKernels is Backend.BLAS for the package's own products, and what Info says of them.
const ownKernels = "own kernels"

// workspaceBytes is what NVIDIA recommends for Hopper; recorded launches need a workspace that stays.
const workspaceBytes = 32 << 20

// blas is cuBLAS with its handle.
type blas struct {
	api    *cublas
	handle uintptr
	// alpha and beta are read by pointer.
	alpha, beta *float32
}

// blasNames are the libraries to try: by soname, in CUDA's directories, in Python's packages.
func blasNames() []string {
	var names []string
	for _, version := range []string{"13", "12", "11"} {
		names = append(names, "libcublas.so."+version)
	}
	for _, pattern := range []string{
		"/usr/local/cuda/lib64/libcublas.so.1?", "/usr/local/cuda*/targets/*/lib/libcublas.so.1?", "/opt/cuda/lib64/libcublas.so.1?",
		"/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublas.so.1?", "/usr/lib/python3*/*-packages/nvidia/*/lib/libcublas.so.1?",
		"/opt/*/lib/python3*/*-packages/nvidia/*/lib/libcublas.so.1?",
	} {
		found, err := filepath.Glob(pattern)
		if err == nil {
			names = append(names, found...)
		}
	}
	return names
}

// openBLAS takes cuBLAS where it is found and wanted, and leaves d.blas nil otherwise. A library that was named must work.
func (d *device) openBLAS(wanted string) error {
	d.info.BLAS = ownKernels
	if wanted == ownKernels {
		return nil
	}
	names := blasNames()
	if wanted != "" {
		names = []string{wanted}
	}
	b, name, err := d.tryBLAS(names)
	switch {
	case err == nil:
		d.blas, d.info.BLAS = b, name
	case wanted != "":
		return unsupported("%v", err)
	}
	return nil
}

func (d *device) tryBLAS(names []string) (*blas, string, error) {
	handle, name, err := open(names)
	if err != nil {
		return nil, "", err
	}
	b := &blas{api: &cublas{}, alpha: new(float32), beta: new(float32)}
	*b.alpha = 1
	if err := bind(handle, b.api); err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	if s := b.api.Create(&b.handle); s != 0 {
		return nil, "", fmt.Errorf("%s: cublasCreate: status %d", name, s)
	}
	work, err := d.alloc("cuBLAS", workspaceBytes)
	if err != nil {
		b.api.Destroy(b.handle)
		return nil, "", err
	}
	// In this order: setting the stream resets the workspace.
	s := b.api.SetStream(b.handle, d.stream)
	if s == 0 {
		s = b.api.SetWorkspace(b.handle, work, workspaceBytes)
	}
	if s != 0 {
		b.api.Destroy(b.handle)
		return nil, "", fmt.Errorf("%s: stream and workspace: status %d", name, s)
	}
	return b, name, nil
}

// gemm puts C = op(A)·op(B) into the stream, row-major, op(A) m×k and op(B) k×n; not both are transposed.
func (d *device) gemm(ta, tb bool, m, n, k int, a uint64, lda int, b uint64, ldb int, c uint64, ldc int) error {
	if d.blas != nil {
		// Row-major C is column-major Cᵀ = op(B)ᵀ·op(A)ᵀ.
		op := func(t bool) int32 {
			if t {
				return 1
			}
			return 0
		}
		s := d.blas.api.GemmEx(d.blas.handle, op(tb), op(ta), int32(n), int32(m), int32(k), d.blas.alpha, b, cublasFloat32, int32(ldb),
			a, cublasFloat32, int32(lda), d.blas.beta, c, cublasFloat32, int32(ldc), cublasComputeFloat32, cublasDefaultAlgorithm)
		if s != 0 {
			return fmt.Errorf("cuda: cublasGemmEx of %d×%d by %d×%d: status %d", m, k, k, n, s)
		}
		return nil
	}
	f := gemmNN
	switch {
	case ta && tb:
		panic("cuda: product of two transposed matrices")
	case ta:
		f = gemmTN
	case tb:
		f = gemmNT
	}
	const tile = 64
	return d.launch(f, (n+tile-1)/tile, (m+tile-1)/tile, 256, ptr(a), ptr(b), ptr(c), num(m), num(n), num(k), num(lda), num(ldb), num(ldc))
}
