package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
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

func kernelChecks() []check {
	return append(productChecks(), []check{
		{"powers", powers},
		{"probabilities", probabilities},
		{"weights of rows", rowWeights},
		{"weights by their mean", normalised},
		{"bins and ranks", binsAndRanks},
		{"parts of float32", parts},
		{"masks", masks},
		{"rows of logits", rowKernels},
		{"features", halves},
		{"labels", labelsAndHistory},
		{"rows", rowsAlone},
		{"sums of columns", columns},
		{"updates", updates},
	}...)
}

// oneRow runs row_losses on a row of logits with label 0, in no epoch, and returns the loss and the gradient.
func oneRow(z []float32, t lossTerm) (value float64, grad []float32, err error) {
	err = inLab(func(l *lab) error {
		epoch, plan := upload(l, make([]epochParams, 1)), upload(l, []lossPlan{{Terms: 1, Term: [maxTerms]lossTerm{t}}})
		values, out := l.room(8), l.room(4*len(z))
		l.run(rowLosses, eachRow(1, len(z)), ptr(epoch), ptr(plan), num(1), num(len(z)), ptr(upload(l, z)),
			ptr(upload(l, []int32{0})), ptr(0), ptr(0), num(0), num(0), ptr(0), ptr(0), ptr(0), ptr(values), ptr(out))
		value, grad = download[float64](l, values, 1)[0], download[float32](l, out, len(z))
		return nil
	})
	return value, grad, err
}

// exactly is what functions in double precision may be off, relatively.
const exactly = 1e-14

func off(got, want float64) bool { return !(math.Abs(got-want) <= exactly*max(math.Abs(want), 1e-3)) }

// powers: of k equal logits p is 1/k to the last bit, so that logarithms and powers show in full.
func powers() error {
	for _, k := range []int{2, 3, 4, 5, 7, 11, 20, 37, 64, 101, 300, 700} {
		not, nll := 1-1/float64(k), math.Log(float64(k))
		for _, gamma := range []float64{0, 0.3, 1, 2.5, 40, 3000} {
			for kind, base := range map[int32]float64{lossFocal: not, lossInverseFocal: 1 + 1/float64(k)} {
				if gamma > 100 && (kind == lossInverseFocal || k > 2) {
					continue // it overflows, or multiplies the rounding of the base
				}
				got, _, err := oneRow(make([]float32, k), lossTerm{Kind: kind, Weight: 1, Gamma: gamma})
				if err != nil {
					return err
				}
				if want := math.Pow(base, gamma) * nll; off(got, want) {
					return fmt.Errorf("%d classes, loss %d, gamma %g: %.17g, want %.17g", k, kind, gamma, got, want)
				}
			}
		}
	}
	return nil
}

// probabilities far below 1 have all their bits: the product with log2 e is carried in two parts.
func probabilities() error {
	z := make([]float32, 60)
	var sum float64
	for j := range z {
		z[j] = float32(-1.37 * float64(j))
		sum += math.Exp(float64(z[j]))
	}
	_, grad, err := oneRow(z, lossTerm{Kind: lossCE, Weight: 1})
	if err != nil {
		return err
	}
	// ex2.approx is 2 units in the last place off, the product and the sum another.
	const bound = 6e-7
	for j, g := range grad[1:] {
		if want := math.Exp(float64(z[j+1])) / sum; !(math.Abs(float64(g)/want-1) <= bound) {
			return fmt.Errorf("gradient of logit %g: %g, want %g", z[j+1], g, want)
		}
	}
	// The sum over the others, where they are all that the loss has.
	far := make([]float32, 60)
	for j := range far[1:] {
		far[j+1] = -70.3 - 0.11*float32(j%3)
	}
	sum = 0
	for _, v := range far[1:] {
		sum += math.Exp(float64(v))
	}
	if got, _, err := oneRow(far, lossTerm{Kind: lossCE, Weight: 1}); err != nil || !(math.Abs(got/sum-1) <= bound) {
		return fmt.Errorf("loss %g, want %g; %w", got, sum, err)
	}
	return nil
}

