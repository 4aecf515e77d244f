package head

import "math"

func reluGo(x []float32) {
	for i, v := range x {
		x[i] = max(v, 0)
	}
}

// reluGradGo takes no branch: which outputs are 0 cannot be foreseen.
func reluGradGo(dst, y, grad []float32) {
	for i, v := range y {
		b := math.Float32bits(v) << 1 // without the sign: −0 is 0 too
		all := uint32(int32(b|-b) >> 31)
		dst[i] = math.Float32frombits(math.Float32bits(grad[i]) & all)
	}
}

func maskedGo(dst, w []float32, bits []uint8) {
	for i, v := range w {
		dst[i] = math.Float32frombits(math.Float32bits(v) & -uint32(bits[i]))
	}
}

func columnSumsGo(sums, x []float32) {
	clear(sums)
	for ; len(x) > 0; x = x[len(sums):] {
		for j, v := range x[:len(sums)] {
			sums[j] += v
		}
	}
}
