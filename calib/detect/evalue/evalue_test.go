package evalue

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEBH compares with the definition: k is rejected if any k* that includes it satisfies e_(k*) ≥ K/(αk*).
func TestEBH(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	rejections := 0
	for range 500 {
		k := 1 + rng.IntN(12)
		e := make([]float64, k)
		for i := range e {
			e[i] = rng.NormFloat64()*4 + 2
			if rng.IntN(10) == 0 {
				e[i] = math.Inf(-1)
			}
		}
		var want []int
		for i := range e {
			for _, x := range e { // the threshold at each e-value's own rank
				rank := 0
				for _, y := range e {
					if y >= x {
						rank++
					}
				}
				if e[i] >= x && x >= math.Log(float64(k)/.1/float64(rank)) {
					want = append(want, i)
					break
				}
			}
		}
		got := EBH(e, .1)
		rejections += len(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", e, got, want)
		}
	}
	if rejections < 100 {
		t.Fatalf("%d rejections: too little was compared", rejections)
	}
	if got := EBH([]float64{math.NaN(), 100}, .1); !slices.Equal(got, []int{1}) {
		t.Errorf("NaN: got %v, want [1]", got)
	}
	if got := EBH(nil, .1); len(got) != 0 {
		t.Errorf("no hypotheses: got %v", got)
	}
}

// TestPairedFair: the expectation of a row's factor is at most 1 for two-point and three-point gains of mean -margin.
func TestPairedFair(t *testing.T) {
	const bound, margin = 2., .1
	for i := 1; i < 40; i++ {
		lo := -bound + float64(i)*.04 // below -margin
		hi := bound
		p := (-margin - lo) / (hi - lo) // of hi
		var e float64
		for _, x := range []struct{ gain, p float64 }{{lo, 1 - p}, {hi, p}} {
			n, err := NewPaired(bound, margin)
			if err != nil {
				t.Fatal(err)
			}
			if err := n.Add(x.gain); err != nil {
				t.Fatal(err)
			}
			e += x.p * math.Exp(n.LogE())
		}
		if math.Abs(e-1) > 1e-12 {
			t.Errorf("gains %v, %v of mean %v: expectation is %v, want 1", lo, hi, -margin, e)
		}
	}
}

// TestPairedDecides: a gain of .02 with deviation .3 is found; no gain is not, over 2,000 streams looked at after
// every row.
func TestPairedDecides(t *testing.T) {
	crosses := func(seed uint64, mean float64, rows int) bool {
		rng := rand.New(rand.NewPCG(seed, 2))
		p, err := NewPaired(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		for range rows {
			x := mean + .3
			if rng.IntN(2) == 0 {
				x = mean - .3
			}
			if err := p.Add(x); err != nil {
				t.Fatal(err)
			}
			if p.LogE() >= math.Log(20) {
				return true
			}
		}
		return false
	}
	false5, found := 0, 0
	for seed := range uint64(1000) {
		if crosses(seed, 0, 500) {
			false5++
		}
	}
	for seed := range uint64(50) {
		if crosses(seed, .02, 10_000) {
			found++
		}
	}
	if false5 > 50 { // 5 % of 1,000
		t.Errorf("%d of 1,000 streams without gain crossed 1/.05, allowed 50", false5)
	}
	if found < 48 {
		t.Errorf("%d of 50 gains of .02 were found in 10,000 rows", found)
	}
}

func TestPairedRefuses(t *testing.T) {
	for _, c := range [][2]float64{{0, 0}, {-1, 0}, {math.NaN(), 0}, {1e6, 0}, {1, 1}, {1, -.1}, {1, math.NaN()}} {
		if _, err := NewPaired(c[0], c[1]); !errors.Is(err, ErrValue) {
			t.Errorf("bound %v, margin %v: error %v, want ErrValue", c[0], c[1], err)
		}
	}
	p, err := NewPaired(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []float64{1.01, -1.01, math.NaN(), math.Inf(1)} {
		if err := p.Add(x); !errors.Is(err, ErrValue) {
			t.Errorf("gain %v: error %v, want ErrValue", x, err)
		}
	}
	if p.LogE() != 0 {
		t.Errorf("log e-value is %v after refused rows, want 0", p.LogE())
	}
}

// TestECERadius draws calibrated rows and looks at every 100th: the ECE, of which all is noise, stays inside the
// radius.
func TestECERadius(t *testing.T) {
	const bins, alpha = 15, .05
	outside, largest := 0, 0.0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var s [bins]float64
		for n := 1; n <= 20_000; n++ {
			j := rng.IntN(bins)
			c := (float64(j) + rng.Float64()) / bins
			a := 0.
			if rng.Float64() < c {
				a = 1
			}
			s[j] += a - c
			if n%100 != 0 {
				continue
			}
			var ece float64
			for _, x := range s {
				ece += math.Abs(x)
			}
			ratio := ece / float64(n) / ECERadius(float64(n), bins, alpha)
			if largest = max(largest, ratio); ratio > 1 {
				outside++
				break
			}
		}
	}
	if outside > 5 {
		t.Errorf("%d of 100 streams left the radius, allowed 5", outside)
	}
	if largest < .2 {
		t.Errorf("the radius is %v times what was seen: too wide to say anything", 1/largest)
	}
	if r := ECERadius(0, bins, alpha); !math.IsInf(r, 1) {
		t.Errorf("radius without rows is %v, want +Inf", r)
	}
}

func TestPairedCodec(t *testing.T) {
	p, err := NewPaired(3, .5)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := p.Add(float64(i%7) - 3); err != nil {
			t.Fatal(err)
		}
	}
	b, err := p.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	var q Paired
	if err := q.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if q != *p {
		t.Errorf("got %+v, want %+v", q, *p)
	}
}

func FuzzPairedUnmarshal(f *testing.F) {
	p, err := NewPaired(3, .5)
	if err != nil {
		f.Fatal(err)
	}
	if err := p.Add(1); err != nil {
		f.Fatal(err)
	}
	good, err := p.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var q Paired
		if err := q.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrCorrupt) || q != (Paired{}) {
				t.Fatalf("error %v, receiver %+v", err, q)
			}
			return
		}
		if back, err := q.AppendBinary(nil); err != nil || !bytes.Equal(back, b) {
			t.Fatalf("does not encode to itself: %v", err)
		}
		if err := q.Add(0); err != nil {
			t.Fatal(err)
		}
		if e := q.LogE(); math.IsNaN(e) {
			t.Fatal("log e-value is NaN")
		}
	})
}
