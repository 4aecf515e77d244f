package metric

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/calib/kernel/fixedpoint"
)

// blockCase are float32 rows with what the block path could get wrong: ties, uniform rows, probabilities on edges,
// underflow of float32 (|z| = 80) and of float64 (|z| = 2000), exact zeros, unlabelled rows among bad ones.
func blockCase(n, k int, probs bool, seed uint64) Rows {
	rng := rand.New(rand.NewPCG(seed, uint64(k)))
	r := Rows{K: k, Probs: probs}
	p := make([]float64, k)
	for range n {
		z := make([]float32, k)
		switch kind := rng.IntN(6); kind {
		case 0: // uniform
		case 1, 2:
			scale := []float64{80, 2000}[kind-1]
			for j := range z {
				z[j] = float32(scale * float64(rng.IntN(3)-1))
			}
		case 3: // p = 4/(3+k): edges of 15 bins at k = 2, 7, 12
			z[rng.IntN(k)] = float32(math.Log(4))
		default:
			for j := range z {
				z[j] = float32(3 * rng.NormFloat64())
			}
		}
		if probs {
			kernel.Logits(z, p)
			for j := range z {
				z[j] = float32(p[j])
			}
			if rng.IntN(4) == 0 { // not quite normalised, so that it is divided by its sum
				for j := range z {
					z[j] *= 0.97
				}
			}
		}
		y := int32(rng.IntN(k+1)) - 1
		if y < 0 {
			z[0] = float32(math.NaN())
		}
		r.F32, r.Labels = append(r.F32, z...), append(r.Labels, y)
	}
	return r
}

func TestBlocksAgreeWithFloat64(t *testing.T) {
	const kernelTol = 1e-6 // relative error of the block kernel
	for _, k := range []int{1, 2, 7, 12, 100, 1000} {
		for _, probs := range []bool{false, true} {
			for _, weighted := range []bool{false, true} {
				r := blockCase(1500, k, probs, 1)
				if weighted {
					rng := rand.New(rand.NewPCG(9, 9))
					for range r.Labels {
						r.W = append(r.W, float64(rng.IntN(3))/2)
					}
				}
				o, _ := Options{CSF: Margin}.withDefaults()
				got, err := scanBlocks(r, o, true)
				if err != nil {
					t.Fatal(err)
				}
				want, err := scanExact(r, r.F32, o, true)
				if err != nil {
					t.Fatal(err)
				}
				compareScans(t, r, got, want, kernelTol)
			}
		}
	}
}

func compareScans(t *testing.T, r Rows, got, want *scanned, tol float64) {
	t.Helper()
	near := func(what string, g, w float64) {
		t.Helper()
		if !(math.Abs(g-w) <= tol*max(1, math.Abs(w))) {
			t.Errorf("K=%d probs %v: %s: got %.12g, want %.12g", r.K, r.Probs, what, g, w)
		}
	}
	n := want.total
	near("nll", got.nll/n, want.nll/n)
	near("brier", got.brier/n, want.brier/n)
	near("cwece", got.classes.ECE(), want.classes.ECE())
	near("cwece_l2", got.classes.ECEL2(), want.classes.ECEL2())
	if got.right != want.right || got.total != want.total || len(got.c) != len(want.c) {
		t.Fatalf("K=%d: right %g of %g, want %g of %g", r.K, got.right, got.total, want.right, want.total)
	}
	for i := range got.c {
		near("conf", got.c[i], want.c[i])
		near("margin", got.csf[i], want.csf[i])
		if BinIndex(got.c[i], 15) != BinIndex(want.c[i], 15) {
			t.Fatalf("K=%d row %d: conf %v in another bin than %v", r.K, i, got.c[i], want.c[i])
		}
	}
	for k := range r.K {
		for b, g := range got.classes.Bins(k) {
			w := want.classes.Bins(k)[b]
			if g.N != w.N || math.Abs(g.W-w.W) > 1e-9 || g.SumA != w.SumA || math.Abs(g.SumC-w.SumC) > tol*(1+w.SumC) {
				t.Fatalf("K=%d probs %v class %d bin %d: got %+v, want %+v", r.K, r.Probs, k, b, g, w)
			}
		}
	}
}

func TestBlocksDoNotDependOnTheirSize(t *testing.T) {
	for _, probs := range []bool{false, true} {
		testBlockSizes(t, blockCase(700, 10, probs, 3))
	}
}

// testBlockSizes: rows in two parts, the first of any length, give the same sums as all at once.
func testBlockSizes(t *testing.T, r Rows) {
	o, _ := Options{}.withDefaults()
	whole, err := scanBlocks(r, o, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 15, 16, 17, 300, 699} {
		lead := Rows{K: 10, Probs: r.Probs, F32: make([]float32, 10*cut), Labels: make([]int32, cut)}
		for i := range lead.Labels {
			lead.Labels[i] = -1 // shifts the blocks and adds nothing
		}
		lead.F32, lead.Labels = append(lead.F32, r.F32...), append(lead.Labels, r.Labels...)
		s, err := scanBlocks(lead, o, true)
		if err != nil {
			t.Fatal(err)
		}
		if s.nll != whole.nll || s.brier != whole.brier || s.classes.ECE() != whole.classes.ECE() ||
			ECE(EqualWidth(s.c, s.a, nil, 15)) != ECE(EqualWidth(whole.c, whole.a, nil, 15)) {
			t.Errorf("after %d rows without a label: other sums", cut)
		}
	}
}

