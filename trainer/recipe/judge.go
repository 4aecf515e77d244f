package recipe

import (
	"fmt"
	"math"

	"github.com/plumbline/plumbline/trainer/data"
	"github.com/plumbline/plumbline/trainer/head"
)

// Judgement is what validation rows say of a head that was trained elsewhere.
type Judgement struct {
	NLL float64
	// Reference is the NLL of the head that serves, or where that is not known, of the validation rows' class shares.
	Reference float64
	// Over is the difference to it by Blocks blocks of time; Better is whether it is below 0 by the test of auto.
	Over   Paired
	Blocks int
	Better bool
}

// Judge scores a head, as it is, on validation rows; current may be nil.
func Judge(h, current *head.Head, valid *data.Set) (Judgement, error) {
	var j Judgement
	if h.D() != valid.D || h.K() != valid.K {
		return j, fmt.Errorf("a head of %d features and %d classes, the rows have %d and %d", h.D(), h.K(), valid.D,
			valid.K)
	}
	blocks, err := blocksOf(valid)
	if err != nil {
		return j, err
	}
	s := score("", h, valid, blocks)
	s.asItIs()
	reference := sharesNLL(valid, blocks)
	if current != nil {
		now := score(CurrentName, current, valid, blocks)
		now.asItIs()
		reference = now.blocks
	}
	for _, v := range reference {
		j.Reference += v / float64(len(reference))
	}
	j.NLL, j.Over, j.Blocks = s.NLL, paired(s.blocks, reference), len(blocks.ends)
	j.Better = j.Over.below(autoLevel)
	return j, nil
}

// sharesNLL is by blocks that of a head that knows the shares of the classes among these rows and nothing else.
func sharesNLL(s *data.Set, b blocked) []float64 {
	count := make([]float64, s.K)
	for _, y := range s.Y {
		count[y]++
	}
	var out []float64
	for i := range b.ends {
		var sum float64
		rows := b.block(i)
		for _, r := range rows {
			sum -= math.Log(count[s.Y[r]] / float64(s.N()))
		}
		out = append(out, sum/float64(len(rows)))
	}
	return out
}
