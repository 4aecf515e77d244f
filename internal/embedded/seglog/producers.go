package seglog

import "errors"

// Errors of batches of an idempotent producer.
var (
	ErrSequence = errors.New("sequence out of order")
	ErrEpoch    = errors.New("epoch of a producer that was fenced")
)

// maxProducers bounds those that are remembered: half of them, the longest silent, are forgotten beyond it.
const maxProducers = 4096

// remembered is how many batches of a producer a repeat is recognised among, as in Kafka.
const remembered = 5

// producers recognise batches that are sent again.
type producers map[int64]*producer

type producer struct {
	epoch  int16
	next   int32 // sequence
	recent []sent
}

type sent struct {
	first, last int32
	base        int64
}

// known returns the offset of a batch that was written before; -1 where it is new.
func (ps producers) known(h *header) (int64, error) {
	p := ps[h.producer]
	if h.producer < 0 || p == nil {
		return -1, nil
	}
	switch {
	case h.epoch < p.epoch:
		return -1, ErrEpoch
	case h.epoch > p.epoch:
		if h.firstSeq != 0 {
			return -1, ErrSequence
		}
		return -1, nil
	}
	for _, s := range p.recent {
		if s.first == h.firstSeq && s.last == h.lstSeq {
			return s.base, nil
		}
	}
	if h.firstSeq != p.next {
		return -1, ErrSequence
	}
	return -1, nil
}

// note remembers a batch that is written.
func (ps producers) note(h *header) {
	if h.producer < 0 {
		return
	}
	p := ps[h.producer]
	if p == nil || p.epoch != h.epoch {
		if len(ps) >= maxProducers {
			ps.forget()
		}
		p = &producer{epoch: h.epoch}
		ps[h.producer] = p
	}
	if len(p.recent) == remembered {
		p.recent = append(p.recent[:0], p.recent[1:]...)
	}
	p.recent = append(p.recent, sent{h.firstSeq, h.lstSeq, h.base})
	p.next = int32((uint32(h.lstSeq) + 1) & (1<<31 - 1)) //nolint:gosec // wraps as sequences do
}

// forget drops the half whose last batches are the oldest.
func (ps producers) forget() {
	lo, hi := int64(-1), int64(0)
	for _, p := range ps {
		at := p.recent[len(p.recent)-1].base
		if lo < 0 || at < lo {
			lo = at
		}
		hi = max(hi, at)
	}
	for id, p := range ps {
		if p.recent[len(p.recent)-1].base <= lo+(hi-lo)/2 {
			delete(ps, id)
		}
	}
}
