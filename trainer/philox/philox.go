package philox

import "math/bits"

// Block is Philox4x32-10: ten rounds on a counter of four words under a key of two.
// Reference: Salmon, Moraes, Dror, Shaw, Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011.
func Block(counter [4]uint32, key [2]uint32) [4]uint32 {
	c0, c1, c2, c3 := counter[0], counter[1], counter[2], counter[3]
	k0, k1 := key[0], key[1]
	for range 10 {
		h0, l0 := bits.Mul32(0xD2511F53, c0)
		h1, l1 := bits.Mul32(0xCD9E8D57, c2)
		c0, c1, c2, c3 = h1^c1^k0, l1, h0^c3^k1, l0
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{c0, c1, c2, c3}
}

// Purpose keeps the streams of one seed apart: it is the last word of the counter.
type Purpose uint32

// The purposes. Their numbers are part of what a seed means: new ones are appended.
const (
	Init   Purpose = iota + 1 // initial weights
	Order                     // mini-batch orders
	Mask                      // masks on weights
	Mixup                     // partners and shares of mixup
	Split                     // which rows are used
	Latent                    // noise of latent values, and fixed classifiers
)

// Stream is one sequence of a seed: word i is word i mod 4 of Block((i/4, A, B, Purpose), seed), the low half of the
// seed first. A and B number what the purpose needs: for masks layer and step, for orders the epoch.
type Stream struct {
	Seed    uint64
	Purpose Purpose
	A, B    uint32
}

// Block4 returns words 4i to 4i+3.
func (s Stream) Block4(i uint32) [4]uint32 {
	return Block([4]uint32{i, s.A, s.B, uint32(s.Purpose)}, [2]uint32{uint32(s.Seed), uint32(s.Seed >> 32)})
}

// twoBlocks is Block4 of i and i + 1: their rounds do not wait for each other, so that both take little longer than
// one.
func (s Stream) twoBlocks(i uint32) (a, b [4]uint32) {
	a0, a1, a2, a3 := i, s.A, s.B, uint32(s.Purpose)
	b0, b1, b2, b3 := i+1, s.A, s.B, uint32(s.Purpose)
	k0, k1 := uint32(s.Seed), uint32(s.Seed>>32)
	for range 10 {
		p, q := uint64(a0)*0xD2511F53, uint64(a2)*0xCD9E8D57
		u, v := uint64(b0)*0xD2511F53, uint64(b2)*0xCD9E8D57
		a0, a1, a2, a3 = uint32(q>>32)^a1^k0, uint32(q), uint32(p>>32)^a3^k1, uint32(p)
		b0, b1, b2, b3 = uint32(v>>32)^b1^k0, uint32(v), uint32(u>>32)^b3^k1, uint32(u)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return [4]uint32{a0, a1, a2, a3}, [4]uint32{b0, b1, b2, b3}
}

// Threshold is the T for which a word is below T with probability q: round(q·2³²). 1 gives 2³², so every word is below.
func Threshold(q float64) uint64 { return uint64(min(max(q, 0), 1)*(1<<32) + 0.5) }

// Bernoulli fills mask with 1 with probability q, else 0: mask[i] = 1 iff Word(i) < Threshold(q).
func (s Stream) Bernoulli(mask []uint8, q float64) {
	t := Threshold(q)
	below := func(w uint32) uint8 { return uint8((uint64(w) - t) >> 63) }
	i := uint32(0)
	for ; len(mask) >= 8; i, mask = i+2, mask[8:] {
		a, b := s.twoBlocks(i)
		m := mask[:8:8]
		m[0], m[1], m[2], m[3] = below(a[0]), below(a[1]), below(a[2]), below(a[3])
		m[4], m[5], m[6], m[7] = below(b[0]), below(b[1]), below(b[2]), below(b[3])
	}
	for ; len(mask) >= 4; i, mask = i+1, mask[4:] {
		w := s.Block4(i)
		mask[0], mask[1], mask[2], mask[3] = below(w[0]), below(w[1]), below(w[2]), below(w[3])
	}
	w := s.Block4(i)
	for j := range mask {
		mask[j] = below(w[j])
	}
}

// Source draws one word after the other.
type Source struct {
	Stream
	at    uint32
	block [4]uint32
}

// Next returns the next word.
func (s *Source) Next() uint32 {
	if s.at%4 == 0 {
		s.block = s.Block4(s.at / 4)
	}
	w := s.block[s.at%4]
	s.at++
	return w
}

// Below returns an unbiased number in [0, n), n > 0, by Lemire's multiplication with rejection.
func (s *Source) Below(n uint32) uint32 {
	for {
		hi, lo := bits.Mul32(s.Next(), n)
		if lo >= -n%n {
			return hi
		}
	}
}

// Float64 returns a number in (0, 1) with 53 bits.
func (s *Source) Float64() float64 {
	hi, lo := uint64(s.Next()), uint64(s.Next())
	return (float64((hi<<32|lo)>>11) + 0.5) * (1.0 / (1 << 53))
}

// Shuffle permutes rows (Fisher-Yates).
func (s *Source) Shuffle(rows []int32) {
	for i := len(rows) - 1; i > 0; i-- {
		j := s.Below(uint32(i + 1))
		rows[i], rows[j] = rows[j], rows[i]
	}
}
