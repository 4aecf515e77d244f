package calibrator_test

import (
	enc "encoding/binary"
	"fmt"
	"math"
	"testing"
)

// fuzzScores are what most bytes stand for; the highest take eight bytes of their own, any float64.
var fuzzScores = []float64{
	0, math.Copysign(0, -1), 1, -1, .5, .25, 1. / 3, 2. / 3, .2, 80, -80, 1e4, -1e5, 1e30, math.MaxFloat32, 1 - 0x1p-53,
	0x1p-1074,
	1e-30, 745, -746, .1, .9, .01, .99, 3, -4, math.MaxFloat64, -math.MaxFloat64, math.NaN(), math.Inf(1), 1e-9, 2,
}

// FuzzFit fits any method on a small table of the bytes: an error, or a calibrator that makes distributions of hostile
// rows, keeps what its method keeps, and reads back bit for bit.
func FuzzFit(f *testing.F) {
	for i := range everyMethod() {
		f.Add(byte(i), []byte{1, 0, 0, 2, 3, 9, 1, 1, 1, 0, 0, 2, 5, 4, 1, 1, 9, 10, 1, 0})
		f.Add(byte(i), []byte{2, 3, 1, 8, 4, 5, 0, 2, 9, 2, 3, 0, 1, 3, 1, 11, 12, 0, 5, 7, 6, 3, 1})
	}
	f.Fuzz(func(t *testing.T, method byte, data []byte) {
		if len(data) < 2 {
			return
		}
		methods := everyMethod()
		m := methods[int(method)%len(methods)]
		table := sweepTable{k: 2 + int(data[0])%3, probs: data[1]&1 == 1}
		weighted := data[1]&2 != 0
		options := sweepOptions(m.Name)
		o := options[int(data[1]>>2)%len(options)]
		data = data[2:]
		next := func() (b byte) {
			if len(data) > 0 {
				b, data = data[0], data[1:]
			}
			return b
		}
		var w []float64
		for len(data) > 0 && len(table.y) < 40 {
			table.y = append(table.y, int32(int(next())%table.k))
			if b := next(); weighted {
				w = append(w, []float64{1, 0, 2, 1e30, 1e-30, .1}[b%6])
			}
			left := 1.0
			for k := range table.k {
				b := next()
				v := fuzzScores[int(b)%len(fuzzScores)]
				switch {
				case table.probs && k == table.k-1 && b < 200:
					v = max(0, left)
				case b >= 250 && len(data) >= 8:
					v = math.Float64frombits(enc.LittleEndian.Uint64(data))
					data = data[8:]
				}
				left -= v
				table.z = append(table.z, v)
			}
		}
		sweepOne(t, fmt.Sprintf("%s, %+v, weights %v", m.Name, table, w), m, table, w, o)
	})
}