// smoothed is the weight of a row whose score is g.
func smoothed(g, nu float64, counts []float64) float64 {
	var sum, all float64
	for k, c := range counts {
		all += c
		sum += c / (1 + math.Exp(((float64(k)+0.5)/float64(len(counts))-g)/nu))
	}
	return -math.Log1p(-min(max(sum/all, 1/(all+1)), all/(all+1)))
}

// rowWeights: au_weights, whose logarithm and exponentials are those of float64, and their mean.
func rowWeights() error {
	counts := []float64{3, 0, 5, 2, 40, 17, 8, 0, 1, 90, 4}
	scores := []float64{0, 1, 0.03, 0.25, 0.5, 0.77, 0.9, 0.9999, 0.61, 0.12}
	tau := around{low: 0.7, high: 0.8}
	for _, c := range counts {
		tau.n += c
	}
	for _, nu := range []float64{0.0003, 0.02, 0.1, 1, 30} {
		plan := lossPlan{Kappa: 0.55, Nu: nu, Bins: int32(len(counts))}
		var beta, normal []float64
		err := inLab(func(l *lab) error {
			at, n := l.room(8*len(scores)), len(scores)
			l.run(auWeights, eachRow(n, len(counts)), ptr(upload(l, []lossPlan{plan})), num(n), num(len(counts)),
				ptr(upload(l, scores)), ptr(upload(l, counts)), ptr(upload(l, []around{tau})), ptr(at))
			beta = download[float64](l, at, n)
			l.run(auNormalise, oneBlock, num(n), ptr(at))
			normal = download[float64](l, at, n)
			return nil
		})
		if err != nil {
			return err
		}
		var mean float64
		for i, g := range scores {
			// kappa·(n−1) is 4.95.
			want := smoothed(min(g, tau.low+(4.95-4)*(tau.high-tau.low)), nu, counts)
			if !(math.Abs(beta[i]-want) <= 1e-13*want) {
				return fmt.Errorf("nu %g, score %g: %.17g, want %.17g", nu, g, beta[i], want)
			}
			mean += beta[i] / float64(len(scores))
		}
		for i, b := range beta {
			if off(normal[i], b/mean) {
				return fmt.Errorf("nu %g, score %g: %.17g by the mean, want %.17g", nu, scores[i], normal[i], b/mean)
			}
		}
	}
	return nil
}

// around is struct Around of kernels/au.h.
type around struct{ low, high, n float64 }

// binsAndRanks: scores on every edge of a bin, twice, and a little below; ranks of equal ones by their place.
func binsAndRanks() error {
	for _, bins := range []int{1, 7, 49, 50, 300} {
		var scores []float64
		want := make([]float64, bins)
		for k := range bins {
			edge := float64(k) / float64(bins)
			scores = append(scores, edge, edge, math.Nextafter(float64(k+1)/float64(bins), 0))
			want[k] = 3
		}
		scores = append(scores, 1)
		want[bins-1]++
		slices.Reverse(scores[len(scores)/3:])
		sorted := slices.Sorted(slices.Values(scores))
		for _, kappa := range []float64{0, 0.31, 0.5, 1} {
			plan := lossPlan{Kappa: kappa, Nu: 0.1, Bins: int32(bins)}
			low := int(kappa * float64(len(scores)-1))
			var counts []float64
			var found []around
			err := inLab(func(l *lab) error {
				n, at, to := len(scores), upload(l, scores), l.room(8*bins)
				tau := upload(l, make([]around, 1))
				l.run(auRanks, eachRow(n, n), ptr(upload(l, []lossPlan{plan})), num(n), ptr(at), ptr(tau))
				l.run(auCounts, oneBlock, num(n), num(bins), ptr(at), ptr(to), ptr(tau))
				counts, found = download[float64](l, to, bins), download[around](l, tau, 1)
				return nil
			})
			if err != nil {
				return err
			}
			wanted := around{sorted[low], sorted[min(low+1, len(sorted)-1)], float64(len(scores))}
			if !slices.Equal(counts, want) || found[0] != wanted {
				return fmt.Errorf("%d bins, kappa %g: counts %v, %v, want %v, %v",
					bins, kappa, counts, found[0], want, wanted)
			}
		}
	}
	return nil
}