// TestBesideAnEdgeIsFloat64 gives the block path probabilities as far off as the kernel's contract allows: the bins
// must still be those of float64.
func TestBesideAnEdgeIsFloat64(t *testing.T) {
	o, _ := Options{}.withDefaults()
	for _, k := range []int{2, 3, 7, 12} {
		for j := range 14 { // the first class has p = (j+1)/15, rounded to float32 logits on either side
			p := float64(j+1) / 15
			z := make([]float32, k)
			z[0] = float32(math.Log(p / (1 - p) * float64(k-1)))
			r := Rows{K: k, F32: z, Labels: []int32{0}}
			want, err := scanExact(r, z, o, true)
			if err != nil {
				t.Fatal(err)
			}
			for _, off := range []float64{-9e-7, 9e-7} {
				b := block{Rows: r, rows: make([]kernel.Row, 1), z: z, e: make([]float32, k), likely: logProduct{p: 1}}
				b.unit = fixedpoint.ScaledRows{V: b.e, K: k, Rows: make([]int32, 1), Scale: make([]float64, 1)}
				kernel.LogitRows(b.rows, b.e, z, k, 1)
				b.rows[0].Conf *= 1 + off
				b.rows[0].Scale *= 1 + off
				got := newScanned(r, o, true)
				if err := b.addTo(got, &o); err != nil {
					t.Fatal(err)
				}
				if BinIndex(got.c[0], 15) != BinIndex(want.c[0], 15) {
					t.Errorf("K=%d, %d/15: conf %v, want the bin of %v", k, j+1, got.c[0], want.c[0])
				}
				for class := range k {
					for i, g := range got.classes.Bins(class) {
						if w := want.classes.Bins(class)[i]; g.N != w.N || g.SumA != w.SumA {
							t.Errorf("K=%d, %d/15, class %d bin %d: got %+v, want %+v", k, j+1, class, i, g, w)
						}
					}
				}
			}
		}
	}
}

func TestUnderflowIsNotZero(t *testing.T) {
	// |z| = 80: p = e^-160 is below float32 and in bin 0, with its hit; |z| = 2000: p is 0 in float64 and in no bin.
	for z, want := range map[float32]Bin{80: {N: 1, W: 1, W2: 1, SumA: 1}, 2000: {}} {
		r := Rows{K: 2, F32: []float32{z, -z}, Labels: []int32{1}}
		o, _ := Options{}.withDefaults()
		s, err := scanBlocks(r, o, true)
		if err != nil {
			t.Fatal(err)
		}
		got := s.classes.Bins(1)[0]
		if got.SumC > 1e-60 {
			t.Errorf("z = %g: Σp = %g", z, got.SumC)
		}
		if got.SumC = 0; got != want {
			t.Errorf("z = %g: got %+v, want %+v", z, got, want)
		}
	}
}

func TestBlockErrorsNameTheRow(t *testing.T) {
	r := blockCase(40, 3, false, 4)
	r.Labels[33], r.F32[33*3+1] = 0, float32(math.Inf(1))
	o, _ := Options{}.withDefaults()
	_, got := scanBlocks(r, o, true)
	_, want := scanExact(r, r.F32, o, true)
	if got == nil || want == nil || got.Error() != want.Error() {
		t.Errorf("got %v, want %v", got, want)
	}
}

func benchmarkBasic(b *testing.B, n, k int) {
	rng := rand.New(rand.NewPCG(1, 2))
	z, q := make([]float32, n*k), make([]float32, n*k)
	r := Rows{K: k, Labels: make([]int32, n)}
	for i := range z {
		z[i] = float32(2 * rng.NormFloat64())
	}
	p := make([]float64, k)
	for i := range r.Labels {
		r.Labels[i] = int32(rng.IntN(k))
		row := z[i*k : (i+1)*k]
		row[r.Labels[i]] += 6
		kernel.Logits(row, p)
		for j, v := range p {
			q[i*k+j] = float32(v)
		}
	}
	for _, probs := range []bool{false, true} {
		r.Probs, r.F32 = probs, z
		if probs {
			r.F32 = q
		}
		b.Run(map[bool]string{false: "logits", true: "probs"}[probs], func(b *testing.B) {
			b.SetBytes(int64(4 * n * k))
			for b.Loop() {
				if _, err := Basic(r, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBasic1Mx10(b *testing.B)     { benchmarkBasic(b, 1_000_000, 10) }
func BenchmarkBasic100kx1000(b *testing.B) { benchmarkBasic(b, 100_000, 1000) }
