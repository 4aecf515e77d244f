package cuda

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/plumbline/plumbline/trainer/philox"
)

// lab launches single kernels on arrays that are no larger than they must be. The first error stays.
type lab struct {
	*device
	err error
}

// inLab runs f on a device.
func inLab(f func(l *lab) error) error {
	d, err := openDevice(&Backend{BLAS: OwnKernels})
	if err != nil {
		return err
	}
	l := &lab{device: d}
	err = d.thread.do(func() error { return errors.Join(f(l), l.err) })
	return errors.Join(err, d.close())
}

func (l *lab) note(err error) {
	if l.err == nil {
		l.err = err
	}
}

// room is memory for n bytes, which nobody has written.
func (l *lab) room(n int) uint64 {
	at, err := l.alloc("test", n)
	l.note(err)
	return at
}

func upload[T any](l *lab, v []T) uint64 {
	at := l.room(len(bytesOf(v)))
	l.note(l.put(at, bytesOf(v)))
	return at
}

func download[T any](l *lab, at uint64, n int) []T {
	v := make([]T, n)
	l.note(l.get(bytesOf(v), at))
	return v
}

func (l *lab) run(k kernel, g grid, args ...arg) { l.note(l.launch(k, g, args...)) }

// numbers are between -1 and 1.
func numbers(n int, seed uint64) []float32 {
	src := philox.Source{Stream: philox.Stream{Seed: seed}}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(2*src.Float64() - 1)
	}
	return v
}

// productShapes reach every part of a tile with its last row, column and inner index: a thread fetches eight parts of
// one operand's tile and four of the other's, and has 8×4 of the results.
var productShapes = [][3]int{
	{8, 4, 16}, {8, 4, 32}, {1, 1, 1}, {17, 21, 3}, {34, 38, 5}, {51, 55, 7}, {68, 64, 9}, {85, 66, 11}, {102, 2, 13},
	{119, 19, 15}, {128, 63, 17}, {129, 5, 19}, {5, 130, 21}, {6, 3, 23}, {7, 7, 25}, {3, 9, 27}, {2, 65, 29},
	{4, 40, 31}, {130, 60, 33},
}

// product is compared with the sum in float64. Everything outside of C stays as it is, for arrays end with their last
// number.
func checkProduct(ta, tb bool, m, n, k int) error {
	a, b := numbers(m*k, 1), numbers(k*n, 2)
	var got []float32
	err := inLab(func(l *lab) error {
		p := product{ta: ta, tb: tb, m: m, n: n, k: k, a: upload(l, a), b: upload(l, b), c: l.room(4 * m * n)}
		l.note(l.ownGEMM(p))
		got = download[float32](l, p.c, m*n)
		return nil
	})
	if err != nil {
		return err
	}
	at := func(v []float32, i, j, width, height int, t bool) float64 {
		if t {
			return float64(v[j*height+i])
		}
		return float64(v[i*width+j])
	}
	for i := range m {
		for j := range n {
			var sum float64
			for q := range k {
				sum += at(a, i, q, k, m, ta) * at(b, q, j, n, k, tb)
			}
			if !(math.Abs(float64(got[i*n+j])-sum) <= 1e-5) {
				return fmt.Errorf("%d×%d by %d×%d: element %d,%d is %v, want %v", m, k, k, n, i, j, got[i*n+j], sum)
			}
		}
	}
	return nil
}

// check is one of those that a changed kernel must fail.
type check struct {
	name string
	run  func() error
}

func productChecks() []check {
	var all []check
	for _, s := range productShapes {
		for _, t := range [][2]bool{{false, false}, {false, true}, {true, false}} {
			all = append(all, check{
				fmt.Sprintf("product %v %v", s, t),
				func() error { return checkProduct(t[0], t[1], s[0], s[1], s[2]) },
			})
		}
	}
	return all
}

// TestKernels: kernels by themselves, to the accuracy that they have.
func TestKernels(t *testing.T) {
	needDevice(t)
	for _, c := range kernelChecks() {
		if err := c.run(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func kernelChecks() []check { return productChecks() }
