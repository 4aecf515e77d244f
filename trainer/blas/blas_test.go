//go:build ((linux && !android) || darwin || freebsd) && (amd64 || arm64)

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

// TestGemm: every pair of transpositions, sizes from 1 up to those that are shared by rows or by columns, leading dimensions
// beyond the width, α and β, against gonum's.
func TestGemm(t *testing.T) {
	lib := library(t)
	defer lib.SetThreads(lib.Threads())
	lib.SetThreads(3)
	for _, size := range [][3]int{{1, 1, 1}, {1, 10, 64}, {5, 1, 3}, {3, 7, 1}, {61, 10, 64}, {33, 129, 257}, {4, 3, 0}, {300, 131, 67}, {7, 5003, 61}} {
		m, n, k := size[0], size[1], size[2]
		for flags := range 8 {
			transA, transB, pad := flags&1 != 0, flags&2 != 0, 3*(flags>>2)
			lda, ldb, ldc := k+pad, n+pad, n+pad
			if transA {
				lda = m + pad
			}
			if transB {
				ldb = k + pad
			}
			lda, ldb = max(lda, 1), max(ldb, 1)
			a, b := numbers(max(m, k)*lda, 1), numbers(max(k, n)*ldb, 2)
			for _, scale := range [][2]float32{{1, 0}, {0.5, 1}, {-2, 0.25}} {
				got, want := numbers(m*ldc, 3), numbers(m*ldc, 3)
				if scale[1] == 0 {
					got[0] = float32(math.NaN()) // β = 0 overwrites
				}
				lib.Gemm(transA, transB, m, n, k, scale[0], a, lda, b, ldb, scale[1], got, ldc)
				head.Gonum{}.Gemm(transA, transB, m, n, k, scale[0], a, lda, b, ldb, scale[1], want, ldc)
				for i := range want {
					// Sums of k products of at most 1: their order moves the last bits.
					if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-6*float64(k+2)) {
						t.Fatalf("%d×%d×%d, flags %d, α β %v: value %d is %v, want %v", m, n, k, flags, scale, i, got[i], want[i])
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
	lib.Gemm(false, false, m, n, k, 1, a, k, b, n, 0, want, n)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			a, b, got := append(make([]float32, g), a...)[g:], append(make([]float32, 2*g), b...)[2*g:], make([]float32, g+m*n)[g:]
			for range 20 {
				lib.Gemm(false, false, m, n, k, 1, a, k, b, n, 0, got, n)
				if !slices.Equal(got, want) {
					t.Errorf("goroutine %d: other bits", g)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestGemmRefusesShortSlices(t *testing.T) {
	lib := library(t)
	for _, c := range []struct{ a, b, c, lda int }{{5, 6, 4, 3}, {6, 5, 4, 3}, {6, 6, 3, 3}, {6, 6, 4, 2}} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.HasPrefix(fmt.Sprint(r), "blas: ") {
					t.Errorf("%+v: got %v, want a panic of blas", c, r)
				}
			}()
			lib.Gemm(false, false, 2, 2, 3, 1, make([]float32, c.a), c.lda, make([]float32, c.b), 2, 0, make([]float32, c.c), 2)
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
	for setting, want := range map[string]string{"off": "switched off", "/nowhere/libopenblas.so": "/nowhere/libopenblas.so"} {
		out := child(setting)
		if runtime.GOOS != "linux" {
			want = ""
		}
		if !strings.Contains(out, "head.Gonum") || !strings.Contains(out, `msg="matrix products by gonum"`) || !strings.Contains(out, want) {
			t.Errorf("%s: got %q", setting, out)
		}
	}
	lib := library(t)
	if core := kernels(); strings.Contains(lib.Config(), "DYNAMIC_ARCH") && os.Getenv(coreEnv) == "" && !strings.Contains(strings.ToLower(lib.Config()), strings.ToLower(core)) {
		t.Errorf("kernels %q, want those for %s", lib.Config(), core)
	}
	if out := child(""); !strings.Contains(out, "*blas.OpenBLAS") || !strings.Contains(out, "threads=1") || !strings.Contains(out, `msg="matrix products by OpenBLAS"`) {
		t.Errorf("got %q", out)
	}
}

// BenchmarkGemm has both side by side on one thread, on products of trainings: batch×D by D×K.
func BenchmarkGemm(b *testing.B) {
	for _, size := range [][3]int{{128, 10, 64}, {128, 100, 512}, {256, 1000, 2048}} {
		m, n, k := size[0], size[1], size[2]
		x, w, out := numbers(m*k, 1), numbers(n*k, 2), make([]float32, m*n)
		run := func(name string, g head.GEMM) {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, k, n, name), func(b *testing.B) {
				for b.Loop() {
					g.Gemm(false, true, m, n, k, 1, x, k, w, k, 0, out, n)
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
