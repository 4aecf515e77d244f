package metric

import (
	"math"
	"testing"
)

// hostile are the scores that a byte stands for: ties, edges of bins, extremes, zeros of both signs, what is refused.
var hostile = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 80, -80, 2000, -2000, 1e-30, math.SmallestNonzeroFloat32, 1. / 15, 2. / 15,
	0.2, 0.25,
	1. / 3, 0.4, 0.5, 0.6, 2. / 3, 0.75, 0.8, 0.9, 14. / 15, 1 - 0x1p-24, 1 - 1e-6, 0.1, 0.05, 1e38, -1e38,
	float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)),
}

// hostileRows makes rows of K = 1 + data[0] mod 20 classes of the bytes, a label before each row; with probs the last
// score of a row is what is left of 1, so that many are distributions.
func hostileRows(data []byte, probs bool) Rows {
	if len(data) == 0 {
		return Rows{K: 2}
	}
	k := 1 + int(data[0])%20
	r := Rows{K: k, Probs: probs}
	for data = data[1:]; len(data) > k; data = data[k+1:] {
		r.Labels = append(r.Labels, int32(int(data[0])%(k+1))-1)
		left := float32(1)
		for j, b := range data[1 : k+1] {
			v := hostile[int(b)%len(hostile)]
			if probs && b >= 128 {
				v = left * float32(b-127) / 128
			}
			if probs && j == k-1 && b >= 32 {
				v = max(left, 0)
			}
			left -= v
			r.F32 = append(r.F32, v)
		}
	}
	return r
}

// FuzzScan compares the pass by blocks with that in float64: the same rows are refused, every row is in the same bins,
// and the sums agree to what the kernel promises.
func FuzzScan(f *testing.F) {
	f.Add([]byte{3, 1, 4, 5, 6, 7, 0, 0, 0, 0, 0}, false)
	f.Add([]byte{2, 1, 12, 20, 255, 2, 0, 1, 2, 3, 10, 11, 255, 0, 200, 10, 90}, true)
	f.Add([]byte{0, 1, 2, 1, 0}, true)
	f.Fuzz(func(t *testing.T, data []byte, probs bool) {
		r := hostileRows(data, probs)
		if len(r.Labels) == 0 {
			return
		}
		for _, weighted := range []bool{false, true} {
			if weighted {
				for i := range r.Labels {
					r.W = append(r.W, float64(i%3)/2)
				}
			}
			for _, bins := range []int{15, 7, 1} {
				o, _ := Options{Bins: bins, CSF: Margin}.withDefaults()
				got, err := scanBlocks(r, o, true)
				want, wantErr := scanExact(r, r.F32, o, true)
				if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
					t.Fatalf("error %v, want %v", err, wantErr)
				}
				if err != nil || want.n == 0 {
					continue
				}
				const kernelTol = 1e-6
				compareScans(t, r, got, want, kernelTol)
				for b, w := range want.top {
					g := got.top[b]
					if g.N != w.N || g.W != w.W || g.W2 != w.W2 || g.SumA != w.SumA ||
						math.Abs(g.SumC-w.SumC) > kernelTol*(1+w.SumC) {
						t.Fatalf("bin %d: got %+v, want %+v", b, g, w)
					}
				}
				rows := EqualWidth(got.c, got.a, got.w, bins)
				for b, w := range rows {
					if got.top[b] != w {
						t.Fatalf("bin %d of the scan: %+v, of its rows %+v", b, got.top[b], w)
					}
				}
			}
		}
	})
}
