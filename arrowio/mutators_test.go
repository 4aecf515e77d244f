package arrowio

import (
	"encoding/binary"
	"slices"
)

// chooser makes the choices of a mutation: random numbers, or the bytes of a fuzzing engine.
type chooser interface {
	// IntN returns a number in [0, n).
	IntN(n int) int
}

// program is a chooser that reads from bytes and ends in zeros.
type program struct{ bytes []byte }

func (p *program) IntN(n int) int {
	if len(p.bytes) < 2 || n <= 1 {
		return 0
	}
	v := int(binary.LittleEndian.Uint16(p.bytes))
	p.bytes = p.bytes[2:]
	if n > 1<<16 {
		return v * (n >> 16)
	}
	return v % n
}

// mutator makes hostile messages of valid ones.
type mutator struct {
	whole  [][]byte
	pieces [][]piece
}

func newMutator(seeds [][]byte) *mutator {
	m := &mutator{whole: seeds}
	for _, s := range seeds {
		m.pieces = append(m.pieces, pieces(s))
	}
	return m
}

// bytes damages a seed without looking at its structure.
func (m *mutator) bytes(r chooser) []byte { return mutate(r, m.whole[r.IntN(len(m.whole))]) }

// structured rearranges the messages of a seed, then lies in up to four places of known meaning.
func (m *mutator) structured(r chooser) []byte {
	list := slices.Clone(m.pieces[r.IntN(len(m.pieces))])
	if r.IntN(3) == 0 {
		list = m.rearrange(r, list)
	}
	var v []byte
	var spots []spot
	for _, p := range list {
		for _, s := range p.spots {
			s.at += len(v)
			spots = append(spots, s)
		}
		v = append(v, p.raw...)
	}
	for range 1 + r.IntN(8)/5*r.IntN(4) {
		if len(spots) > 0 {
			lie(r, v, spots)
		}
	}
	if r.IntN(16) == 0 {
		v = v[:r.IntN(len(v)+1)]
	}
	return v
}

// rearrange changes which messages a stream has, in which order.
func (m *mutator) rearrange(r chooser, list []piece) []piece {
	other := m.pieces[r.IntN(len(m.pieces))]
	pick := func(of []piece) int { return r.IntN(max(1, len(of))) }
	if len(list) == 0 {
		return slices.Clone(other)
	}
	i := pick(list)
	switch r.IntN(9) {
	case 0: // drop a message
		return slices.Delete(list, i, i+1)
	case 1: // repeat one, dictionaries and batches included
		return slices.Insert(list, i, list[i])
	case 2: // exchange two
		j := pick(list)
		list[i], list[j] = list[j], list[i]
	case 3: // the schema of another stream
		list[0] = other[0]
	case 4: // a message of another stream in place of one
		list[i] = other[pick(other)]
	case 5: // a message of another stream more
		return slices.Insert(list, i, other[pick(other)])
	case 6: // the rest of another stream
		return append(list[:i:i], other[min(i, len(other)):]...)
	case 7: // many batches
		for range 1 + r.IntN(6) {
			list = slices.Insert(list, i, list[i])
		}
		return list
	default: // two streams, glued
		return append(list, other...)
	}
	return list
}

// lies are lengths that make a trusting reader allocate or index wildly.
var lies = []uint64{
	0,
	1,
	2,
	3,
	7,
	8,
	64,
	127,
	255,
	1 << 12,
	1 << 16,
	1 << 20,
	1<<31 - 1,
	1 << 31,
	1<<32 - 1,
	1 << 40,
	1<<63 - 1,
	1 << 63,
	1<<64 - 1,
	1<<64 - 2,
	1<<64 - 8,
}

// lie changes one spot of v.
func lie(r chooser, v []byte, spots []spot) {
	s := spots[r.IntN(len(spots))]
	// Every meaning is as likely as the others, though most spots are vtable entries.
	if want := meaning(r.IntN(int(allMeanings))); s.meaning != want {
		for range 12 {
			if s = spots[r.IntN(len(spots))]; s.meaning == want {
				break
			}
		}
	}
	at := v[s.at : s.at+s.size]
	var word [8]byte
	copy(word[:], at)
	x := binary.LittleEndian.Uint64(word[:])
	switch r.IntN(6) {
	case 0:
		x = lies[r.IntN(len(lies))]
	case 1: // near what is true
		x += uint64(r.IntN(17) - 8)
	case 2:
		x ^= 1 << r.IntN(8*s.size)
	case 3: // what another spot holds, preferably one of the same meaning
		for range 8 {
			o := spots[r.IntN(len(spots))]
			clear(word[:])
			copy(word[:], v[o.at:o.at+o.size])
			if x = binary.LittleEndian.Uint64(word[:]); o.meaning == s.meaning {
				break
			}
		}
	case 4:
		x = uint64(r.IntN(256))
	default:
		if r.IntN(2) == 0 {
			x *= 2
		} else {
			x /= 2
		}
	}
	binary.LittleEndian.PutUint64(word[:], x)
	copy(at, word[:])
}

// mutate damages a message in one to four places, wherever they are.
func mutate(r chooser, valid []byte) []byte {
	v := append([]byte(nil), valid...)
	for range 1 + r.IntN(4) {
		if len(v) < 16 {
			return v
		}
		// Most of what can go wrong is in the metadata, at the front.
		at := r.IntN(len(v))
		if r.IntN(2) == 0 {
			at = r.IntN(min(len(v), 2048))
		}
		switch r.IntN(8) {
		case 0:
			v = v[:at]
		case 1, 2:
			v[at] ^= 1 << r.IntN(8)
		case 3:
			v[at] = byte(r.IntN(256))
		case 4:
			at = min(at&^3, len(v)-4)
			binary.LittleEndian.PutUint32(v[at:], uint32(lies[r.IntN(len(lies))]))
		case 5:
			at = min(at&^7, len(v)-8)
			binary.LittleEndian.PutUint64(v[at:], lies[r.IntN(len(lies))])
		case 6:
			at = min(at&^7, len(v)-8)
			binary.LittleEndian.PutUint64(v[at:], binary.LittleEndian.Uint64(v[at:])+uint64(r.IntN(17)-8))
		default:
			to, n := r.IntN(len(v)), r.IntN(64)
			copy(v[at:], v[to:min(len(v), to+n)])
		}
	}
	return v
}