// parts: the high part has the 11 bits of TF32, and both add up to the number.
func parts() error {
	for _, n := range []int{1, 255, 256, 1500} {
		x := numbers(n, 5)
		var high, low []float32
		err := inLab(func(l *lab) error {
			h, w := l.room(4*n), l.room(4*n)
			l.run(split, grid{2, 1, 256}, num(n), ptr(upload(l, x)), ptr(h), ptr(w))
			high, low = download[float32](l, h, n), download[float32](l, w, n)
			return nil
		})
		if err != nil {
			return err
		}
		for i, v := range x {
			h := math.Float32frombits((math.Float32bits(v) + 1<<12) &^ (1<<13 - 1))
			if high[i] != h || low[i] != v-h {
				return fmt.Errorf("%d numbers: %g is %g and %g, want %g and %g", n, v, high[i], low[i], h, v-h)
			}
		}
	}
	return nil
}

// same says where float32 numbers are not what they must be to the last bit.
func same(what string, got, want []float32) error {
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("%s: number %d is %g, want %g", what, i, got[i], want[i])
		}
	}
	return nil
}

// masks of 1 to 9 weights: a thread has four of them, and the last one fewer. scaled is beside it.
func masks() error {
	stream := philox.Stream{Seed: 1 << 40, Purpose: philox.Mask, A: 1, B: 9}
	for n := 1; n <= 9; n++ {
		w, want, bits := numbers(n, 3), make([]float32, n), make([]byte, n)
		for i := range n {
			if uint64(stream.Block4(uint32(i / 4))[i%4]) < philox.Threshold(0.6) {
				want[i], bits[i] = w[i], 1
			}
		}
		var got, half []float32
		var mask []byte
		err := inLab(func(l *lab) error {
			e := epochParams{Seed: 1 << 40, Threshold: philox.Threshold(0.6), First: 7, Step: 2}
			at, view, to := upload(l, w), l.room(4*n), l.room(n)
			l.run(masked, elements((n+3)/4), ptr(upload(l, []epochParams{e})), num(1), num(n),
				ptr(at), ptr(view), ptr(to))
			got, mask = download[float32](l, view, n), download[byte](l, to, n)
			l.run(scaled, elements(n), num(n), real32(0.5), ptr(at), ptr(view))
			half = download[float32](l, view, n)
			return nil
		})
		for i := range w {
			w[i] *= 0.5
		}
		if err := errors.Join(err, same("masked", got, want), same("scaled", half, w)); err != nil {
			return err
		}
		if !slices.Equal(mask, bits) {
			return fmt.Errorf("mask %v, want %v", mask, bits)
		}
	}
	return nil
}

