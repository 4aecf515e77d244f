//go:build ((linux && !android) || darwin) && (amd64 || arm64) && !static

package blas

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/trainer/backend"
	"github.com/plumbline/plumbline/trainer/backend/conformance"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/philox"
)

// library is OpenBLAS, or the test is skipped.
func library(t testing.TB) *OpenBLAS {
	t.Helper()
	lib, err := Load()
	if err != nil {
		t.Skip(err)
	}
	return lib
}

func numbers(n int, seed uint64) []float32 {
	src := philox.Source{Stream: philox.Stream{Seed: seed}}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(2*src.Float64() - 1)
	}
	return v
}

// matrix has random numbers, rows×cols as they are stored, with so many numbers between its rows.
func matrix(rows, cols, gap int, seed uint64) head.Matrix {
	stride := max(cols+gap, 1)
	return head.Matrix{Rows: rows, Cols: cols, Stride: stride, Data: numbers(rows*stride, seed)}
}

// TestGemm: every pair of transpositions, sizes from 1 up to those that are shared by rows or by columns, leading
// dimensions beyond the width, α and β, against gonum's.
func TestGemm(t *testing.T) {
	lib := library(t)
	defer lib.SetThreads(lib.Threads())
	lib.SetThreads(3)
	sizes := []struct{ m, n, k int }{
		{1, 1, 1},
		{1, 10, 64},
		{5, 1, 3},
		{3, 7, 1},
		{61, 10, 64},
		{4, 3, 0},
		{33, 129, 257},
		{300, 131, 67},
		{7, 5003, 61},
	}
	for _, size := range sizes[:testsize.Short(6, len(sizes))] {
		for flags := range 8 {
			gap := 3 * (flags >> 2)
			a, b := matrix(size.m, size.k, gap, 1), matrix(size.k, size.n, gap, 2)
			if flags&1 != 0 {
				a = matrix(size.k, size.m, gap, 1).T()
			}
			if flags&2 != 0 {
				b = matrix(size.n, size.k, gap, 2).T()
			}
			for _, scale := range [][2]float32{{1, 0}, {0.5, 1}, {-2, 0.25}} {
				got, want := matrix(size.m, size.n, gap, 3), matrix(size.m, size.n, gap, 3)
				if scale[1] == 0 {
					got.Data[0] = float32(math.NaN()) // β = 0 overwrites
				}
				lib.Gemm(scale[0], a, b, scale[1], got)
				head.Gonum{}.Gemm(scale[0], a, b, scale[1], want)
				for i, w := range want.Data {
					// Sums of k products of at most 1: their order moves the last bits.
					if d := math.Abs(float64(got.Data[i] - w)); !(d <= 1e-6*float64(size.k+2)) {
						t.Fatalf("%+v, flags %d, α β %v: value %d is %v, want %v",
							size, flags, scale, i, got.Data[i], w)
					}
				}
			}
		}
	}
}

// TestSameBits: from several goroutines at once, at any alignment, the same product has the same bits.
func TestSameBits(t *testing.T) {
	lib := library(t)
	const m, n, k = 96, 40, 130
	a, b, want := numbers(m*k, 1), numbers(k*n, 2), make([]float32, m*n)
	multiply := func(a, b, c []float32) {
		lib.Gemm(1, head.Dense(m, k, a), head.Dense(k, n, b), 0, head.Dense(m, n, c))
	}
	multiply(a, b, want)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			a, b := append(make([]float32, g), a...)[g:], append(make([]float32, 2*g), b...)[2*g:]
			got := make([]float32, g+m*n)[g:]
			for range 20 {
				multiply(a, b, got)
				if !slices.Equal(got, want) {
					t.Errorf("goroutine %d: other bits", g)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestGemmRefusesShortSlices: what would read or write beyond a slice, or has no product, is a panic.
func TestGemmRefusesShortSlices(t *testing.T) {
	lib := library(t)
	for _, c := range []struct{ a, b, c, lda, k int }{
		{5, 6, 4, 3, 3}, {6, 5, 4, 3, 3}, {6, 6, 3, 3, 3}, {6, 6, 4, 2, 3}, {6, 8, 4, 3, 4},
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "blas: ") {
					t.Errorf("%+v: got %v, want a panic of blas", c, r)
				}
			}()
			a := head.Matrix{Rows: 2, Cols: 3, Stride: c.lda, Data: make([]float32, c.a)}
			b := head.Dense(c.k, 2, make([]float32, c.b))
			lib.Gemm(1, a, b, 0, head.Dense(2, 2, make([]float32, c.c)))
		}()
	}
}

func TestConformance(t *testing.T) {
	conformance.Check(t, backend.Go{GEMM: library(t)}, conformance.Tolerance{Params: 2e-5, Loss: 2e-6})
}

func TestThreads(t *testing.T) {
	lib := library(t)
	defer lib.SetThreads(lib.Threads())
	if lib.SetThreads(1); lib.Threads() != 1 {
		t.Errorf("%d threads, want 1", lib.Threads())
	}
}

// TestBest: the log line names what is used, in a process with the library and in one without.
func TestBest(t *testing.T) {
	if v, ok := os.LookupEnv("BLAS_TEST_CHILD"); ok {
		var b bytes.Buffer
		g := Best(slog.New(slog.NewTextHandler(&b, nil)), 1)
		fmt.Printf("%s %T %s", v, g, b.String())
		os.Exit(0)
	}
	child := func(setting string) string {
		cmd := exec.Command(os.Args[0], "-test.run=TestBest$")
		cmd.Env = append(os.Environ(), "BLAS_TEST_CHILD=child", Env+"="+setting)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	const nowhere = "/nowhere/libopenblas.so"
	for setting, want := range map[string]string{"off": "switched off", nowhere: nowhere} {
		out := child(setting)
		if runtime.GOOS != "linux" {
			want = ""
		}
		for _, part := range []string{"head.Gonum", `msg="matrix products by gonum"`, want} {
			if !strings.Contains(out, part) {
				t.Errorf("%s: got %q, want %q in it", setting, out, part)
			}
		}
	}
	lib := library(t)
	chosen := strings.Contains(lib.Config(), "DYNAMIC_ARCH") && os.Getenv(coreEnv) == ""
	if core := kernels(); chosen && !strings.Contains(strings.ToLower(lib.Config()), strings.ToLower(core)) {
		t.Errorf("kernels %q, want those for %s", lib.Config(), core)
	}
	out := child("")
	for _, part := range []string{"*blas.OpenBLAS", "threads=1", `msg="matrix products by OpenBLAS"`} {
		if !strings.Contains(out, part) {
			t.Errorf("got %q, want %q in it", out, part)
		}
	}
}

// BenchmarkGemm has both side by side on one thread, on products of trainings: batch×D by D×K.
func BenchmarkGemm(b *testing.B) {
	for _, size := range [][3]int{{128, 10, 64}, {128, 100, 512}, {256, 1000, 2048}} {
		m, n, k := size[0], size[1], size[2]
		x, w, out := matrix(m, k, 0, 1), matrix(n, k, 0, 2).T(), matrix(m, n, 0, 3)
		run := func(name string, g head.GEMM) {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, k, n, name), func(b *testing.B) {
				for b.Loop() {
					g.Gemm(1, x, w, 0, out)
				}
				flop := 2 * float64(m) * float64(n) * float64(k)
				b.ReportMetric(flop*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
		run("gonum", head.Gonum{})
		if lib, err := Load(); err == nil {
			defer lib.SetThreads(lib.Threads())
			lib.SetThreads(1)
			run("openblas", lib)
		}
	}
}
