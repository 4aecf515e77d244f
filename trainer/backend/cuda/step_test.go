package cuda

import (
	"fmt"
	"math"
	"slices"
)

// halves: every binary16 number is the float32 that it stands for, and mixed with others by the step's lambda.
func halves() error {
	const n, d = 64, 1024
	const share = 0.25
	all := make([]uint16, n*d)
	for i := range all {
		all[i] = uint16(i)
	}
	order := make([]int32, n) // the partners' rows, and where rows lie
	for i := range order {
		order[i] = int32(i * 37 % n)
	}
	var plain, mixed []float32
	err := inLab(func(l *lab) error {
		epoch, slab, out := upload(l, []epochParams{{Step: 1, Batch: n}}), upload(l, all), l.room(4*n*d)
		l.run(features, eachRow(n, d), ptr(epoch), ptr(out), num(d), ptr(slab), ptr(0), num(1), ptr(0), ptr(0),
			ptr(0), ptr(0), num(0), num(0))
		plain = download[float32](l, out, n*d)
		// The second step of an epoch whose first has the rows in another order.
		list, at := upload(l, append(slices.Clone(order), order...)), upload(l, order)
		partners, lambda := upload(l, append(make([]int32, n), countTo(n)...)), upload(l, []float32{9, share})
		l.run(features, eachRow(n, d), ptr(epoch), ptr(out), num(d), ptr(slab), ptr(slab), num(1), ptr(at), ptr(list),
			ptr(partners), ptr(lambda), num(0), num(1))
		mixed = download[float32](l, out, n*d)
		return nil
	})
	if err != nil {
		return err
	}
	same := func(a, b float32) bool { return a == b || a != a && b != b }
	for i, got := range plain {
		if want := half(uint16(i)); !same(got, want) {
			return fmt.Errorf("binary16 %#04x is %g, want %g", i, got, want)
		}
		row := order[order[i/d]]
		a, b := half(uint16(int(row)*d+i%d)), half(uint16(int(order[i/d])*d+i%d))
		if want := float32(share)*a + float32(1-share)*b; !same(mixed[i], want) {
			return fmt.Errorf("%d: %g and %g are mixed to %g, want %g", i, a, b, mixed[i], want)
		}
	}
	return nil
}

func countTo(n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(i)
	}
	return v
}

// half is the number of a binary16's sign, exponent and fraction.
func half(h uint16) float32 {
	sign, exponent, fraction := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)/1024
	switch {
	case exponent == 31 && fraction != 0:
		return float32(math.NaN())
	case exponent == 31:
		return float32(math.Inf(int(sign)))
	case exponent == 0:
		return float32(sign * math.Ldexp(fraction, -14))
	}
	return float32(sign * math.Ldexp(1+fraction, exponent-15))
}

// labelsAndHistory: of the rows of a step, of their partners, and how often a row was right, 0 where it was not seen.
func labelsAndHistory() error {
	const rows = 400
	all, right, seen := make([]int32, rows), make([]int32, rows), make([]int32, rows)
	for i := range all {
		all[i], seen[i] = int32(i*7%23), int32(i%5)
		right[i] = int32(i * 3 % (i%5 + 1))
	}
	for _, n := range []int{1, 32, 257, 300} {
		list, partners := make([]int32, 2*n), make([]int32, 2*n)
		for i := range list {
			list[i], partners[i] = int32(i*11%rows), int32(i*13%rows)
		}
		var y, y2 []int32
		var history []float64
		err := inLab(func(l *lab) error {
			epoch := upload(l, []epochParams{{Step: 1, Batch: int32(n)}})
			where, labelsAt, r, s := upload(l, list), upload(l, all), upload(l, right), upload(l, seen)
			to, to2, h := l.room(4*n), upload(l, slices.Repeat([]int32{-5}, n)), l.room(8*n)
			for _, partner := range []uint64{0, upload(l, partners)} {
				l.run(labels, elements(n), ptr(epoch), num(n), ptr(where), ptr(partner), ptr(labelsAt), ptr(r), ptr(s),
					ptr(to), ptr(to2), ptr(h))
				if y2 = download[int32](l, to2, n); partner == 0 && !slices.Equal(y2, slices.Repeat([]int32{-5}, n)) {
					return fmt.Errorf("labels of partners without any: %v", y2)
				}
			}
			y, history = download[int32](l, to, n), download[float64](l, h, n)
			return nil
		})
		if err != nil {
			return err
		}
		for i := range n {
			row, want := list[n+i], 0.0
			if seen[row] > 0 {
				want = float64(right[row]) / float64(seen[row])
			}
			if y[i] != all[row] || y2[i] != all[partners[n+i]] || history[i] != want {
				return fmt.Errorf("row %d of %d: labels %d, %d, right %v, want %d, %d, %v", i, n,
					y[i], y2[i], history[i], all[row], all[partners[n+i]], want)
			}
		}
	}
	return nil
}

// normalised: as many weights as a block has threads, fewer, and more.
func normalised() error {
	for _, n := range []int{1, 255, 257, 700} {
		beta := make([]float64, n)
		var sum float64
		for i := range beta {
			beta[i] = float64(i*37%101) + 0.5
			sum += beta[i]
		}
		var got []float64
		err := inLab(func(l *lab) error {
			at := upload(l, beta)
			l.run(auNormalise, oneBlock, num(n), ptr(at))
			got = download[float64](l, at, n)
			return nil
		})
		if err != nil {
			return err
		}
		for i, b := range beta {
			if want := b / (sum / float64(n)); off(got[i], want) {
				return fmt.Errorf("weight %d of %d: %.17g, want %.17g", i, n, got[i], want)
			}
		}
	}
	return nil
}