// rowsAlone: biases and what is behind a ReLU, of rows that end with the array.
func rowsAlone() error {
	for _, width := range []int{1, 31, 33, 300} {
		const n = 3
		x, bias, delta := numbers(n*width, 1), numbers(width, 2), numbers(n*width, 3)
		x[0] = 0
		for _, relu := range []bool{false, true} {
			wantX, wantDelta := slices.Clone(x), slices.Clone(delta)
			for i := range x {
				if wantX[i] += bias[i%width]; relu && wantX[i] < 0 {
					wantX[i] = 0
				}
				if x[i] <= 0 {
					wantDelta[i] = 0
				}
			}
			var gotX, gotDelta []float32
			err := inLab(func(l *lab) error {
				out, act, to := upload(l, x), upload(l, x), upload(l, delta)
				l.run(biased, eachRow(n, width), num(width), boolean(relu), ptr(upload(l, bias)), ptr(out))
				l.run(reluBack, eachRow(n, width), num(width), ptr(act), ptr(to))
				gotX, gotDelta = download[float32](l, out, n*width), download[float32](l, to, n*width)
				return nil
			})
			err = errors.Join(err, same("biased", gotX, wantX), same("relu_back", gotDelta, wantDelta))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// columns: sums of whole numbers are exact in any order.
func columns() error {
	for _, size := range [][2]int{{1, 1}, {5, 31}, {33, 33}, {700, 65}} {
		n, width := size[0], size[1]
		in, want := make([]float32, n*width), make([]float32, width)
		wide, sum := make([]float64, n*width), make([]float64, width)
		for i := range in {
			in[i] = float32(i*7%13 - 6)
			wide[i] = float64(in[i])
			want[i%width] += in[i]
			sum[i%width] += wide[i]
		}
		var got []float32
		var total []float64
		err := inLab(func(l *lab) error {
			to, all := l.room(4*width), upload(l, make([]float64, width))
			l.run(columnSums, grid{(width + 31) / 32, 1, 1024}, num(n), num(width), ptr(upload(l, in)), ptr(to))
			l.run(sums, grid{width, 1, 256}, num(n), num(width), ptr(upload(l, wide)), ptr(all))
			got, total = download[float32](l, to, width), download[float64](l, all, width)
			return nil
		})
		if err := errors.Join(err, same("column_sums", got, want)); err != nil {
			return err
		}
		if !slices.Equal(total, sum) {
			return fmt.Errorf("sums of %d×%d: %v, want %v", n, width, total, sum)
		}
	}
	return nil
}

// updates: each option of the step by itself, in numbers that show which was taken.
func updates() error {
	for option := range 8 {
		e := epochParams{Step: 4, LR: 0.5, Momentum: 0.75, Decay: 0.125}
		e.Decoupled, e.Nesterov = int32(option&1), int32(option>>1&1)
		const n = 5
		w, g, v := []float32{1, 2, -3, 4, 8}, []float32{2, -4, 8, 1, 16}, []float32{4, 8, -2, 1, 32}
		mask := []byte{1, 0, 1, 0, 1}
		wantW, wantV := make([]float32, n), make([]float32, n)
		for i := range n {
			gi, shrink := g[i], float32(0)
			if option>>2 == 1 {
				gi *= float32(mask[i])
			}
			if e.Decoupled != 0 {
				shrink = e.LR * e.Decay * w[i]
			} else {
				gi += e.Decay * w[i]
			}
			wantV[i] = e.Momentum*v[i] + gi
			step := wantV[i]
			if e.Nesterov != 0 {
				step = gi + e.Momentum*wantV[i]
			}
			wantW[i] = w[i] - e.LR*step - shrink
		}
		var gotW, gotV []float32
		var after []epochParams
		err := inLab(func(l *lab) error {
			at, params, velocity, m := upload(l, []epochParams{e}), upload(l, w), upload(l, v), uint64(0)
			if option>>2 == 1 {
				m = upload(l, mask)
			}
			l.run(update, elements(n), ptr(at), num(n), ptr(params), ptr(upload(l, g)), ptr(velocity), ptr(m))
			gotW, gotV = download[float32](l, params, n), download[float32](l, velocity, n)
			after = download[epochParams](l, at, 1)
			return nil
		})
		if err := errors.Join(err, same("weights", gotW, wantW), same("velocities", gotV, wantV)); err != nil {
			return fmt.Errorf("options %03b: %w", option, err)
		}
		if e.Step++; after[0] != e {
			return fmt.Errorf("options %03b: epoch %+v, want %+v", option, after[0], e)
		}
	}
	return nil
}
